"""The paper's inverse of a warp: swap the roles of points and images, and fit again.

The thin-plate spline through warp(node) ↦ node, for nodes on a grid over the padded box of the
shape: exact at the nodes, smooth between them.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array
from defgpa.frames import frames_of
from defgpa.warps._box import Box, principal_box
from defgpa.warps._thin_plate import interpolating_spline
from defgpa.warps._warp import Warp

_NODES = {1: 16, 2: 9, 3: 6}  # per axis: some two hundred at most


def swapped(warp: Warp, box: Box) -> Warp:
    """The spline that takes the images of a grid in the box back to the grid."""
    dim = box.half.shape[-1]
    nodes = box.grid((_NODES[dim],) * dim)
    return interpolating_spline(warp(nodes), nodes)


def swapped_around(warp: Warp, landmarks: Array) -> Warp:
    """The inverse by a grid in the principal box of the landmarks (m, d), NaN where not seen."""
    seen = landmarks[~np.isnan(landmarks).any(axis=1)]
    return swapped(warp, principal_box(frames_of(seen), padding=0.0)[0])
