"""Images moved into the plane of the reference, and how far they agree there."""

from defgpa.images._deviation import IntensityDeviation, intensity_deviation
from defgpa.images._frame import Frame, Placement, common_frame, rows_down, rows_up
from defgpa.images._picture import Picture, read_image, warp_image, write_picture
from defgpa.images._sampling import Sampling, cubic, linear, nearest

__all__ = [
    "Frame",
    "IntensityDeviation",
    "Picture",
    "Placement",
    "Sampling",
    "common_frame",
    "cubic",
    "intensity_deviation",
    "linear",
    "nearest",
    "read_image",
    "rows_down",
    "rows_up",
    "warp_image",
    "write_picture",
]
