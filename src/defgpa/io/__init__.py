"""Landmark files in, shapes out, and back: one file of this folder a format."""

from defgpa.io._codec import register_saved
from defgpa.io._format import Document, Format, ReadOptions, Specimen
from defgpa.io._formats import FORMATS
from defgpa.io._read import read_shapes
from defgpa.io._save import load, read_header, save
from defgpa.io._write import write_shapes

__all__ = [
    "FORMATS",
    "Document",
    "Format",
    "ReadOptions",
    "Specimen",
    "load",
    "read_header",
    "read_shapes",
    "register_saved",
    "save",
    "write_shapes",
]
