"""Tuning: thresholds and sizes that no result should depend on, in one value.

Every one of them was chosen by measuring; a test that needs another passes another value.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """What decides between ways that lead to the same result, and when a figure is worth a word.

    Attributes
    ----------
    dense_landmarks : int
        Up to so many landmarks P is formed and U stored; beyond, neither.
    moderate_landmarks : int
        Up to so many landmarks P is formed where iterations are slow.
    few_features : int
        With so few features U itself is as small as its columns, and stored.
    max_products : int
        Products after which iterations on a moderate number of landmarks give way to LAPACK.
    batch_bytes, few_bytes : int
        Features of the shapes of one batch, which then stays near the cache; so few features of all
        shapes are one batch, not worth a second thread.
    block_bytes, sparse_block_bytes : int
        Columns of one block of landmarks, where they are made and where they are mostly zero.
    cache_bytes : int
        Size of the columns of a batch up to which all of them are made at once.
    row_bytes : int
        Rows of Uᵀ that a product reads twice in a row: they are still in the cache then.
    whole_image_landmarks : int
        Landmarks up to which every batch may make an image of its own, to be summed.
    thread_blocks : int
        Blocks of landmarks that are enough for every thread.
    landmarks_per_block : int
        Landmarks whose features a worker of a cluster makes, or keeps, in one piece.
    exact_inverse_features : int
        Features of all shapes together up to which the exact inverse of the cost is cheap.
    nearly_free : float
        Relative cost below which a direction counts as free for one shape. Affine maps are free
        always; where a soft warp has more such directions, the preconditioner asks a second shape.
    free_value : float
        σ/n below which a direction costs nothing but noise; ordinary sets have 0.035 to 1.
    hinge_cohesion : float
        Cohesion below which a direction is a movement of parts, not a deformation: hinges have 0 to
        0.05, deformations 0.3 to 1.
    max_axes : int
        Axes that the reference may be made of where more than d directions are free.
    rival_cost, rival_share : float
        Axes that cost up to ``rival_cost`` times the dearest of d times the longest extent of the
        reference over its shortest, and of which the warps explain more than 1 − ``rival_share``,
        are rivals of the dearest; real sets whose reference is sound have none.
    sure_agreement, likely_agreement : float
        Squared standard errors beyond which shapes surely, or probably, have a part in an axis. A
        thin direction that was lost to a bend has 20 and more; where shapes bend either way by
        chance no axis beyond the first two has more than 2.
    max_rounds : int
        Of the descent for the proportions; hinged sets take up to a hundred, others two to ten.
    narrow_gap : float
        Relative spectral gap below which another reference would do as well.
    translation_cost : float
        ‖P1‖ / (n √m) above which a translation is not free.
    off_centre : float
        Of the extent of the reference: an offset above is no rounding.
    not_centred : float
        Of the extent of the reference: an axis has the constant vector in it.
    loose_angle : float
        Radians by which noise may turn parts of a set against each other, fitted by motions or
        affine maps, before they count as hinged.
    firm_gap : float
        Relative gap above which a movement of parts costs enough to be held.
    gap_rounding : float
        Of the gap: rounding above shows in the sixth digit of the reference, or sooner.
    carried_share : float
        Share of an axis that d + 1 landmarks must not carry.
    settled_residual : float
        Relative residual of the similarity fit below which rigidity settles a hinge.
    max_looseness : float
        Standard error of the reference, relative, above which rigidity does not settle a hinge:
        hinges have 0.15 and more, what is settled up to 0.01.
    large_deformation : float
        Relative residual of the similarity fit above which the proportions are an average of very
        different ones; real sets have 0.03 to 0.2.
    mean_error, mean_error_chance : float
        A reference that is off by more than ``mean_error`` of its size is wrong. The chance of that
        grows with the differences between the shapes, and the fewer they are; above
        ``mean_error_chance`` it is a finding.
    far_deviations, far_chance : float
        A shape is far from the others if its error is ``far_deviations`` robust standard deviations
        above the median, and if chance alone would put one so far off in less than ``far_chance``
        of the sets with so many shapes.
    screened_landmarks, refitted_landmarks : int
        Landmarks of all shapes up to which a fit looks at its input, and fits once more to tell how
        much a doubtful landmark matters.
    near_distance, far_distance, stray_ratio : float
        Distance of a landmark from its place after the best similarity: up to ``near_distance``
        sizes of the reference no matter, beyond ``far_distance`` looked at closely, as beyond
        ``stray_ratio`` times what is usual for its shape and for that landmark.
    rms_distance : float
        The RMS of these distances beyond which shapes are looked at closely, too.
    min_thickness : float
        Of its longest extent: a shape that is thinner is reported, for no instrument measures that.
        A fit lays such shapes into their planes at the default value, whatever is set here.
    origin_distance : float
        Distance from the origin, in sizes of the shape, beyond which few digits are left for it.
    size_ratio, size_gap : float
        A shape ``size_ratio`` times as large or as small as the median is in another unit, unless
        others are between: growth leaves no gap of ``size_gap`` times.
    doubtful_ratio, misplaced_ratio, min_misplacement : float
        A landmark is looked at if it is ``doubtful_ratio`` times as far off as is usual in its
        shape. It is misplaced if it is off by ``misplaced_ratio`` times what is usual, in its shape
        and for that landmark in other shapes, and by ``min_misplacement`` of the size of the
        shapes.
    faint_weight : float
        A shape whose largest relative landmark weight is smaller has no effect on a fit, and is not
        reported as far off.
    max_strays : int
        Landmarks of a shape that are named as exchanged, or as misplaced; with more of them it is
        the shape that is far off.
    code_ratio : float
        Times the largest coordinate of all other landmarks: nobody measured that, it is a code.
    exchange_landmarks, left_out_landmarks, compared_landmarks : int
        Landmarks up to which all pairs of a shape are tried, each of a shape is left out by turns,
        and shapes are compared byte by byte (of all shapes together).
    workspace_bytes : int
        What BLAS takes besides the data (buffers for numpy and for scipy, stacks of threads). A fit
        does not start where a limit of the process leaves less than both.
    searched_bytes : int
        A fit that takes no more than this does not ask how much memory the machine has free.
    """

    dense_landmarks: int = 500
    moderate_landmarks: int = 4000
    few_features: int = 16
    max_products: int = 150
    batch_bytes: int = 4 << 20
    few_bytes: int = 1 << 20
    block_bytes: int = 4 << 20
    sparse_block_bytes: int = 32 << 20
    cache_bytes: int = 16 << 20
    row_bytes: int = 512 << 10
    whole_image_landmarks: int = 2048
    thread_blocks: int = 16
    landmarks_per_block: int = 100_000
    exact_inverse_features: int = 200
    nearly_free: float = 1e-3
    free_value: float = 0.01
    hinge_cohesion: float = 0.1
    max_axes: int = 32
    rival_cost: float = 1.2
    rival_share: float = 0.5
    sure_agreement: float = 16.0
    likely_agreement: float = 2.0
    max_rounds: int = 300
    narrow_gap: float = 1e-3
    translation_cost: float = 1e-7
    off_centre: float = 1e-6
    not_centred: float = 1e-3
    loose_angle: float = 0.2
    firm_gap: float = 0.75
    gap_rounding: float = 1e-3
    carried_share: float = 0.9
    settled_residual: float = 0.25
    max_looseness: float = 0.03
    large_deformation: float = 0.21
    mean_error: float = 0.15
    mean_error_chance: float = 0.1
    far_deviations: float = 6.0
    far_chance: float = 0.01
    screened_landmarks: int = 5_000_000
    refitted_landmarks: int = 200_000
    near_distance: float = 0.1
    far_distance: float = 0.5
    stray_ratio: float = 5.0
    rms_distance: float = 0.12
    min_thickness: float = 1e-5
    origin_distance: float = 1e10
    size_ratio: float = 5.0
    size_gap: float = 2.5
    doubtful_ratio: float = 3.0
    misplaced_ratio: float = 8.0
    min_misplacement: float = 0.2
    faint_weight: float = 1e-3
    max_strays: int = 5
    code_ratio: float = 3.0
    exchange_landmarks: int = 2000
    left_out_landmarks: int = 400
    compared_landmarks: int = 100_000
    workspace_bytes: int = 128 << 20
    searched_bytes: int = 256 << 20


DEFAULT = Tuning()
