"""What is asked of landmarks once they are aligned: sizes, components, groups, symmetry."""

from defgpa.statistics.allometry import Allometry, allometry
from defgpa.statistics.anova import ProcrustesAnova, procrustes_anova
from defgpa.statistics.classification import Classification, classify
from defgpa.statistics.covariation import (
    EffectSizes,
    TwoBlockPLS,
    compare_effect_sizes,
    two_block_pls,
)
from defgpa.statistics.differences import LandmarkDifferences, landmark_differences
from defgpa.statistics.disparity import Disparity, disparity
from defgpa.statistics.mirror_pairs import MirrorPairs, find_pairs
from defgpa.statistics.modularity import (
    ModuleTest,
    integration,
    modularity,
    relative_eigenvalue_variance,
)
from defgpa.statistics.outliers import Outliers, outliers
from defgpa.statistics.pairwise import PairwiseDistances
from defgpa.statistics.principal_components import ShapePCA, SumsOfSquares
from defgpa.statistics.repeatability import Repeatability, repeatability
from defgpa.statistics.sample import Provenance, Sample, build_sample, centroid_sizes
from defgpa.statistics.specimens import specimens
from defgpa.statistics.symmetry import Symmetry, symmetry
from defgpa.statistics.table import Effect, EffectTable
from defgpa.statistics.tree import Phylogeny, read_tree
from defgpa.tangent_space import tangent_space

__all__ = [
    "Allometry",
    "Classification",
    "Disparity",
    "Effect",
    "EffectSizes",
    "EffectTable",
    "LandmarkDifferences",
    "MirrorPairs",
    "ModuleTest",
    "Outliers",
    "PairwiseDistances",
    "Phylogeny",
    "ProcrustesAnova",
    "Provenance",
    "Repeatability",
    "Sample",
    "ShapePCA",
    "SumsOfSquares",
    "Symmetry",
    "TwoBlockPLS",
    "allometry",
    "build_sample",
    "centroid_sizes",
    "classify",
    "compare_effect_sizes",
    "disparity",
    "find_pairs",
    "integration",
    "landmark_differences",
    "modularity",
    "outliers",
    "procrustes_anova",
    "read_tree",
    "relative_eigenvalue_variance",
    "repeatability",
    "specimens",
    "symmetry",
    "tangent_space",
    "two_block_pls",
]
