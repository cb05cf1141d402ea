"""The built-in types a saved result may hold, under names that outlive refactoring."""

from __future__ import annotations

from defgpa.io._codec import register_saved
from defgpa.solve.registration import RidgeRegistration
from defgpa.warps import Affine, AffineBasis, ThinPlateBasis, ThinPlateSpline

for _kind in (Affine, AffineBasis, RidgeRegistration, ThinPlateBasis, ThinPlateSpline):
    register_saved(_kind, name=_kind.__name__)
