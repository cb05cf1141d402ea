"""What is asked of landmarks once they are aligned: sizes, tangent space, components, outliers."""

from defgpa.statistics.sizes import centroid_sizes
from defgpa.statistics.specimens import specimens
from defgpa.statistics.tangent import tangent_space

__all__ = ["centroid_sizes", "specimens", "tangent_space"]
