"""What is asked of landmarks once they are aligned: sizes, tangent space, components, outliers."""

from defgpa.statistics.allometry import Allometry, allometry
from defgpa.statistics.anova import ProcrustesAnova, procrustes_anova
from defgpa.statistics.differences import LandmarkDifferences, landmark_differences
from defgpa.statistics.mirror_pairs import MirrorPairs, find_pairs
from defgpa.statistics.pairwise import PairwiseDistances
from defgpa.statistics.repeatability import Repeatability, repeatability
from defgpa.statistics.sizes import centroid_sizes
from defgpa.statistics.symmetry import Symmetry, symmetry
from defgpa.statistics.table import Effect, EffectTable
from defgpa.statistics.tangent import tangent_space

__all__ = [
    "Allometry",
    "Effect",
    "EffectTable",
    "LandmarkDifferences",
    "MirrorPairs",
    "PairwiseDistances",
    "ProcrustesAnova",
    "Repeatability",
    "Symmetry",
    "allometry",
    "centroid_sizes",
    "find_pairs",
    "landmark_differences",
    "procrustes_anova",
    "repeatability",
    "symmetry",
    "tangent_space",
]
