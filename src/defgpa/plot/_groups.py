"""Draw disparities, canonical variates, allometry by groups and trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from defgpa.palette import assign_looks
from defgpa.plot import _style as style
from defgpa.plot._axis_ends import ShapeAxis, draw_ends
from defgpa.statistics import Classification, Disparity, GroupAllometry, Trajectories


def disparity(disparity: Disparity, ax: Axes | None = None) -> style.Artists:
    """Draw the Procrustes variance of every group with its 95 % interval.

    Parameters
    ----------
    disparity : Disparity
        The variances of the groups, of `defgpa.statistics.disparity`.
    ax : Axes, optional
        Where to draw; a new figure by default.

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
    g = len(disparity.groups)
    axes = style.prepare_axes(ax, 2, height=1.3 + 0.45 * g)
    places = np.arange(g)
    intervals = axes.hlines(
        places,
        disparity.intervals[:, 0],
        disparity.intervals[:, 1],
        color=style.MISSING,
        linewidth=6,
    )
    variances = axes.plot(disparity.variances, places, "D", color=style.REFERENCE)[0]
    axes.set_yticks(places, [style.break_name(name) for name in disparity.groups])
    axes.set_ylim(g - 0.5, -0.5)
    kind = "Partial disparity" if disparity.partial else "Procrustes variance"
    axes.set_xlabel(f"{kind}, with 95 % interval")
    axes.set_xlim(left=0.0)
    axes.locator_params(axis="x", nbins=6)
    return style.Artists(variances=variances, intervals=intervals)


def canonical_variates(
    classification: Classification,
    ax: Axes | None = None,
    *,
    links: Sequence[tuple[int, int]] = (),
    magnify: float | None = None,
) -> style.Artists:
    """Draw specimens on the first two canonical variates, with the shapes at the ends of each.

    Specimens assigned elsewhere are ringed. With two groups there is one variate: its values are
    drawn against the posterior probability of the specimen's own group.

    Parameters
    ----------
    classification : Classification
        Of ``defgpa.statistics.classify``.
    ax : Axes, optional
        Where to draw; a new figure by default. The ends stand below and to the right of it.
    links : sequence of (int, int)
        Landmarks joined by a line in the shapes at the ends.
    magnify : float, optional
        By how much the change at the ends is magnified; by default so that it can be seen.

    Returns
    -------
    Artists
        ``specimens``, one marker set a group, the ``rings``, ``ends``: the axes with the shapes
        there, and ``magnify``.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import classify
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(12, 8, 2))
    >>> classification = classify(x, list("abc") * 4, 2, n_permutations=9)
    >>> len(canonical_variates(classification, Figure().subplots()).specimens)
    3
    """
    axes = style.prepare_axes(ax, 2, height=5.2)
    horizontal = classification.variates[:, 0]
    has_second = classification.variates.shape[1] > 1
    vertical = (
        classification.variates[:, 1]
        if has_second
        else classification.posterior[np.arange(len(horizontal)), classification.true]
    )
    points = np.column_stack([horizontal, vertical])
    names = [classification.groups[group] for group in classification.true]
    specimens = tuple(style.draw_groups(axes, points, names).values())
    is_wrong = classification.true != classification.assigned
    rings = axes.plot(
        *points[is_wrong].T,
        "o",
        fillstyle="none",
        color=style.GREY,
        markersize=1.8 * style.choose_marker_size(len(points)),
        label="assigned elsewhere",
    )[0]
    labels = [
        f"Canonical variate {k} ({share:.1%} between groups)"
        for k, share in enumerate(classification.shares[:2], 1)
    ]
    if not has_second:
        labels = ["Canonical variate 1", "Probability of its own group, left out"]
    axes.set(xlabel=labels[0], ylabel=labels[1])
    sides = [
        ShapeAxis(
            classification.mean,
            np.array([scores.min(), scores.max()])[:, None, None] * change,
            (f"CV{k} {scores.min():+.1f}", f"CV{k} {scores.max():+.1f}"),
        )
        for k, (scores, change) in enumerate(
            zip(classification.variates.T, classification.axes, strict=True), 1
        )
    ]
    ends, factor = draw_ends(
        axes, sides[0], sides[1] if has_second else None, links, magnify=magnify
    )
    style.add_legend(axes, may_grow=ax is None)
    return style.Artists(specimens=specimens, rings=rings, ends=ends, magnify=factor)


