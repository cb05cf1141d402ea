"""The cross-validation error over smoothing and rigidity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from defgpa.plot import _style as style

if TYPE_CHECKING:
    from defgpa.evaluate import DialSurface


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
        axes.text(
            column,
            row,
            f"{surface.surface[row, column]:.3g}" if value == 0.0 else _percent(value),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if shade[row, column] > -1.2 else "black",
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
