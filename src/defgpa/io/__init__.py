"""Landmark files in, shapes out, and back: one file of this folder a format."""

from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.read import read_shapes
from defgpa.io.registry import FORMATS
from defgpa.io.saved.codec import register_saved
from defgpa.io.saved.save import load, read_header, save
from defgpa.io.write import find_unsupported_metadata, write_shapes

__all__ = [
    "FORMATS",
    "Document",
    "Format",
    "ReadOptions",
    "Specimen",
    "find_unsupported_metadata",
    "load",
    "read_header",
    "read_shapes",
    "register_saved",
    "save",
    "write_shapes",
]
