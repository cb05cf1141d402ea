"""Shapes to try things on: families with a known truth, a bundled sample, the published sets."""

from defgpa.datasets._deformations import Deformation
from defgpa.datasets._imitations import (
    face_like,
    handbag_like,
    lits_like,
    liver_like,
    pillow_like,
    topacs_like,
    toy_rug_like,
)
from defgpa.datasets._missing import AtRandom, Blocks, Missing, Slabs
from defgpa.datasets._sample import WING_EDGES, WING_LANDMARKS, load_wings, make_wings
from defgpa.datasets._synthetic import Synthetic, flat_family, smooth_family
from defgpa.datasets._wing_image import wing_image

__all__ = [
    "WING_EDGES",
    "WING_LANDMARKS",
    "AtRandom",
    "Blocks",
    "Deformation",
    "Missing",
    "Slabs",
    "Synthetic",
    "face_like",
    "flat_family",
    "handbag_like",
    "lits_like",
    "liver_like",
    "load_wings",
    "make_wings",
    "pillow_like",
    "smooth_family",
    "topacs_like",
    "toy_rug_like",
    "wing_image",
]