def between_groups(classification: Classification, ax: Axes | None = None) -> style.Artists:
    """Draw the scores of between-group PCA, every specimen left out of the means of the groups.

    Scores that are not left out part groups even in noise. With two groups there is one axis, and
    the scores that are not left out stand across.

    Parameters
    ----------
    classification : Classification
        Of ``defgpa.statistics.classify``.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``specimens``, one marker set a group.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import classify
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(12, 8, 2))
    >>> classification = classify(x, list("abc") * 4, 2, n_permutations=9)
    >>> len(between_groups(classification, Figure().subplots()).specimens)
    3
    """
    axes = style.prepare_axes(ax, 2)
    left_out = classification.between_scores_left_out
    has_second = left_out.shape[1] > 1
    points = left_out[:, :2]
    if not has_second:
        points = np.column_stack([classification.between_scores[:, 0], left_out[:, 0]])
    names = [classification.groups[group] for group in classification.true]
    specimens = tuple(style.draw_groups(axes, points, names).values())
    axes.set(
        xlabel="bgPC1, left out" if has_second else "bgPC1, not left out",
        ylabel="bgPC2, left out" if has_second else "bgPC1, left out",
    )
    style.add_legend(axes, may_grow=ax is None)
    return style.Artists(specimens=specimens)


def group_allometry(result: GroupAllometry, ax: Axes | None = None) -> style.Artists:
    """Draw the three common scores of allometry over size: CAC, regression score, predicted line.

    Parameters
    ----------
    result : GroupAllometry
        Of ``defgpa.statistics.group_allometry``.
    ax : Axes, optional
        Where to draw, divided into three; a new figure by default.

    Returns
    -------
    Artists
        ``panels``, the three axes, and ``scores``, the artists of the groups in each.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import group_allometry as compare
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(12, 8, 2))
    >>> drawn = group_allometry(compare(x, list("ab") * 6, n_permutations=9), Figure().subplots())
    >>> len(drawn.panels), len(drawn.scores[0])
    (3, 2)
    """
    axes = style.prepare_axes(ax, 2, height=3.2)
    titles = ("common component (CAC)", "regression score", "predicted line")
    values = (result.common_component, result.regression_scores, result.predicted_line)
    names = [result.groups[code] for code in result.codes]
    panels, scores = style.divide_axes(axes, 3), []
    for panel, title, score in zip(panels, titles, values, strict=True):
        places = np.column_stack([np.log(result.sizes), score])
        scores.append(tuple(style.draw_groups(panel, places, names).values()))
        panel.set_ylabel(title)
        panel.locator_params(nbins=4)
        panel.tick_params(labelsize=7)
    panels[1].set_xlabel("log size")
    handles = list(scores[0])
    width = 0.9 * axes.figure.get_figwidth()
    n_columns = style.count_legend_columns(panels[0], handles, 4, width)
    legend = style.add_legend(panels[0], handles, width=width, may_grow=ax is None)
    # the layout would make the first panel as wide as the legend: reserve its height alone
    legend.set_in_layout(False)
    n_rows = -(-len(handles) // n_columns)
    panels[0].set_title(" ", pad=72.0 * style.LEGEND_ROW * n_rows)
    return style.Artists(panels=panels, scores=tuple(scores))


def trajectories(result: Trajectories, ax: Axes | None = None) -> style.Artists:
    """Draw the paths of groups through their stages, on the principal components of the means.

    Parameters
    ----------
    result : Trajectories
        Of ``defgpa.statistics.trajectories``.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``paths`` of the groups, and ``names`` of the stages.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.statistics import trajectories as compare
    >>> from matplotlib.figure import Figure
    >>> x = np.random.default_rng(0).normal(size=(12, 8, 2))
    >>> result = compare(x, list("ab") * 6, np.repeat([1, 2, 3], 4), 9)
    >>> len(trajectories(result, Figure().subplots()).paths)
    2
    """
    axes = style.prepare_axes(ax, 2)
    g, s = result.means.shape[:2]
    flat = result.means.reshape(g * s, -1)
    U, lengths, _ = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    places = (U[:, :2] * lengths[:2]).reshape(g, s, 2)
    shares = 100 * lengths**2 / (lengths**2).sum()
    paths, names = [], []
    for place, (name, look) in zip(places, assign_looks(result.groups).items(), strict=True):
        line = axes.plot(*place.T, "-", marker=look.marker, color=look.colour, label=name)[0]
        axes.plot(*place[0], look.marker, color=look.colour, markerfacecolor="white")
        paths.append(line)
        names += style.label_points(axes, place, [style.shorten(stage) for stage in result.stages])
    axes.set(
        xlabel=f"PC1 of the means ({shares[0]:.1f} %)",
        ylabel=f"PC2 of the means ({shares[1]:.1f} %)",
    )
    axes.margins(0.12)
    style.add_legend(axes, paths, may_grow=ax is None)
    style.add_note(axes, "hollow: the first stage")
    return style.Artists(paths=tuple(paths), names=tuple(names))
