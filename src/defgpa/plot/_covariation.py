"""Draw a tree in morphospace, two blocks that vary together, and statistics beside chance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.plot import _style as style
from defgpa.plot._axis_ends import ShapeAxis, draw_ends
from defgpa.plot._views import choose_magnification, choose_view, draw_change, find_limits
from defgpa.statistics import (
    EvolutionaryRates,
    MeasurementError,
    ModelComparison,
    ModuleTest,
    PhylogeneticComponents,
    PhylogeneticSignal,
    TwoBlockPLS,
)

PermutedStatistic = (
    ModuleTest
    | TwoBlockPLS
    | PhylogeneticSignal
    | EvolutionaryRates
    | ModelComparison
    | MeasurementError
)
_LABELS = {
    "phylomorphospace": "PC{} ({:.1f} % of the variance)",
    "phylogenetic": "phylogenetic PC{} ({:.1f} %)",
    "aligned": "phylogenetically aligned component {} ({:.1f} %)",
}


def phylomorphospace(
    components: PhylogeneticComponents,
    ax: Axes | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    which: tuple[int, int] = (1, 2),
    magnify: float | None = None,
) -> style.Artists:
    """Draw the tree in morphospace, and the shape of the root beside it.

    Parameters
    ----------
    components : PhylogeneticComponents
        Of ``defgpa.statistics.phylogenetic_components``.
    ax : Axes, optional
        Where to draw; a new figure by default. The root stands in the corner with most room,
        bent from the mean of the species.
    groups : sequence of n, optional
        One value a species, in the order of the tree of the components.
    which : pair of int
        The components, counted from 1.
    magnify : float, optional
        By how much the difference of the root from the mean is magnified; by default so that it
        can be seen.

    Returns
    -------
    Artists
        ``branches``, ``dots`` of the species, ``ancestors``, ``root``, ``names``, ``shape``: the
        axes with the shape of the root, and ``magnify``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> wings = defgpa.datasets.load_wings().take(range(4))
    >>> tree = "((a:1,b:1):1,(c:1,d:1):1);"
    >>> found = defgpa.statistics.phylogenetic_components(wings, tree, list("abcd"))
    >>> len(phylomorphospace(found, Figure().subplots()).names)
    4
    """
    available = components.scores.shape[1]
    if len(which) != 2 or not all(k in range(1, available + 1) for k in which):
        raise ShapeError(
            f"The 'which' parameter must name two components from 1 to {available}. Got {which!r}."
        )
    axes = style.prepare_axes(ax, 2)
    places = components.node_scores[:, [k - 1 for k in which]]
    n = len(components.scores)
    branches = LineCollection(
        list(places[components.tree.branches]), colors=style.GREY, linewidths=1.0
    )
    branches.set_zorder(1)
    axes.add_collection(branches)
    ancestors = style.draw_dots(
        axes, places[n + 1 :], "ancestor", "o", style.GREY, markersize=3, zorder=2
    )
    root = style.draw_dots(axes, places[n : n + 1], "root", "D", "black", markersize=6, zorder=4)
    dots = style.draw_groups(axes, places[:n], groups)
    for k, set_label in zip(which, (axes.set_xlabel, axes.set_ylabel), strict=True):
        set_label(_LABELS[components.method].format(k, 100 * components.shares[k - 1]))
    axes.margins(x=0.16, y=0.12)
    axes.autoscale_view()
    names = style.label_points(
        axes, places[:n], [style.shorten(name) for name in components.tree.tips]
    )
    handles = [ancestors, root] + ([] if groups is None else list(dots.values()))
    style.add_legend(axes, handles, may_grow=ax is None)
    shape, factor = _draw_root(axes, components, places, magnify)
    return style.Artists(
        branches=branches,
        dots=tuple(dots.values()),
        ancestors=ancestors,
        root=root,
        names=tuple(names),
        shape=shape,
        magnify=factor,
    )


def _draw_root(
    ax: Axes, components: PhylogeneticComponents, places: Array, magnify: float | None
) -> tuple[Axes, float]:
    """Draw the shape of the root in the corner of the axes that is farthest from all nodes."""
    mean, root = components.shapes.mean(axis=0), components.ancestors[0]
    view = choose_view(mean, (root - mean)[None])
    lengths = np.linalg.norm(view(root) - view(mean), axis=1)
    factor = max(1.0, choose_magnification(lengths, view(mean), None))
    factor = factor if magnify is None else magnify
    shown = mean + factor * (root - mean)
    low, high = places.min(axis=0), places.max(axis=0)
    shares = (places - low) / np.where(high > low, high - low, 1.0)
    corners = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    distances = [np.abs(shares - corner).max(axis=1).min() for corner in corners]
    x, y = corners[int(np.argmax(distances))]
    inset = ax.inset_axes((0.01 + 0.68 * x, 0.02 + 0.66 * y, 0.3, 0.3))
    draw_change(inset, mean, shown, view, components.links, None)
    limits = find_limits(view, [mean, shown])
    inset.set(xlim=limits[0], ylim=limits[1])
    magnified = "" if factor == 1.0 else f", change × {factor:g}"
    inset.set_title(f"root{magnified}", fontsize=8, pad=2)
    inset.patch.set_alpha(0.0)
    return inset, float(factor)


def covariation(
    pls: TwoBlockPLS,
    ax: Axes | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    axis: int = 1,
    names: tuple[str, str] | None = None,
    magnify: float | None = None,
) -> style.Artists:
    """Draw the scores of two blocks along a pair of axes, with the shapes at the ends of each.

    Parameters
    ----------
    pls : TwoBlockPLS
        Of ``defgpa.statistics.two_block_pls``.
    ax : Axes, optional
        Where to draw; a new figure by default.
    groups : sequence of n, optional
        One value a specimen.
    axis : int
        The pair of axes, counted from 1.
    names : pair of str, optional
        Of the blocks; by default as the analysis names them.
    magnify : float, optional
        By how much the change at the ends is magnified; by default so that it can be seen.

    Returns
    -------
    Artists
        ``dots`` of the groups, the ``line`` of the major axis, and ``ends``: the axes with the
        shapes of the blocks that are shapes, those of the first block below.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> wings = defgpa.datasets.load_wings()
    >>> pls = defgpa.statistics.two_block_pls(wings, partition=["a"] * 20 + ["b"] * 23)
    >>> len(covariation(pls, Figure().subplots()).dots)
    1
    """
    if not 1 <= axis <= len(pls.singular_values):
        raise ShapeError(f"The 'axis' is 1 to {len(pls.singular_values)}. Got {axis!r}.")
    axes = style.prepare_axes(ax, 2, height=5.2)
    names = names or pls.blocks
    places = np.column_stack([pls.x_scores[:, axis - 1], pls.y_scores[:, axis - 1]])
    centre = places.mean(axis=0)
    direction = np.linalg.svd(places - centre, full_matrices=False)[2][0]
    projections = (places - centre) @ direction
    ends = centre + np.outer([projections.min(), projections.max()], direction)
    line = axes.plot(*ends.T, color=style.GREY, linewidth=1.2, zorder=1, label="major axis")[0]
    dots = style.draw_groups(axes, places, groups)
    axes.set(xlabel=f"{names[0]}, PLS axis {axis}", ylabel=f"{names[1]}, PLS axis {axis}")
    axes.margins(0.08)
    axes.locator_params(axis="x", nbins=5)  # the shapes beside it leave little width
    share = 100 * pls.shares[axis - 1]
    text = f"{share:.1f} % of the squared covariance"
    if axis == 1:
        text = f"r-PLS = {pls.r:.3f}, Z = {pls.z:.2f}, P = {pls.p:.3g}\n{text}"
    sides = [
        _describe_block(pls, axis, block, name) for block, name in zip("xy", names, strict=True)
    ]
    shapes: tuple[style.AnyAxes, ...] = ()
    if any(side is not None for side in sides):
        shapes, _ = draw_ends(axes, sides[0], sides[1], magnify=magnify)
    if groups is None:
        style.add_note(axes, text)
    else:
        handles = list(dots.values())
        style.add_legend(axes, handles, may_grow=ax is None, title=text, alignment="left")
    return style.Artists(dots=tuple(dots.values()), line=line, ends=shapes)


def _describe_block(pls: TwoBlockPLS, axis: int, block: str, name: str) -> ShapeAxis | None:
    """Return the axis of a block with the shapes at its observed ends; None for numbers."""
    scores = (pls.x_scores if block == "x" else pls.y_scores)[:, axis - 1]
    mean = pls.predict(0.0, axis, block)
    if mean.ndim != 2:
        return None
    ends = [pls.predict(score, axis, block) - mean for score in (scores.min(), scores.max())]
    return ShapeAxis(mean, np.stack(ends), (f"{name}, low", f"{name}, high"))


def permuted(
    result: PermutedStatistic,
    ax: Axes | None = None,
) -> style.Artists:
    """Draw the observed statistic in the histogram of its permuted values.

    Parameters
    ----------
    result : ModuleTest, TwoBlockPLS, PhylogeneticSignal, EvolutionaryRates, ModelComparison or \
