"""Words of the command line to shapes and estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console

if TYPE_CHECKING:
    from defgpa.shapes import Shapes

DEFAULT_FOLDS = 20  # folds, when nobody says how large one should be


def read_input(
    source: Sequence[str],
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    space: str | None = None,
) -> Shapes:
    """The shapes of the files named on the command line."""
    from defgpa.io import read_shapes

    return read_shapes(
        source[0] if len(source) == 1 else list(source),
        format=format_,
        missing=missing_code(missing),
        layout=layout,
        on_mismatch="warn" if lenient else "error",
        space=space,
    )


def in_space_of(shapes: Shapes, model: Shapes) -> Shapes:
    """The shapes in the anatomical space of others, where both state one."""
    own, wanted = shapes.metadata.get("space"), model.metadata.get("space")
    if own is None or wanted is None or own == wanted or shapes.dim != 3:
        return shapes
    from defgpa.shapes import Shapes as _Shapes

    return _Shapes.specimens(
        shapes.points * [-1.0, -1.0, 1.0],
        names=shapes.names,
        landmarks=shapes.landmarks,
        faces=shapes.faces,
        metadata={**shapes.metadata, "space": wanted},
    )


def without_empty(console: Console, shapes: Shapes) -> Shapes:
    """The shapes without undigitised specimens and landmarks seen nowhere, saying so."""
    import numpy as np

    from defgpa.errors import listed

    empty = np.flatnonzero(~shapes.visible.any(axis=1))
    if 0 < len(empty) < shapes.n_shapes:
        console.note(f"Left out, no landmark is seen: {listed(shapes.names[i] for i in empty)}.")
        shapes = shapes.take(np.setdiff1d(np.arange(shapes.n_shapes), empty))
    unseen = np.flatnonzero(shapes.views == 0)
    if 0 < len(unseen) < shapes.n_landmarks:
        labels = listed(shapes.landmarks[j] for j in unseen)
        console.note(f"Left out, seen in no shape: landmark {labels}.")
        shapes = shapes.without(unseen)
    return shapes


def missing_code(word: str) -> str | float:
    """``marked``, ``negative`` or a number."""
    if word in ("marked", "negative"):
        return word
    try:
        return float(word)
    except ValueError:
        raise click.BadParameter(
            f"must be marked, negative or a number; got {word!r}.", param_hint="--missing"
        ) from None


def warp_model(
    family: str, points_per_axis: str | None, smoothing: float | None, theta: float | None
) -> Any:
    """The warp model the options describe."""
    from defgpa.warps import Affine, FreeForm, Polynomial, RadialBasis, ThinPlateSpline

    if smoothing is not None and theta is not None:
        raise click.UsageError("--smoothing and --theta say the same thing in two units: give one.")
    if theta is not None and family != "tps":
        raise click.UsageError("--theta is the spline's (--warp tps); use --smoothing.")
    counts = _counts(points_per_axis)
    given: dict[str, Any] = {} if smoothing is None else {"smoothing": smoothing}
    if family in ("affine", "polynomial"):
        if counts is not None:
            raise click.UsageError(f"--warp {family} has no control points: drop --points-per-axis")
        if family == "affine" and given:
            raise click.UsageError("--warp affine does not bend: drop --smoothing.")
        return Affine() if family == "affine" else Polynomial(**given)
    if counts is not None:
        given["points_per_axis"] = counts
    if theta is not None:
        given["theta"] = theta
    families = {"tps": ThinPlateSpline, "rbf": RadialBasis, "ffd": FreeForm}
    return families[family](**given)


def proportions_value(text: str) -> Any:
    """``rigid``, ``prior`` or eigenvalues with commas, as DefGPA takes them."""
    if text in ("rigid", "prior"):
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"must be rigid, prior or eigenvalues such as 900,400; got {text!r}.",
            param_hint="--proportions",
        ) from None


def rigidity_value(word: str) -> float:
    """A number above 0; 1 for ``auto``, which will choose."""
    if word == "auto":
        return 1.0
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not value > 0.0:
        raise click.BadParameter(
            f"must be a number above 0, inf, or auto; got {word!r}.", param_hint="--rigidity"
        )
    return value


def smoothing_value(word: str | None) -> float | None:
    """A number, or None where none is given or ``auto`` is."""
    if word is None or word == "auto":
        return None
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise click.BadParameter(
            f"must be a number of at least 0, or auto; got {word!r}.", param_hint="--smoothing"
        )
    return value


def fold_size_for(shapes: Shapes, given: int | None) -> int:
    """As given, or such that there are about twenty folds (one landmark each if there are few)."""
    return given if given is not None else max(1, round(shapes.n_landmarks / DEFAULT_FOLDS))


def _counts(word: str | None) -> int | tuple[int, ...] | None:
    if word is None:
        return None
    try:
        counts = tuple(int(part) for part in word.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise click.BadParameter(
            f"must be a whole number such as 5, or one per axis such as 5,5,2; got {word!r}.",
            param_hint="--points-per-axis",
        )
    return counts[0] if len(counts) == 1 else counts
