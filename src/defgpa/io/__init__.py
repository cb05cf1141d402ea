"""Landmark files in, shapes out, and back: one file of this folder a format."""

from defgpa.io._format import Document, Format, ReadOptions, Specimen
from defgpa.io._formats import FORMATS
from defgpa.io._read import read_shapes
from defgpa.io._write import write_shapes

__all__ = [
    "FORMATS",
    "Document",
    "Format",
    "ReadOptions",
    "Specimen",
    "read_shapes",
    "write_shapes",
]