MeasurementError
        Of a permutation test.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``bars`` of the histogram, the line of the ``observed`` value, its ``label``, and the span
        of the ``interval`` where there is one.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> wings = defgpa.datasets.load_wings()
    >>> found = defgpa.statistics.modularity(wings, ["a"] * 20 + ["b"] * 23, 99)
    >>> permuted(found, Figure().subplots()).label.get_text()[:4]
    'CR ='
    """
    name, observed, values, z, p = _describe(result)
    axes = style.prepare_axes(ax, 2)
    bars = axes.hist(values, bins=40, color=style.MISSING, label="permutations")[2]
    line = axes.axvline(observed, color=style.REFERENCE, linewidth=2, label="observed")
    interval = None
    if isinstance(result, ModuleTest) and result.interval is not None:
        interval = axes.axvspan(
            *result.interval, color=style.SKY, alpha=0.3, zorder=0, label="95 % interval"
        )
    axes.set_ylim(top=1.2 * axes.get_ylim()[1])  # room for the figures
    middle = 0.5 * sum(axes.get_xlim())
    words = f"P = {p:.3g}" if z is None else f"Z = {z:.2f}, P = {p:.3g}"
    label = axes.annotate(
        f"{name} = {observed:.3f}\n{words}",
        (observed, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if observed > middle else 6, 0),
        textcoords="offset points",
        ha="right" if observed > middle else "left",
        va="top",
    )
    axes.set(xlabel=name, ylabel="permutations")
    style.add_legend(axes)
    return style.Artists(bars=tuple(bars), observed=line, label=label, interval=interval)


def _describe(result: PermutedStatistic) -> tuple[str, float, Array, float | None, float]:
    """Return a statistic's name, observed value, permuted values, Z and P."""
    match result:
        case PhylogeneticSignal():  # its Z is that of the likelihood, not of K
            return "K", result.k, result.permuted_k, None, result.p
        case EvolutionaryRates():
            return "ratio of rates", result.ratio, result.permuted, result.z, result.p
        case ModelComparison():
            row = result.table.rows[0]
            return "F of the added terms", row.f, result.permuted, row.z, row.p
        case MeasurementError():
            row = result.table["replicate"]
            return "F of the replicate", row.f, result.permuted, row.z, row.p
        case TwoBlockPLS():
            return "r-PLS", result.r, result.permuted, result.z, result.p
    return result.statistic, result.observed, result.permuted, result.z, result.p
