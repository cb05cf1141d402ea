"""The error figures along the amounts of smoothing (the paper's Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from defgpa._arrays import Array
from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.evaluate import SmoothingPath


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
