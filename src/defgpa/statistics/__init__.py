"""Statistics of aligned landmarks: sizes, components, groups, symmetry."""

from defgpa.statistics.allometry import Allometry, allometry
from defgpa.statistics.anova import procrustes_anova
from defgpa.statistics.classification import Classification
from defgpa.statistics.covariation import TwoBlockPLS, two_block_pls
from defgpa.statistics.differences import LandmarkDifferences, landmark_differences
from defgpa.statistics.discriminant_analysis import classify
from defgpa.statistics.disparity import Disparity, disparity
from defgpa.statistics.effect_sizes import EffectSizes, compare_effect_sizes
from defgpa.statistics.evolutionary_rates import EvolutionaryRates, evolutionary_rates
from defgpa.statistics.group_allometry import GroupAllometry, group_allometry
from defgpa.statistics.integration import (
    EigenvalueVariance,
    ModuleTest,
    eigenvalue_variance,
    integration,
)
from defgpa.statistics.measurement_error import MeasurementError, measurement_error
from defgpa.statistics.mirror_pairs import MirrorPairs, find_pairs
from defgpa.statistics.model_comparison import ModelComparison, compare_models
from defgpa.statistics.modularity import modularity
from defgpa.statistics.outliers import Outliers, outliers
from defgpa.statistics.pairwise import PairwiseDistances
from defgpa.statistics.partition import partition_by_links, read_partitions
from defgpa.statistics.phylogenetic_components import (
    PhylogeneticComponents,
    phylogenetic_components,
)
from defgpa.statistics.phylogenetic_signal import PhylogeneticSignal, phylogenetic_signal
from defgpa.statistics.phylogeny import Phylogeny, read_tree
from defgpa.statistics.principal_components import ShapePCA
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.repeatability import Repeatability, repeatability
from defgpa.statistics.sample import Sample, build_sample
from defgpa.statistics.shape_model import ProcrustesAnova
from defgpa.statistics.species import average_species, match_tree
from defgpa.statistics.specimens import specimens
from defgpa.statistics.sums_of_squares import SumsOfSquares
from defgpa.statistics.superimposed import centroid_sizes, tangent_space
from defgpa.statistics.symmetry import Symmetry, symmetry
from defgpa.statistics.table import Effect, EffectTable
from defgpa.statistics.trajectories import Trajectories, trajectories

__all__ = [
    "Allometry",
    "Classification",
    "Disparity",
    "Effect",
    "EffectSizes",
    "EffectTable",
    "EigenvalueVariance",
    "EvolutionaryRates",
    "GroupAllometry",
    "LandmarkDifferences",
    "MeasurementError",
    "MirrorPairs",
    "ModelComparison",
    "ModuleTest",
    "Outliers",
    "PairwiseDistances",
    "PhylogeneticComponents",
    "PhylogeneticSignal",
    "Phylogeny",
    "ProcrustesAnova",
    "Provenance",
    "Repeatability",
    "Sample",
    "ShapePCA",
    "SumsOfSquares",
    "Symmetry",
    "Trajectories",
    "TwoBlockPLS",
    "allometry",
    "average_species",
    "build_sample",
    "centroid_sizes",
    "classify",
    "compare_effect_sizes",
    "compare_models",
    "disparity",
    "eigenvalue_variance",
    "evolutionary_rates",
    "find_pairs",
    "group_allometry",
    "integration",
    "landmark_differences",
    "match_tree",
    "measurement_error",
    "modularity",
    "outliers",
    "partition_by_links",
    "phylogenetic_components",
    "phylogenetic_signal",
    "procrustes_anova",
    "read_partitions",
    "read_tree",
    "repeatability",
    "specimens",
    "symmetry",
    "tangent_space",
    "trajectories",
    "two_block_pls",
]
