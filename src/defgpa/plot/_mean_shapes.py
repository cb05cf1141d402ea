"""Tests drawn on the mean shape: which landmarks differ, are asymmetric, or are ill measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from defgpa.plot import _style as style
from defgpa.plot._flat import (
    Links,
    View,
    arrows,
    circles,
    magnifier,
    map_axes,
    names,
    skeleton,
    times,
)
from defgpa.statistics import LandmarkDifferences, Repeatability, Symmetry


@dataclass(frozen=True, eq=False)
class MeanShapeArtists:
    """The landmarks of the mean, arrows and circles at them, and labels of the notable ones."""

    mean: Any
    arrows: Any = None
    circles: Any = None
    labels: tuple[Any, ...] = ()


def landmark_differences(
    found: LandmarkDifferences,
    ax: Axes | None = None,
    *,
    level: float = 0.05,
    magnify: float | None = None,
    links: Links = (),
) -> MeanShapeArtists:
    """Which landmarks differ between two groups: arrows from the first mean to the second.

    Those that differ at this rate of false discoveries are full and named.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import landmark_differences as compare
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(12, 2)) + 0.01 * rng.normal(size=(20, 12, 2))
    >>> x[10:, 3] += 0.2
    >>> found = compare(x, ["a"] * 10 + ["b"] * 10)
    >>> drawn = landmark_differences(found, Figure().subplots())
    >>> bool(len(drawn.labels) >= 1)
    True
    """
    axes, view = map_axes(ax), View.of(found.mean)
    mean, vectors = view(found.mean), view(found.difference)
    many = magnifier(np.linalg.norm(vectors, axis=1), mean, magnify)
    skeleton(axes, mean, links)
    sure = found.significant(level)
    drawn = arrows(axes, mean, many * vectors, style.OBSERVED, "")
    rest = style.dots(
        axes,
        mean[~sure],
        "no difference shown",
        marker="o",
        color=style.GREY,
        markerfacecolor="white",
    )
    marks = style.dots(
        axes, mean[sure], f"differ (q ≤ {level:g})", marker="o", color=style.REFERENCE
    )
    sign = _arrow_sign(f"{found.groups[0]} to {found.groups[1]}{times(many)}")
    style.legend(axes, [marks, rest, sign])
    labels = [label for label, own in zip(found.landmarks, sure, strict=True) if own]
    return MeanShapeArtists(marks, drawn, None, tuple(names(axes, mean[sure], labels)))


def symmetry(
    found: Symmetry,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> MeanShapeArtists:
    """The symmetric mean with its directional asymmetry as arrows, fluctuating as circles.

    The radius of a circle is the RMS of a landmark's fluctuating asymmetry, magnified like the
    arrows; paired landmarks are joined.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import symmetry as analyse
    >>> moth = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0]])
    >>> x = moth + 0.02 * np.random.default_rng(0).normal(size=(10, 6, 2))
    >>> symmetry(analyse(x, n_permutations=9), Figure().subplots()).arrows.N
    6
    """
    axes, view = map_axes(ax), View.of(found.mean)
    mean, vectors = view(found.mean), view(found.directional)
    radii = np.sqrt((found.fluctuating**2).sum(axis=2).mean(axis=0))
    lengths = np.concatenate([np.linalg.norm(vectors, axis=1), radii])
    many = magnifier(lengths, mean, magnify)
    skeleton(axes, mean, links)
    skeleton(axes, mean, found.pairs, linestyle=":", color=style.GREY, linewidth=0.8)
    rings = circles(axes, mean, many * radii, facecolor=style.SKY, alpha=0.35, edgecolor=style.BLUE)
    drawn = arrows(axes, mean, many * vectors, style.VERMILLION, "")
    marks = style.dots(axes, mean, "symmetric mean", marker="o", color=style.BLACK, markersize=3)
    ring = Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        color=style.SKY,
        markersize=9,
        label="fluctuating (RMS)",
    )
    sign = _arrow_sign(f"directional{times(many)}", style.VERMILLION)
    style.legend(axes, [marks, sign, ring], ncols=3)
    return MeanShapeArtists(marks, drawn, rings)


def repeatability(
    found: Repeatability,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> MeanShapeArtists:
    """Where measuring errs: circles as large as the error, darker where less is repeatable.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import repeatability as measure
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(np.arange(8), 2)
    >>> wings = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(8, 6, 2))
    >>> found = measure(wings[who] + 0.01 * rng.normal(size=(16, 6, 2)), who)
    >>> len(repeatability(found, Figure().subplots()).labels)
    6
    """
    axes, view = map_axes(ax), View.of(found.mean)
    mean = view(found.mean)
    many = magnifier(found.error, mean, magnify)
    skeleton(axes, mean, links)
    least = min(float(found.per_landmark.min()), 0.999)
    rings = circles(
        axes, mean, many * found.error, cmap=style.ERRORS.reversed(), alpha=0.8, edgecolor="none"
    )
    rings.set_array(found.per_landmark)
    rings.set_clim(least, 1.0)
    marks = style.dots(axes, mean, "mean", marker="o", color=style.BLACK, markersize=2.5)
    said = f"repeatability ({found.overall:.3f} over all)"
    axes.figure.colorbar(rings, ax=axes, label=said, shrink=0.7)
    ring = Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        color=style.BLUE,
        markersize=9,
        label=f"measurement error (SD){times(many)}",
    )
    style.legend(axes, [marks, ring])
    return MeanShapeArtists(marks, None, rings, tuple(names(axes, mean, found.landmarks)))


def _arrow_sign(label: str, colour: str = style.OBSERVED) -> Line2D:
    return Line2D([], [], color=colour, marker=">", markersize=5, label=label)
