"""Draw how a fit was chosen and how sure it is: errors over smoothing and rigidity, spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.model_selection import DialSurface, SmoothingPath


def smoothing_path(
    path: SmoothingPath, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """Draw RMSE_r, RMSE_d and CVE over the smoothing, with the minimum and the chosen value.

    The band is one standard error of the CVE. Where the one-standard-error rule has chosen a
    stiffer smoothing than that of the minimum, both are marked and the title says what it costs.

    Over-fitting shows in two ways: CVE rises, and RMSE_d parts from RMSE_r.

    Parameters
    ----------
    path : SmoothingPath
        From ``defgpa.select_smoothing``.
    ax : Axes, optional
        Where to draw; a new figure by default.
    unit : str, optional
        Of the errors, for the label.

    Returns
    -------
    Artists
        ``cve``, ``rmse_reference``, ``rmse_datum``: lines; ``chosen``, another, and its ``label``;
        ``minimum``: the mark of the smallest CVE, None where that was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import defgpa
    >>> wings = defgpa.datasets.load_wings()
    >>> path = defgpa.select_smoothing(defgpa.DefGPA(), wings, [1e-6, 1e-4, 1e-2], fold_size=8)
    >>> smoothing_path(path, Figure().subplots()).label.get_text()
    'chosen: 0.0001'
    """
    axes = style.prepare_axes(ax, 2)
    order = np.argsort(path.values)
    values = path.values[order]

    def draw_curve(errors: Array, label: str, color: str, marker: str, line: str) -> Artist:
        look = {"label": label, "color": color, "marker": marker, "linestyle": line}
        return axes.plot(values, np.asarray(errors)[order], markersize=4.5, **look)[0]

    cve = draw_curve(path.cve, "CVE, left-out landmarks", style.VERMILLION, "o", "-")
    datum = draw_curve(path.rmse_datum, "RMSE_d, in the space of the shapes", style.BLUE, "s", "--")
    words = "RMSE_r, in the space of the reference"
    reference = draw_curve(path.rmse_reference, words, style.GREEN, "^", ":")
    if path.standard_error is not None:
        low, high = (path.cve + sign * path.standard_error for sign in (-1, 1))
        band = {"color": style.VERMILLION, "alpha": 0.12, "linewidth": 0}
        axes.fill_between(values, low[order], high[order], label="CVE ± 1 standard error", **band)
    chosen = axes.axvline(path.best_value, color=style.GREY, linewidth=1.0, zorder=0)
    label = _mark_value(axes, path.best_value, f"chosen: {path.best_value:.3g}")
    minimum = None if path.best_value == path.least_value else _mark_minimum(axes, path)
    _set_scales(axes, path)
    axes.set(xlabel="relative smoothing (softer ← → stiffer)", ylabel=style.add_unit("error", unit))
    style.add_legend(axes, loc="best", bbox_to_anchor=None, ncols=1, fontsize="small")
    return style.Artists(
        cve=cve,
        rmse_reference=reference,
        rmse_datum=datum,
        chosen=chosen,
        label=label,
        minimum=minimum,
    )


def _mark_value(ax: style.AnyAxes, value: float, text: str) -> Artist:
    """Write a text above the axes at a value of the smoothing."""
    place: dict[str, Any] = {
        "xycoords": ("data", "axes fraction"),
        "ha": "center",
        "va": "bottom",
    }
    return style.annotate_point(ax, text, (value, 1.0), (0, 3), color="#555555", **place)


def _mark_minimum(ax: style.AnyAxes, path: SmoothingPath) -> Artist:
    """Ring the smallest CVE, and put the cost of the one-standard-error rule into the title."""
    smallest, chosen = float(np.nanmin(path.cve)), float(path.cve[path.best_index])
    look = {"markersize": 11, "fillstyle": "none", "markeredgewidth": 1.5}
    words = f"smallest CVE, at {path.least_value:.3g}"
    place = np.array([[path.least_value, smallest]])
    ring = style.draw_dots(ax, place, words, "o", style.VERMILLION, **look)
    cost = f"one-standard-error rule: costs {100 * (chosen / smallest - 1):.2g} % in CVE"
    ax.set_title(cost, fontsize="small", loc="left", pad=18, color="#555555")
    return ring


def _set_scales(ax: style.AnyAxes, path: SmoothingPath) -> None:
    """Draw decades of smoothing, and decades of error only where it spans more than one."""
    ax.set_xscale("log")
    errors = np.concatenate([path.cve, path.rmse_reference, path.rmse_datum])
    errors = errors[np.isfinite(errors) & (errors > 0)]
    if len(errors) and errors.max() > 10.0 * errors.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_ylim(bottom=0.0)


def dial_surface(surface: DialSurface, ax: Axes | None = None) -> style.Artists:
    """Draw the cross-validation error at every smoothing and rigidity, the chosen one framed.

    Every cell shows how much its error exceeds the smallest one, in per cent of it.

    Parameters
    ----------
    surface : DialSurface
        From ``defgpa.select_smoothing`` with an ElasticGPA.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        ``cells``, ``figures`` in them, and the frame around the ``chosen`` one.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> surface = SimpleNamespace(
    ...     values=np.array([1e-3, 1e-2]), rigidities=np.array([1.0, np.inf]), position=(1, 0),
    ...     surface=np.array([[2.2, 2.5], [2.0, 2.1]]))
    >>> [text.get_text() for text in dial_surface(surface, Figure().subplots()).figures]
    ['+10', '+25', '2', '+5.0']
    """
    axes = style.prepare_axes(ax, 2)
    smallest = np.nanmin(surface.surface)
    excess = surface.surface / smallest - 1.0
    shade = np.log10(np.maximum(excess, 1e-3))
    cells = axes.imshow(shade, cmap="viridis_r", vmin=-3.0, vmax=0.0, aspect="auto", origin="lower")
    figures = tuple(
        style.write_in_cell(
            axes,
            row,
            column,
            f"{smallest:.3g}" if value == 0.0 else _format_percent(value),
            bool(shade[row, column] > -1.2),
            fontsize=8,
        )
        for (row, column), value in np.ndenumerate(excess)
        if np.isfinite(value)  # what was not tried stays empty
    )
    row, column = surface.position
    look: dict[str, Any] = {"fill": False, "edgecolor": style.VERMILLION, "linewidth": 2.5}
    chosen = axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, **look))
    axes.set_xticks(range(len(surface.rigidities)), [f"{mu:g}" for mu in surface.rigidities])
    axes.set_yticks(range(len(surface.values)), [f"{tau:.2g}" for tau in surface.values])
    axes.set(xlabel="rigidity", ylabel="smoothing")
    axes.set_title("cross-validation error: the smallest, and % above it", fontsize=10)
    axes.grid(False)
    return style.Artists(cells=cells, figures=figures, chosen=chosen)


def _format_percent(excess: float) -> str:
    return f"{100 * excess:+.0f}" if excess > 0.0995 else f"{100 * excess:+.1f}"


def spectrum(alignment: Alignment, ax: Axes | None = None) -> style.Artists:
    """Draw the smallest eigenvalues of the cost P, and the gap that makes the reference unique.

    An eigenvalue is the squared residual, summed over all shapes, that the best warps leave of a
    reference axis of length 1. The first d belong to the axes of the reference. If the next one
    were as small, another reference would do as well.

    Parameters
    ----------
    alignment : Alignment
        Of ``DefGPA``; the rigid and affine methods in the space of the shapes have no spectrum.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Artists
        Eigenvalues of the ``axes``, the ``rest``, the span of the ``gap``, and its ``label``.

    Examples
    --------
    >>> import defgpa
    >>> from matplotlib.figure import Figure
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(defgpa.datasets.load_wings()).alignment_
    >>> len(spectrum(a, Figure().subplots()).axes.get_xdata())
    2
    """
    spectral = alignment.spectral
    if spectral is None or len(spectral.spectrum) <= spectral.n_axes:
        raise ShapeError(
            "This alignment has no spectrum to show: only DefGPA solves an eigenproblem, and it "
            f"needs more than {alignment.shapes.n_dims} landmarks."
        )
    values, d = spectral.spectrum, spectral.n_axes
    axes = style.prepare_axes(ax, 2, height=3.6)
    numbers = np.arange(1, len(values) + 1)
    places, look = np.column_stack([numbers, values]), {"markersize": 8, "clip_on": False}
    used = style.draw_dots(axes, places[:d], "axes of the reference", "o", style.REFERENCE, **look)
    others = style.draw_dots(axes, places[d:], "next eigenvalue, not used", "D", style.GREY, **look)
    gap = axes.axhspan(values[d - 1], values[d], color=style.SKY, alpha=0.25, linewidth=0)
    log = values.min() > 0 and values.max() > 30.0 * values.min()
    axes.set_yscale("log" if log else "linear")
    if log:
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    ends = values[[d - 1, d]]
    middle = float(np.sqrt(ends.prod()) if log else ends.mean())
    label = axes.annotate(
        f"relative gap {spectral.gap:.2g}",
        (0.02, middle),
        xycoords=("axes fraction", "data"),
        va="center",
        color="#1f4e6b",
    )
    axes.set(xticks=numbers, xlim=(0.5, len(values) + 0.5), xlabel="eigenvalue number")
    n_shapes = alignment.shapes.n_shapes
    axes.set_ylabel(
        f"eigenvalue of P: squared residual\nof a unit axis over all shapes\n"
        f"(0: warps fit exactly, {n_shapes}: not at all)",
        fontsize="small",
    )
    style.add_legend(axes)
    return style.Artists(axes=used, rest=others, gap=gap, label=label)
