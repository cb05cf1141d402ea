"""The pictures of docs/dial.md, and the figures of its table.

python docs/make_dial_pictures.py docs/
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import defgpa
from defgpa import Affine, ElasticGPA, ThinPlateSpline
from defgpa.datasets import smooth_family
from defgpa.plot import deformation_grid, dial_surface

SPECIMEN = 2  # whose grid is shown
POSITIONS = {  # the five of the first picture
    "rigid": ElasticGPA(Affine(), np.inf),
    "stiff": ElasticGPA(ThinPlateSpline(smoothing=1e-1), 10.0),
    "in between": ElasticGPA(ThinPlateSpline(smoothing=1e-2), 1.0),
    "soft": ElasticGPA(ThinPlateSpline(smoothing=1e-3), 0.1),
    "elastic": ElasticGPA(ThinPlateSpline(smoothing=1e-5), 1e-3),
}


def drawn(ax: Any, name: str, model: ElasticGPA, cv: Any) -> None:
    """The grid of one specimen through its warp, and all landmarks where the warps put them."""
    alignment = cv.alignment
    made = deformation_grid(alignment.warps[SPECIMEN], alignment.shapes[SPECIMEN], ax, cells=12)
    made.landmarks.set_visible(False)
    ax.plot(*alignment.aligned.reshape(-1, 2).T, ".", color="#0072b2", markersize=2, zorder=3)
    ax.plot(*alignment.reference.T, "o", color="#d55e00", markersize=3.5, zorder=4)
    smoothing = getattr(model.warp, "smoothing", np.inf)
    ax.set_title(f"{name}\nsmoothing {smoothing:g}, rigidity {model.rigidity:g}", fontsize=9)
    ax.text(
        *(0.5, -0.05),
        f"RMSE_r {alignment.rmse_reference:.3g}   CVE {cv.error:.3g}",
        transform=ax.transAxes,
        ha="center",
        va="top",
        fontsize=9,
    )
    ax.set_axis_off()


def main(folder: Path) -> None:
    """Both pictures, and a line of figures for every position."""
    shapes = smooth_family(12, 20, 2, noise=0.04).shapes
    five = Figure(figsize=(13, 3.4), layout="constrained")
    for ax, (name, model) in zip(five.subplots(1, 5), POSITIONS.items(), strict=True):
        cv = defgpa.cross_validate(model, shapes)
        drawn(ax, name, model, cv)
        print(name, cv.alignment.rmse_reference, cv.alignment.rmse_datum, cv.error)
    five.savefig(folder / "dial_positions.png", dpi=62)
    surface = defgpa.select_smoothing(ElasticGPA(), shapes)
    print(surface)
    chart = Figure(figsize=(6.5, 4.2), layout="constrained")
    dial_surface(surface, chart.subplots())
    chart.savefig(folder / "dial_surface.png", dpi=72)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    main(Path(sys.argv[1]))
