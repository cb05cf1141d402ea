"""How a fit was chosen and how sure it is: errors over smoothing and rigidity, the spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.model_selection import DialSurface, SmoothingPath


def smoothing_path(
    path: SmoothingPath, ax: Axes | None = None, *, unit: str | None = None
) -> style.Artists:
    """RMSE_r, RMSE_d and CVE against the smoothing, with the chosen value.

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
        ``cve``, ``rmse_reference``, ``rmse_datum``: lines; ``chosen``, another, and its ``label``.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> path = SimpleNamespace(
    ...     values=np.array([1e-4, 1e-3, 1e-2]), cve=np.array([3.0, 2.0, 2.5]), best_value=1e-3,
    ...     rmse_reference=np.array([1.0, 1.5, 2.0]), rmse_datum=np.array([1.4, 1.6, 2.0]))
    >>> smoothing_path(path, Figure().subplots()).label.get_text()
    'chosen: 0.001'
    """
    axes = style.axes_for(ax, 2)
    order = np.argsort(path.values)

    def curve(errors: Array, label: str, color: str, marker: str, line: str) -> Any:
        return axes.plot(
            path.values[order],
            np.asarray(errors)[order],
            label=label,
            color=color,
            marker=marker,
            linestyle=line,
            markersize=4.5,
        )[0]

    cve = curve(path.cve, "CVE, left-out landmarks", style.VERMILLION, "o", "-")
    datum = curve(path.rmse_datum, "RMSE_d, in the datum shapes", style.BLUE, "s", "--")
    reference = curve(path.rmse_reference, "RMSE_r, in the reference", style.GREEN, "^", ":")
    chosen = axes.axvline(path.best_value, color=style.GREY, linewidth=1.0, zorder=0)
    label = axes.annotate(
        f"chosen: {path.best_value:.3g}",
        (path.best_value, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color="#555555",
    )
    _scales(axes, path)
    axes.set(xlabel="smoothing", ylabel=style.with_unit("error", unit))
    style.legend(axes, loc="best", bbox_to_anchor=None, ncols=1)
    return style.Artists(
        cve=cve, rmse_reference=reference, rmse_datum=datum, chosen=chosen, label=label
    )


def _scales(ax: Any, path: SmoothingPath) -> None:
    """Decades of smoothing; decades of error only where they span more than one."""
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
    """The cross-validation error at every smoothing and rigidity, the chosen one framed.

    Every cell shows how much its error exceeds the least one, in per cent of it.

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
    axes = style.axes_for(ax, 2)
    least = np.nanmin(surface.surface)
    excess = surface.surface / least - 1.0
    shade = np.log10(np.maximum(excess, 1e-3))
    cells = axes.imshow(shade, cmap="viridis_r", vmin=-3.0, vmax=0.0, aspect="auto", origin="lower")
    figures = tuple(
        style.in_cell(
            axes,
            row,
            column,
            f"{least:.3g}" if value == 0.0 else _percent(value),
            shade[row, column] > -1.2,
            fontsize=8,
        )
        for (row, column), value in np.ndenumerate(excess)
    )
    row, column = surface.position
    look: dict[str, Any] = {"fill": False, "edgecolor": style.VERMILLION, "linewidth": 2.5}
    chosen = axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, **look))
    axes.set_xticks(range(len(surface.rigidities)), [f"{mu:g}" for mu in surface.rigidities])
    axes.set_yticks(range(len(surface.values)), [f"{tau:.2g}" for tau in surface.values])
    axes.set(xlabel="rigidity", ylabel="smoothing")
    axes.set_title("cross-validation error: the least, and % above it", fontsize=10)
    axes.grid(False)
    return style.Artists(cells=cells, figures=figures, chosen=chosen)


def _percent(excess: float) -> str:
    return f"{100 * excess:+.0f}" if excess > 0.0995 else f"{100 * excess:+.1f}"


def spectrum(alignment: Alignment, ax: Axes | None = None) -> style.Artists:
    """The smallest eigenvalues of the eliminated cost, and the gap that makes the reference sure.

    The first d belong to the axes of the reference. If the next one were as small, another
    reference would do as well.

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
    found = alignment.spectral
    if found is None or len(found.spectrum) <= found.n_axes:
        raise ShapeError(
            "This alignment has no spectrum to show: only DefGPA solves an eigenproblem, and it "
            f"needs more than {alignment.shapes.n_dims} landmarks."
        )
    values, d = found.spectrum, found.n_axes
    axes = style.axes_for(ax, 2)
    numbers = np.arange(1, len(values) + 1)
    places, look = np.column_stack([numbers, values]), {"markersize": 8, "clip_on": False}
    own = style.dots(axes, places[:d], "axes of the reference", "o", style.REFERENCE, **look)
    rest = style.dots(axes, places[d:], "next eigenvalues", "D", style.GREY, **look)
    gap = axes.axhspan(values[d - 1], values[d], color=style.SKY, alpha=0.25, linewidth=0)
    log = values.min() > 0 and values.max() > 30.0 * values.min()
    axes.set_yscale("log" if log else "linear")
    ends = values[[d - 1, d]]
    middle = float(np.sqrt(ends.prod()) if log else ends.mean())
    label = axes.annotate(
        f"relative gap {found.gap:.2g}",
        (0.02, middle),
        xycoords=("axes fraction", "data"),
        va="center",
        color="#1f4e6b",
    )
    axes.set(xticks=numbers, xlim=(0.5, len(values) + 0.5), xlabel="eigenvalue number")
    axes.set_ylabel(f"eigenvalue of P (at most {alignment.shapes.n_shapes})")
    style.legend(axes)
    return style.Artists(axes=own, rest=rest, gap=gap, label=label)
