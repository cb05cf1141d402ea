"""The files of the page, read from the package once."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class Asset(NamedTuple):
    """A file of the page: its content, its type, and a tag that changes with the content."""

    content: bytes
    kind: str
    tag: str


@cache
def read_assets() -> dict[str, Asset]:
    """Return every file of the page, by its name."""
    assets: dict[str, Asset] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            name = prefix + entry.name
            if entry.is_dir():
                walk(entry, f"{name}/")
            elif kind := _TYPES.get(f".{entry.name.rpartition('.')[2]}"):
                content = entry.read_bytes()
                assets[name] = Asset(content, kind, f'"{sha256(content).hexdigest()[:20]}"')

    walk(files("defgpa.app") / "static", "")
    return assets
