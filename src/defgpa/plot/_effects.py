"""Draw observed effects beside permuted ones, and distances between groups."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, NullFormatter

from defgpa.errors import ShapeError
from defgpa.plot import _style as style
from defgpa.statistics import EffectSizes, PairwiseDistances, ProcrustesAnova

_PALE = ListedColormap(style.ERRORS(np.linspace(0.0, 0.6, 256)))  # dark figures stay readable
_CHARACTER = 0.09  # inches, in the font of the ticks


def effects(anova: ProcrustesAnova, ax: Axes | None = None) -> style.Artists:
    """Draw the F of every term beside the F of permuted residuals.

    A grey bar spans 95 % of the permutations, its tick is their median.

    Parameters
    ----------
    anova : ProcrustesAnova
        A model with its terms tested.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``observed`` F of the terms, the span of ``chance``, and ``labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import procrustes_anova
    >>> from matplotlib.figure import Figure
    >>> x = np.random.default_rng(0).normal(size=(8, 2)) + 0.1 * np.random.default_rng(1).normal(
    ...     size=(10, 8, 2)
    ... )
    >>> model = procrustes_anova("shape ~ kind", x, {"kind": list("aaaaabbbbb")}, 99)
    >>> len(effects(model, Figure().subplots()).labels)
    1
    """
    rows = [(k, row) for k, row in enumerate(anova.table) if row.f == row.f]
    if not rows:
        raise ShapeError("This model has no term whose F could be shown.")
    axes = style.prepare_axes(ax, 2, height=1.4 + 0.65 * len(rows))
    permuted = anova.ratios.permuted[:, [k for k, _ in rows]]
    low, middle, high = np.nanquantile(permuted, [0.0, 0.5, 0.95], axis=0)
    places = np.arange(len(rows))
    ratios = [row.f for _, row in rows]
    floor = max(float(low.min()), 1e-3 * float(middle.min()))
    left = min(floor, max(min(ratios), floor) / 3.0)  # room for the label of the smallest
    chance = axes.barh(
        places,
        high - left,
        left=left,
        height=0.36,
        color=style.MISSING,
        label="95 % of permutations",
    )
    axes.plot(middle, places, "|", color=style.GREY, markersize=14, label="median permutation")
    observed = axes.plot(ratios, places, "D", color=style.REFERENCE, label="observed")[0]
    labels = tuple(
        _label_effect(axes, (row.f, place), f"Z = {row.z:.2f}, P = {row.p:.3g}", left)
        for place, (_, row) in enumerate(rows)
    )
    axes.set(xscale="log", xlabel="F, ratio of mean squares")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(places, [style.shorten(row.term) for _, row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.7)
    axes.set_xlim(left, 4.0 * max(float(high.max()), *ratios))
    style.add_legend(axes)
    return style.Artists(observed=observed, chance=chance, labels=labels)


def _label_effect(
    ax: style.AnyAxes, place: tuple[float, float], words: str, left: float
) -> Annotation:
    """Write words above the F of a term, at the edge if F is too small for the axis."""
    f, row = place
    if f >= left:
        return style.annotate_point(ax, words, place, (0, 11), ha="center")
    ax.plot(left, row, "<", color=style.REFERENCE, clip_on=False)
    return style.annotate_point(ax, f"F = {f:.2g}, {words}", (left, row), (4, 11), ha="left")


def pairwise(distances: PairwiseDistances, ax: Axes | None = None) -> style.Artists:
    """Draw the distances between the mean shapes of groups, with P; bold at 0.05 or below.

    Parameters
    ----------
    distances : PairwiseDistances
        The distances between groups, of `ProcrustesAnova.pairwise`.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``image`` of the distances, and the figures in it, ``labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from defgpa.statistics import procrustes_anova
    >>> points = np.random.default_rng(0).normal(size=(8, 6, 2))
    >>> model = procrustes_anova("shape ~ kind", points, {"kind": list("aaaabbbb")}, 99)
    >>> len(pairwise(model.pairwise("kind"), Figure().subplots()).labels)
    1
    """
    g = len(distances.names)
    width = 3.8 / max(g - 1, 1)  # of a cell in inches, beside names and colour bar
    height = float(np.clip(width, 0.34, 0.8))
    n_lines = max(2, int(height / 0.2))
    names = [style.break_name(name, max_lines=n_lines) for name in distances.names]
    longest = _CHARACTER * max(len(line) for name in names for line in name.split("\n"))
    is_level = longest < 0.95 * width
    below = 0.2 * n_lines if is_level else longest
    axes = style.prepare_axes(ax, 2, height=0.3 + below + (g - 1) * height)
    lower_triangle = np.where(np.tri(g, k=-1, dtype=bool), distances.distances, np.nan)
    image = axes.imshow(lower_triangle, cmap=_PALE, vmin=0.0, aspect="auto")
    dark = 0.6 * float(np.nanmax(distances.distances))
    cell = 0.62 * axes.figure.get_figwidth() / max(g - 1, 1)  # inches, beside names and colour bar
    size = float(np.clip(12.0 * cell, 3.5, 8.5))  # points at which "P = 0.123" fits into a cell
    labels = tuple(
        style.write_in_cell(
            axes,
            a,
            b,
            f"{distances.distances[a, b]:.3g}\nP = {distances.p[a, b]:.3f}",
            distances.distances[a, b] > dark,
            fontsize=size,
            fontweight="bold" if distances.p[a, b] <= 0.05 else "normal",
        )
        for a in range(g)
        for b in range(a)
    )
    axes.set_xticks(range(g - 1), names[:-1], rotation=0 if is_level else 90)
    axes.set_yticks(range(1, g), names[1:])
    axes.set(xlim=(-0.5, g - 1.5), ylim=(g - 0.5, 0.5))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    bar = axes.figure.colorbar(image, ax=axes)
    style.label_colorbar(bar, "Procrustes distance", axes.figure.get_figheight() - below - 0.3)
    return style.Artists(image=image, labels=labels)


def effect_sizes(sizes: EffectSizes, ax: Axes | None = None) -> style.Artists:
    """Draw how far the statistic of every data set lies above chance, in one unit.

    Two effects differ where their distance is large against both bars, the standard deviations of
    their permuted values.

    Parameters
    ----------
    sizes : EffectSizes
        Of ``defgpa.statistics.compare_effect_sizes``.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``observed``, the markers, their ``spreads``, and ``labels``.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import compare_effect_sizes, integration
    >>> from matplotlib.figure import Figure
    >>> x = np.random.default_rng(0).normal(size=(2, 20, 8, 2))
    >>> sizes = compare_effect_sizes([integration(own, "aaaabbbb", 99) for own in x])
    >>> len(effect_sizes(sizes, Figure().subplots()).labels)
    2
    """
    k = len(sizes.names)
    axes = style.prepare_axes(ax, 2, height=1.3 + 0.55 * k)
    places = np.arange(k)
    low, high = sizes.deviations - sizes.spreads, sizes.deviations + sizes.spreads
    spreads = axes.hlines(places, low, high, color=style.MISSING, linewidth=6)
    observed = axes.plot(sizes.deviations, places, "D", color=style.REFERENCE)[0]
    labels = tuple(
        style.annotate_point(axes, f"Z = {z:.2f}", (x, place), (0, 7), ha="center")
        for z, x, place in zip(sizes.effect_sizes, sizes.deviations, places, strict=True)
    )
    axes.axvline(0.0, color=style.GREY, linewidth=1, zorder=0)
    axes.set_yticks(places, [style.break_name(name) for name in sizes.names])
    axes.locator_params(axis="x", nbins=6)
    axes.set_ylim(k - 0.5, -0.7)
    axes.set_xlabel(f"{sizes.statistic} above chance, transformed, ± 1 SD of chance")
    return style.Artists(observed=observed, spreads=spreads, labels=labels)
