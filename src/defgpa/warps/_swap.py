"""The paper's inverse of a warp: swap the roles of points and images, and fit again.

The thin-plate spline through warp(node) ↦ node, for nodes on a grid over the padded box of the
shape: exact at the nodes, smooth between them.
"""

from __future__ import annotations

from defgpa.warps._box import Box
from defgpa.warps._thin_plate import interpolating_spline
from defgpa.warps._warp import Warp

_NODES = {1: 16, 2: 9, 3: 6}  # per axis: some two hundred at most


def swapped(warp: Warp, box: Box) -> Warp:
    """The spline that takes the images of a grid in the box back to the grid."""
    dim = box.half.shape[-1]
    nodes = box.grid((_NODES[dim],) * dim)
    return interpolating_spline(warp(nodes), nodes)
