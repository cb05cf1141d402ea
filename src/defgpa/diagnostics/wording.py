"""Wording of messages by audience: the names of remedies and options.

The library speaks of its parameters; the command line sets a wording of its own, with the names of
its options, while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """What remedies and options are called.

    Attributes
    ----------
    remedies : mapping of str to str
        By the name of a problem, what to do about it, as a part of its message.
    name_option : callable
        Of the name of an option and its value (or None), how to write it.
    """

    remedies: Mapping[str, str]
    name_option: Callable[[str, object], str]


def _name_parameter(name: str, value: object) -> str:
    shown = f"{value:.3g}" if isinstance(value, float) else repr("…" if value is None else value)
    return f"{name.rpartition('.')[2]}={shown}"


LIBRARY_WORDING = Wording(
    remedies={
        "mirrored": "negate one coordinate there",
        "narrow-gap": "Use a stiffer warp",
        "not-converged": "Use Iterative(max_products=...) or Dense().",
        "proportions-undetermined": "DefGPA(warp, proportions=[...])",
        "foldovers": "More smoothing would straighten it.",
        "far-estimates": "the uncertainty",
        "planar-shapes": "Use project_to_plane of defgpa.diagnostics.planarity.",
        "unlisted": "leave these specimens out with Shapes.drop",
    },
    name_option=_name_parameter,
)

_wording: ContextVar[Wording] = ContextVar("wording", default=LIBRARY_WORDING)


def get_wording() -> Wording:
    """Return the wording of the present audience."""
    return _wording.get()


@contextmanager
def use_wording(wording: Wording) -> Iterator[None]:
    """Use another wording in all messages made in this context."""
    token = _wording.set(wording)
    try:
        yield
    finally:
        _wording.reset(token)


def name_option(name: str, value: object = None) -> str:
    """Return how the present audience writes an option of reading or writing.

    Examples
    --------
    >>> name_option("match", "position"), name_option("dimension", 3), name_option("write.format")
    ("match='position'", 'dimension=3', "format='…'")
    """
    return get_wording().name_option(name, value)
