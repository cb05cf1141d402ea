"""How shape changes with size: scores along the regression, and what it predicts at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from defgpa._arrays import Array
from defgpa.plot import _style as style
from defgpa.plot._flat import Links, map_axes, skeleton, view_of
from defgpa.statistics import Allometry

_LOOKS = (
    (style.BLUE, "o"),
    (style.ORANGE, "s"),
    (style.GREEN, "^"),
    (style.PURPLE, "D"),
    (style.SKY, "v"),
    (style.BLACK, "P"),
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
    scores = tuple(
        axes.plot(
            found.sizes[(own := np.array([label == name for label in labels]))],
            found.scores[own],
            linestyle="none",
            marker=marker,
            color=colour,
            alpha=0.8,
            label=style.shortened(name),
        )[0]
        for name, (colour, marker) in zip(dict.fromkeys(labels), cycle(_LOOKS), strict=False)
    )
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
    corners = ((0.01, 0.58), (0.66, 0.01))
    drawn = {
        word: _corner(axes, where, view(mean), shape, word, links)
        for where, shape, word in zip(corners, (small, large), ("smallest", "largest"), strict=True)
    }
    return style.Artists(scores=scores, line=line, **drawn)


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
    edges = list(links)
    skeleton(inset, mean, edges)
    skeleton(inset, shape, edges, color=style.REFERENCE, linewidth=0.9)
    style.dots(inset, mean, "mean", "o", style.UNSEEN, markersize=3)
    drawn = style.dots(inset, shape, word, "o", style.REFERENCE, markersize=3)
    inset.set_title(word, fontsize="small", pad=2)
    return drawn
