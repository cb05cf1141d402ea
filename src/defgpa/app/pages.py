"""The files of the page, read from the package once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def read_assets() -> dict[str, tuple[bytes, str]]:
    """Return the content and the type of every file of the page, by its name."""
    assets: dict[str, tuple[bytes, str]] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            name = prefix + entry.name
            if entry.is_dir():
                walk(entry, f"{name}/")
            elif kind := _TYPES.get(f".{entry.name.rpartition('.')[2]}"):
                assets[name] = entry.read_bytes(), kind

    walk(files("defgpa.app") / "static", "")
    return assets
