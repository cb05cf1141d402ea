"""Pictures of an alignment, drawn with matplotlib.

Every function takes the axes to draw on (new ones if there are none) and returns what it drew,
under names. Nothing is shown or saved: that is left to the caller. Landmarks counted in pixels
from the top of an image stand upside down; ``ax.invert_yaxis()`` turns them.
"""

from defgpa.errors import DefgpaError

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise DefgpaError("Plots are drawn with matplotlib: pip install 'defgpa[plot]'.") from error

from defgpa.plot._before_after import BeforeAfterArtists, before_and_after
from defgpa.plot._dial import DialArtists, dial_surface
from defgpa.plot._displacements import DisplacementArtists, displacements
from defgpa.plot._generated import GeneratedArtists, generated
from defgpa.plot._grid import GridArtists, deformation_grid
from defgpa.plot._maps import MapArtists, missing_map, residual_map
from defgpa.plot._overlay import OverlayArtists, aligned, cross_validated
from defgpa.plot._pictures import PictureArtists, deviation, picture, picture_with_landmarks
from defgpa.plot._smoothing import SmoothingArtists, smoothing_path
from defgpa.plot._spectrum import SpectrumArtists, spectrum

__all__ = [
    "BeforeAfterArtists",
    "DialArtists",
    "DisplacementArtists",
    "GeneratedArtists",
    "GridArtists",
    "MapArtists",
    "OverlayArtists",
    "PictureArtists",
    "SmoothingArtists",
    "SpectrumArtists",
    "aligned",
    "before_and_after",
    "cross_validated",
    "deformation_grid",
    "deviation",
    "dial_surface",
    "displacements",
    "generated",
    "missing_map",
    "picture",
    "picture_with_landmarks",
    "residual_map",
    "smoothing_path",
    "spectrum",
]
