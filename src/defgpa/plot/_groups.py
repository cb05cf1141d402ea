"""Draw disparities with their intervals, and specimens along canonical variates."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.plot import _style as style
from defgpa.statistics import Classification, Disparity


def disparity(found: Disparity, ax: Axes | None = None) -> style.Artists:
    """Draw the Procrustes variance of every group with its 95 % interval.

    Returns
    -------
    Artists
        ``variances``, the markers, and their ``intervals``.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import disparity as compare
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(12, 8, 2))
    >>> drawn = disparity(compare(x, list("ab") * 6, n_permutations=9), Figure().subplots())
    >>> len(drawn.variances.get_xdata())
    2
    """
    g = len(found.groups)
    axes = style.prepare_axes(ax, 2, height=1.3 + 0.45 * g)
    places = np.arange(g)
    intervals = axes.hlines(
        places, found.intervals[:, 0], found.intervals[:, 1], color=style.MISSING, linewidth=6
    )
    variances = axes.plot(found.variances, places, "D", color=style.REFERENCE)[0]
    axes.set_yticks(places, [style.shorten(name) for name in found.groups])
    axes.set_ylim(g - 0.5, -0.5)
    kind = "Partial disparity" if found.partial else "Procrustes variance"
    axes.set_xlabel(f"{kind}, with 95 % interval")
    axes.set_xlim(left=0.0)
    return style.Artists(variances=variances, intervals=intervals)


def canonical_variates(found: Classification, ax: Axes | None = None) -> style.Artists:
    """Draw specimens on the first two canonical variates; those assigned elsewhere are ringed.

    With two groups there is one variate: its values are drawn against the posterior probability of
    the specimen's own group.

    Returns
    -------
    Artists
        ``specimens``, one marker set a group, and the ``rings``.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import classify
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(12, 8, 2))
    >>> found = classify(x, list("abc") * 4, 2, n_permutations=9)
    >>> len(canonical_variates(found, Figure().subplots()).specimens)
    3
    """
    axes = style.prepare_axes(ax, 2)
    across = found.variates[:, 0]
    has_second = found.variates.shape[1] > 1
    up = found.variates[:, 1] if has_second else found.posterior[np.arange(len(across)), found.true]
    points = np.column_stack([across, up])
    names = [found.groups[group] for group in found.true]
    specimens = tuple(style.draw_groups(axes, points, names).values())
    wrong = found.true != found.assigned
    rings = axes.plot(
        *points[wrong].T,
        "o",
        fillstyle="none",
        color=style.GREY,
        markersize=11,
        label="assigned to another group when left out",
    )[0]
    label = "Canonical variate 2" if has_second else "Probability of its own group, left out"
    axes.set(xlabel="Canonical variate 1", ylabel=label)
    style.add_legend(axes)
    return style.Artists(specimens=specimens, rings=rings)
