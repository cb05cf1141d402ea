"""Landmark files in, shapes out, and back: one file of this folder a format."""

from importlib import import_module
from typing import TYPE_CHECKING

from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.read import read_shapes
from defgpa.io.registry import FORMATS
from defgpa.io.write import find_unsupported_metadata, write_shapes

if TYPE_CHECKING:
    from defgpa.io.saved.codec import register_saved
    from defgpa.io.saved.save import load, read_header, save

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

_SAVED = {"register_saved": "codec", "load": "save", "read_header": "save", "save": "save"}


def __getattr__(name: str) -> object:
    """Import modules that need warps and solvers on first use, since readers need neither."""
    if name in _SAVED:
        return getattr(import_module(f"defgpa.io.saved.{_SAVED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
