"""Tests drawn on the mean shape: which landmarks differ, are asymmetric, or are ill measured."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.plot import _style as style
from defgpa.plot._flat import Links, circles, magnifier, map_axes, names, skeleton, times, view_of
from defgpa.statistics import LandmarkDifferences, Repeatability, Symmetry

_ARROW = {"width": 0.004, "zorder": 3}


def landmark_differences(
    found: LandmarkDifferences,
    ax: Axes | None = None,
    *,
    level: float = 0.05,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """Which landmarks differ between two groups: arrows from the first mean to the second.

    Those that differ at this rate of false discoveries are full and named.

    Returns
    -------
    Artists
        ``mean`` (landmarks that differ), ``arrows``, and ``labels`` beside the former.

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
    axes, view = map_axes(ax), view_of(found.mean)
    mean, vectors = view(found.mean), view(found.difference)
    many = magnifier(np.linalg.norm(vectors, axis=1), mean, magnify)
    skeleton(axes, mean, links)
    sure = found.significant(level)
    drawn = style.arrows(axes, mean, many * vectors, style.OBSERVED, **_ARROW)
    rest = style.dots(
        axes, mean[~sure], "no difference shown", "o", style.GREY, markerfacecolor="white"
    )
    marks = style.dots(axes, mean[sure], f"differ (q ≤ {level:g})", "o", style.REFERENCE)
    words = f"{found.groups[0]} to {found.groups[1]}{times(many)}"
    sign = style.sign(">", style.OBSERVED, words, markersize=5)
    style.legend(axes, [marks, rest, sign])
    labels = [label for label, own in zip(found.landmarks, sure, strict=True) if own]
    return style.Artists(
        mean=marks, arrows=drawn, circles=None, labels=tuple(names(axes, mean[sure], labels))
    )


def symmetry(
    found: Symmetry,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """The symmetric mean with its directional asymmetry as arrows, fluctuating as circles.

    The radius of a circle is the RMS of a landmark's fluctuating asymmetry, magnified like the
    arrows; paired landmarks are joined.

    Returns
    -------
    Artists
        ``mean``, ``arrows`` (directional) and ``circles`` (fluctuating).

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
    axes, view = map_axes(ax), view_of(found.mean)
    mean, vectors = view(found.mean), view(found.directional)
    radii = np.sqrt((found.fluctuating**2).sum(axis=2).mean(axis=0))
    lengths = np.concatenate([np.linalg.norm(vectors, axis=1), radii])
    many = magnifier(lengths, mean, magnify)
    skeleton(axes, mean, links)
    skeleton(axes, mean, found.pairs, linestyle=":", color=style.GREY, linewidth=0.8)
    rings = circles(axes, mean, many * radii, facecolor=style.SKY, alpha=0.35, edgecolor=style.BLUE)
    drawn = style.arrows(axes, mean, many * vectors, style.VERMILLION, **_ARROW)
    marks = style.dots(axes, mean, "symmetric mean", "o", style.BLACK, markersize=3)
    ring = style.sign("o", style.SKY, "fluctuating (RMS)", linestyle="none", markersize=9)
    sign = style.sign(">", style.VERMILLION, f"directional{times(many)}", markersize=5)
    style.legend(axes, [marks, sign, ring], ncols=3)
    return style.Artists(mean=marks, arrows=drawn, circles=rings, labels=())


def repeatability(
    found: Repeatability,
    ax: Axes | None = None,
    *,
    magnify: float | None = None,
    links: Links = (),
) -> style.Artists:
    """Where measuring errs: circles as large as the error, darker where less is repeatable.

    Returns
    -------
    Artists
        ``mean``, ``circles`` and ``labels``.

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
    axes, view = map_axes(ax), view_of(found.mean)
    mean = view(found.mean)
    many = magnifier(found.error, mean, magnify)
    skeleton(axes, mean, links)
    least = min(float(found.per_landmark.min()), 0.999)
    rings = circles(
        axes, mean, many * found.error, cmap=style.ERRORS.reversed(), alpha=0.8, edgecolor="none"
    )
    rings.set_array(found.per_landmark)
    rings.set_clim(least, 1.0)
    marks = style.dots(axes, mean, "mean", "o", style.BLACK, markersize=2.5)
    said = f"repeatability ({found.overall:.3f} over all)"
    axes.figure.colorbar(rings, ax=axes, label=said, shrink=0.7)
    words = f"measurement error (SD){times(many)}"
    ring = style.sign("o", style.BLUE, words, linestyle="none", markersize=9)
    style.legend(axes, [marks, ring])
    return style.Artists(
        mean=marks, arrows=None, circles=rings, labels=tuple(names(axes, mean, found.landmarks))
    )
