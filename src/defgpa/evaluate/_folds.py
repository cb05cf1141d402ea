"""Folds of consecutive landmarks, and what is known of each once it has been left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import DefgpaError, listed
from defgpa.findings import Finding, Kind
from defgpa.shapes import Shapes

Progress = Callable[[int, int], None]  # called with (done, total)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A fold that was left out, and where the rest put its landmarks; or why it could not."""

    predicted: Array  # (n, N, d), in the frame of the full reference
    findings: tuple[Finding, ...] = ()
    error: Exception | None = None


class Steps:
    """How much is done of how much, told to whoever listens."""

    def __init__(self, total: int, listener: Progress | None) -> None:
        self.total, self.done, self._listener = total, 0, listener

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self.done += count
        if self._listener is not None and count:
            self._listener(self.done, self.total)


def consecutive_folds(n_landmarks: int, fold_size: int) -> tuple[Index, ...]:
    """Folds of ``fold_size`` consecutive landmarks; the last may be shorter.

    >>> [fold.tolist() for fold in consecutive_folds(7, 3)]
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    whole = isinstance(fold_size, (int, np.integer)) and not isinstance(fold_size, bool)
    if not whole or not 1 <= fold_size < n_landmarks:
        raise ValueError(
            "The 'fold_size' parameter must be a whole number from 1 to one less than the "
            f"{n_landmarks} landmarks. Got {fold_size!r} instead."
        )
    cuts = np.arange(fold_size, n_landmarks, fold_size)
    return tuple(np.split(np.arange(n_landmarks), cuts))


def require_all_fitted(left_out: Sequence[LeftOut], folds: Sequence[Index], shapes: Shapes) -> None:
    """A DefgpaError that names the landmarks of every fold that could not be fitted."""
    failed = [(f, out.error) for f, out in zip(folds, left_out, strict=True) if out.error]
    if not failed:
        return
    reasons: dict[str, list[str]] = {}  # each is told once
    for fold, error in failed:
        reasons.setdefault(str(error).rstrip("."), []).append(_landmarks(fold, shapes))
    told = list(reasons.items())[:3]
    described = "; ".join(f"{_either(labels)}: {reason}" for reason, labels in told)
    more = f"; and {len(failed) - rest} more folds" if (rest := _count(told)) < len(failed) else ""
    raise DefgpaError(
        f"{len(failed)} of {len(folds)} folds cannot be fitted, so there is no cross-validation "
        f"error. Without landmark {described}{more}. Use smaller folds, or drop the shapes or "
        "landmarks that hang on so few points."
    ) from failed[0][1]


def _either(folds: Sequence[str]) -> str:
    """The landmarks of one fold or another, the first three of them."""
    shown = [*folds[:3], *([f"{len(folds) - 3} others"] if len(folds) > 3 else [])]
    return " or ".join(shown)


def _count(told: Sequence[tuple[str, Sequence[str]]]) -> int:
    return sum(len(labels) for _, labels in told)


def news_of_folds(
    found: Sequence[Sequence[Finding]], folds: Sequence[Index], shapes: Shapes
) -> Finding | None:
    """What folds found and the full fit did not: how often, and the first of each kind."""
    first: dict[Kind, Finding] = {}
    count: dict[Kind, int] = {}
    for fold, findings in zip(folds, found, strict=True):
        for finding in findings:
            count[finding.kind] = count.get(finding.kind, 0) + 1
            labels = tuple(shapes.landmarks[j] for j in fold)
            first.setdefault(finding.kind, Finding(Kind.IN_FOLDS, (), labels, {}, (finding,)))
    if not first:
        return None
    parts = tuple(replace(f, figures={"folds": count[kind]}) for kind, f in first.items())
    return Finding(
        Kind.IN_FOLDS, figures={"folds": sum(map(bool, found)), "of": len(folds)}, parts=parts
    )


def _landmarks(fold: Index, shapes: Shapes) -> str:
    return listed(shapes.landmarks[j] for j in fold)
