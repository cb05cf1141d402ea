"""What is asked of landmarks once they are aligned: sizes, components, groups, symmetry."""

from defgpa.statistics.allometry import Allometry, allometry
from defgpa.statistics.anova import ProcrustesAnova, procrustes_anova
from defgpa.statistics.components import ShapePCA, SumsOfSquares
from defgpa.statistics.differences import LandmarkDifferences, landmark_differences
from defgpa.statistics.mirror_pairs import MirrorPairs, find_pairs
from defgpa.statistics.outliers import Outliers, outliers
from defgpa.statistics.pairwise import PairwiseDistances
from defgpa.statistics.repeatability import Repeatability, repeatability
from defgpa.statistics.specimens import specimens
from defgpa.statistics.symmetry import Symmetry, symmetry
from defgpa.statistics.table import Effect, EffectTable
from defgpa.statistics.tangent import centroid_sizes, tangent_space

__all__ = [
    "Allometry",
    "Effect",
    "EffectTable",
    "LandmarkDifferences",
    "MirrorPairs",
    "Outliers",
    "PairwiseDistances",
    "ProcrustesAnova",
    "Repeatability",
    "ShapePCA",
    "SumsOfSquares",
    "Symmetry",
    "allometry",
    "centroid_sizes",
    "find_pairs",
    "landmark_differences",
    "outliers",
    "procrustes_anova",
    "repeatability",
    "specimens",
    "symmetry",
    "tangent_space",
]
