"""The bottom of the spectrum of P: what the axes of the reference cost, and the gap above them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.plot import _style as style


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
            f"needs more than {alignment.shapes.dim} landmarks."
        )
    values, d = found.spectrum, found.n_axes
    axes = style.axes_for(ax, 2)
    numbers = np.arange(1, len(values) + 1)
    look = {"linestyle": "none", "markersize": 8, "clip_on": False, "zorder": 3}
    own = axes.plot(
        numbers[:d], values[:d], "o", color=style.REFERENCE, label="axes of the reference", **look
    )[0]
    rest = axes.plot(
        numbers[d:], values[d:], "D", color=style.GREY, label="next eigenvalues", **look
    )[0]
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
