"""Tests drawn on mean shapes: which landmarks differ, are asymmetric, change with size, err.

A 2-D shape is drawn as it is, a 3-D one as it is seen along its shortest principal axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa._arrays import Array
from defgpa.plot import _style as style
from defgpa.statistics import Allometry, LandmarkDifferences, Repeatability, Symmetry

Links = Iterable[tuple[int, int]]

_ARROW = {"width": 0.004, "zorder": 3}
_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.BLACK)
_MARKERS = "os^DvP"


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


def allometry(
    found: Allometry,
    ax: Axes | None = None,
    *,
    groups: Sequence[str] | None = None,
    links: Links = (),
) -> style.Artists:
    """Regression scores over size, with the expected shapes of the smallest and largest.

    In the two corners that a rising line leaves free; the mean shape is grey.

    Parameters
    ----------
    found : Allometry
        Of `defgpa.statistics.allometry`.
    ax : Axes, optional
        Where to draw; a new figure by default.
    groups : sequence of n labels, optional
        For markers and colours.
    links : iterable of (int, int)
        Landmarks to join by lines.

    Returns
    -------
    Artists
        ``scores`` (one artist a group), ``line``, and the shapes ``smallest`` and ``largest``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import allometry as regress
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(10, 8, 2))
    >>> drawn = allometry(regress(x, n_permutations=99), Figure().subplots())
    >>> len(drawn.scores[0].get_xdata())
    10
    """
    axes = style.axes_for(ax, 2)
    labels = ["shapes"] * len(found.sizes) if groups is None else [str(g) for g in groups]
    places = np.column_stack([found.sizes, found.scores])
    scores = []
    looks = cycle(zip(_COLOURS, _MARKERS, strict=True))
    for name, (colour, marker) in zip(dict.fromkeys(labels), looks, strict=False):
        own = places[[label == name for label in labels]]
        scores.append(style.dots(axes, own, style.shortened(name), marker, colour, alpha=0.8))
    ends = np.array([found.sizes.min(), found.sizes.max()])
    between = np.geomspace(ends[0], ends[1], 50)
    row = found.anova["log(size)"]
    line = axes.plot(
        between,
        found.predicted_scores(between),
        color=style.REFERENCE,
        label=f"regression, R² {row.r_squared:.3f}, P {row.p:.3g}",
    )[0]
    axes.set(xscale="log", xlabel="size", ylabel="regression score")
    _plain_ticks(axes, ends)
    reach = float(np.ptp(found.scores))
    axes.set_ylim(found.scores.min() - 0.12 * reach, found.scores.max() + 0.12 * reach)
    style.legend(axes)
    mean = found.anova.tangents.mean(axis=0)
    view = view_of(mean)
    small, large = (view(shape) for shape in found.predict(ends))
    edges = list(links)  # an iterator would be over after the first corner
    return style.Artists(
        scores=tuple(scores),
        line=line,
        smallest=_corner(axes, (0.01, 0.58), view(mean), small, "smallest", edges),
        largest=_corner(axes, (0.66, 0.01), view(mean), large, "largest", edges),
    )


def _plain_ticks(axes: Any, ends: Array) -> None:
    """A few sizes as people write them: a narrow logarithmic axis has no decades."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axes.xaxis.set_major_locator(FixedLocator(list(MaxNLocator(5).tick_values(*ends))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(ends[0] / 1.03, ends[1] * 1.03)


def _corner(
    axes: Any, where: tuple[float, float], mean: Array, shape: Array, word: str, links: Links
) -> Any:
    inset = map_axes(axes.inset_axes((*where, 0.33, 0.33)))
    inset.patch.set_alpha(0.0)
    skeleton(inset, mean, links)
    skeleton(inset, shape, links, color=style.REFERENCE, linewidth=0.9)
    style.dots(inset, mean, "mean", "o", style.UNSEEN, markersize=3)
    drawn = style.dots(inset, shape, word, "o", style.REFERENCE, markersize=3)
    inset.set_title(word, fontsize="small", pad=2)
    return drawn


def view_of(mean: Array) -> Callable[[Array], Array]:
    """From points or displacements (…, d) to what is drawn (…, 2).

    A plane shape as it is; of others the plane of the two longest principal axes.
    """
    matrix = np.eye(2)
    if mean.shape[1] == 3:
        matrix = np.linalg.svd(mean - mean.mean(axis=0), full_matrices=False)[2][:2].T
    return lambda points: np.asarray(points @ matrix)


def map_axes(ax: Axes | None) -> Any:
    """Axes for a shape in units of centroid size: equal scales, no ticks."""
    axes = style.axes_for(ax, 2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def magnifier(lengths: Array, mean: Array, given: float | None) -> float:
    """As given, or 1, 2 or 5 times a power of ten, so that the longest can be seen but not more."""
    if given is not None:
        return given
    longest = float(np.max(lengths, initial=0.0))
    if not longest > 0:
        return 1.0
    wanted = 0.15 * float(np.ptp(mean, axis=0).max()) / longest  # for the longest arrow or circle
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(step * power for step in (1.0, 2.0, 5.0) if step * power <= wanted))


def times(magnify: float) -> str:
    """``, 10 × as large``, or nothing."""
    return "" if magnify == 1.0 else f", {magnify:g} × as large"


def skeleton(ax: Any, drawn: Array, links: Links, **look: Any) -> Any:
    """Lines between landmarks, if there are any."""
    return style.wireframe(ax, drawn, links, **{"color": style.UNSEEN, "zorder": 0, **look})


def circles(ax: Any, centres: Array, radii: Array, **look: Any) -> Any:
    """Circles in the units of the axes, which the view holds."""
    from matplotlib.collections import EllipseCollection

    wide = 2.0 * radii
    placed = {"units": "xy", "offsets": centres, "transOffset": ax.transData}
    drawn = ax.add_collection(EllipseCollection(wide, wide, 0.0 * wide, **placed, **look))
    for sign in (-1.0, 1.0):
        style.dots(ax, centres + sign * radii[:, None], "_rims", "None")
    return drawn


def names(ax: Any, drawn: Array, labels: Sequence[str]) -> list[Any]:
    """Landmark labels beside their points."""
    return [
        style.beside(ax, style.shortened(label, 10), point, (4, 4), color="#444444", zorder=4)
        for label, point in zip(labels, drawn, strict=True)
    ]
