"""Parse XML within a budget of memory, and without the declarations that make much of little."""

from __future__ import annotations

from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.parsers import expat

from defgpa.io.files import make_format_error
from defgpa.io.limits import WORD_COST, Budget

_ELEMENT_COST = 250  # bytes of memory that the smallest element takes, and an attribute less
_ELEMENTS = "the number of its elements"
_BLOCK = 2**16  # bytes of text that are joined before they are kept


def parse_xml(path: Path, data: bytes, expected: str) -> ElementTree.Element:
    """Parse the root element of a file; text comes in long pieces, whatever it holds."""
    budget, builder = Budget(path), ElementTree.TreeBuilder()

    def start(tag: str, attributes: dict[str, str]) -> None:
        n_parts = 1 + len(attributes)
        budget.spend(_ELEMENT_COST * n_parts, _ELEMENTS)
        builder.start(tag, attributes)

    parser = _make_parser(path, expected)
    parser.buffer_text, parser.buffer_size = True, _BLOCK
    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def scan_xml(path: Path, stream: IO[bytes], expected: str, budget: Budget) -> None:
    """Refuse XML that another parser should not read: with declarations or many elements."""

    def start(_tag: str, _attributes: dict[str, str]) -> None:
        budget.spend(WORD_COST, _ELEMENTS)

    parser = _make_parser(path, expected)
    parser.StartElementHandler = start
    parser.ParseFile(stream)


def _make_parser(path: Path, expected: str) -> expat.XMLParserType:
    """Make a parser that refuses declarations: an entity of a line can stand for gigabytes."""

    def open_doctype(_name: str, _system: str | None, _public: str | None, subset: bool) -> None:
        if subset:
            raise make_format_error(path, expected, "definitions of entities")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = open_doctype
    return parser
