"""Pictures of an alignment, drawn with matplotlib.

Every function takes the axes to draw on (new ones if there are none) and returns what it drew,
under names. Nothing is shown or saved: that is left to the caller. Axes of ``projection="defgpa"``
let shapes in space fill the figure, where those of ``"3d"`` keep to a square. Landmarks counted in
pixels from the top of an image stand upside down; ``ax.invert_yaxis()`` turns them.
"""

from defgpa.errors import DefgpaError

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise DefgpaError('Plots are drawn with matplotlib: pip install "defgpa[plot]".') from error

from defgpa.plot._components import components, outliers, scree
from defgpa.plot._covariation import covariation, permuted, phylomorphospace
from defgpa.plot._diagnostics import dial_surface, smoothing_path, spectrum
from defgpa.plot._displacements import (
    back_projection,
    displacement_heat,
    displacements,
    sliding,
)
from defgpa.plot._effects import effect_sizes, effects, pairwise
from defgpa.plot._grid import deformation_grid
from defgpa.plot._groups import (
    between_groups,
    canonical_variates,
    disparity,
    group_allometry,
    trajectories,
)
from defgpa.plot._maps import missing_map, residual_map
from defgpa.plot._mean_shapes import allometry, landmark_differences, repeatability, symmetry
from defgpa.plot._overlay import before_and_after, landmark_ellipses, overlay, predictions
from defgpa.plot._pictures import deviation, photograph, picture, picture_with_landmarks
from defgpa.plot._style import Artists

__all__ = [
    "Artists",
    "allometry",
    "back_projection",
    "before_and_after",
    "between_groups",
    "canonical_variates",
    "components",
    "covariation",
    "deformation_grid",
    "deviation",
    "dial_surface",
    "disparity",
    "displacement_heat",
    "displacements",
    "effect_sizes",
    "effects",
    "group_allometry",
    "landmark_differences",
    "landmark_ellipses",
    "missing_map",
    "outliers",
    "overlay",
    "pairwise",
    "permuted",
    "photograph",
    "phylomorphospace",
    "picture",
    "picture_with_landmarks",
    "predictions",
    "repeatability",
    "residual_map",
    "scree",
    "sliding",
    "smoothing_path",
    "spectrum",
    "symmetry",
    "trajectories",
]
