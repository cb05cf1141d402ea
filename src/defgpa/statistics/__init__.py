"""What is asked of landmarks once they are aligned: sizes, components, groups, symmetry."""

from defgpa.statistics.allometry import Allometry, allometry
from defgpa.statistics.anova import ProcrustesAnova, procrustes_anova
from defgpa.statistics.differences import LandmarkDifferences, landmark_differences
from defgpa.statistics.mirror_pairs import MirrorPairs, find_pairs
from defgpa.statistics.outliers import Outliers, outliers
from defgpa.statistics.pairwise import PairwiseDistances
from defgpa.statistics.principal_components import ShapePCA, SumsOfSquares
from defgpa.statistics.repeatability import Repeatability, repeatability
from defgpa.statistics.sample import Provenance, Sample, build_sample, centroid_sizes
from defgpa.statistics.specimens import specimens
from defgpa.statistics.symmetry import Symmetry, symmetry
from defgpa.statistics.table import Effect, EffectTable
from defgpa.tangent_space import tangent_space

__all__ = [
    "Allometry",
    "Effect",
    "EffectTable",
    "LandmarkDifferences",
    "MirrorPairs",
    "Outliers",
    "PairwiseDistances",
    "ProcrustesAnova",
    "Provenance",
    "Repeatability",
    "Sample",
    "ShapePCA",
    "SumsOfSquares",
    "Symmetry",
    "allometry",
    "build_sample",
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
