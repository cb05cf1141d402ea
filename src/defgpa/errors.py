"""Errors and warnings: each names the culprit, the value and the remedy.

DefgpaError
├── ShapeError               the shapes cannot be used as they are
│   └── DegenerateShapeError   their points do not determine what is asked
├── FormatError              a file does not say what its format promises
└── NotConvergedError        an iteration stopped before its tolerance

DefgpaWarning                the result stands, but look at this
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any


class DefgpaError(Exception):
    """The base of all errors that this package raises."""


class ShapeError(DefgpaError, ValueError):
    """The shapes cannot be used as they are."""


class DegenerateShapeError(ShapeError):
    """Points that do not determine the warp or the motion asked of them."""


class FormatError(DefgpaError, ValueError):
    """A file that does not follow its format."""


class NotConvergedError(DefgpaError, RuntimeError):
    """An iteration stopped before it reached its tolerance."""


class DefgpaWarning(UserWarning):
    """The result stands, but something about it deserves a look.

    ``finding`` is what was found, as a `defgpa.diagnostics.Finding`, where there is one.
    """

    def __init__(self, message: str, finding: Any = None) -> None:
        super().__init__(message)
        self.finding = finding


def warn(message: str, finding: Any = None) -> None:
    """Issue a DefgpaWarning as from the first line outside this package, where a user can act."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "defgpa":
        frame, level = frame.f_back, level + 1
    warnings.warn(DefgpaWarning(message, finding), stacklevel=level)


def import_extra(module: str, advice: str) -> ModuleType:
    """Import a module of an extra; if it is not installed, raise an error with this advice."""
    try:
        return import_module(module)
    except ImportError:
        raise DefgpaError(advice) from None


def format_some(words: Iterable[object], max_words: int = 6) -> str:
    """Join words for a sentence, the first few of many: ``a, b, c and 4 more``."""
    all_words = list(map(str, words))
    n_more = len(all_words) - max_words
    return ", ".join(all_words[:max_words]) + (f" and {n_more} more" if n_more > 0 else "")


def format_names(names: Iterable[object], max_names: int = 6) -> str:
    """Join names in quotes for a sentence, the first few of many: ``'a', 'b' and 4 more``."""
    return format_some((repr(str(name)) for name in names), max_names)
