"""Shapes to try things on: families with a known truth, a bundled sample, the published sets."""

from defgpa.datasets._deformations import Deformation
from defgpa.datasets._fish import make_fish
from defgpa.datasets._lookalikes import make_faces, make_livers
from defgpa.datasets._missing import AtRandom, Blocks, Missing
from defgpa.datasets._published import (
    fetch,
    load_face,
    load_handbag,
    load_lits,
    load_liver,
    load_pillow_cover,
    load_stereo_toy_rug,
    load_topacs,
)
from defgpa.datasets._sample import WING_LANDMARKS, WING_LINKS, load_wings, make_wings
from defgpa.datasets._skulls import make_skulls
from defgpa.datasets._slices import Slices, make_slices
from defgpa.datasets._synthetic import Synthetic, smooth_family

__all__ = [
    "WING_LANDMARKS",
    "WING_LINKS",
    "AtRandom",
    "Blocks",
    "Deformation",
    "Missing",
    "Slices",
    "Synthetic",
    "fetch",
    "load_face",
    "load_handbag",
    "load_lits",
    "load_liver",
    "load_pillow_cover",
    "load_stereo_toy_rug",
    "load_topacs",
    "load_wings",
    "make_faces",
    "make_fish",
    "make_livers",
    "make_skulls",
    "make_slices",
    "make_wings",
    "smooth_family",
]
