"""What is asked of landmarks once they are aligned: sizes, tangent space, components, outliers."""

from defgpa.statistics.components import ShapePCA, SumsOfSquares
from defgpa.statistics.outliers import Outliers, outliers
from defgpa.statistics.sizes import centroid_sizes
from defgpa.statistics.specimens import specimens
from defgpa.statistics.tangent import tangent_space

__all__ = [
    "Outliers",
    "ShapePCA",
    "SumsOfSquares",
    "centroid_sizes",
    "outliers",
    "specimens",
    "tangent_space",
]
