"""Write the methods paragraph of an article about an alignment, with its references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import defgpa.statistics as stats
from defgpa.alignment import Alignment
from defgpa.edits import Action, Edit
from defgpa.errors import DefgpaError
from defgpa.report._sentences import describe_model, format_percent
from defgpa.report._statistics import Statistic
from defgpa.semilandmarks import SlidShapes
from defgpa.solvers.elastic_warps import ElasticRegistration
from defgpa.solvers.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.warps import ThinPlateSpline

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison, CrossValidation, SmoothingPath

_NO_CHANGE = (Action.ACCEPT, Action.LINK, Action.UNLINK)
_REFERENCES = {
    "Adams 2014": "Adams, D. C. (2014). A generalized K statistic for estimating phylogenetic "
    "signal from shape and other high-dimensional multivariate data. Systematic Biology, 63, "
    "685–697. https://doi.org/10.1093/sysbio/syu030",
    "Adams 2016": "Adams, D. C. (2016). Evaluating modularity in morphometric data: challenges "
    "with the RV coefficient and a new test measure. Methods in Ecology and Evolution, 7, 565–572. "
    "https://doi.org/10.1111/2041-210X.12511",
    "Adams & Collyer 2016": "Adams, D. C., & Collyer, M. L. (2016). On the comparison of the "
    "strength of morphological integration across morphometric datasets. Evolution, 70, "
    "2623–2631. https://doi.org/10.1111/evo.13045",
    "Bai & Bartoli 2022": "Bai, F., & Bartoli, A. (2022). Procrustes analysis with deformations: a "
    "closed-form solution by eigenvalue decomposition. International Journal of Computer Vision, "
    "130, 567–593. https://doi.org/10.1007/s11263-021-01571-8",
    "Bookstein 1989": "Bookstein, F. L. (1989). Principal warps: thin-plate splines and the "
    "decomposition of deformations. IEEE Transactions on Pattern Analysis and Machine "
    "Intelligence, 11, 567–585. https://doi.org/10.1109/34.24792",
    "Breiman et al. 1984": "Breiman, L., Friedman, J. H., Olshen, R. A., & Stone, C. J. (1984). "
    "Classification and Regression Trees. Wadsworth.",
    "Collyer et al. 2015": "Collyer, M. L., Sekora, D. J., & Adams, D. C. (2015). A method for "
    "analysis of phenotypic change for phenotypes described by high-dimensional data. Heredity, "
    "115, 357–365. https://doi.org/10.1038/hdy.2014.75",
    "Goodall 1991": "Goodall, C. (1991). Procrustes methods in the statistical analysis of shape. "
    "Journal of the Royal Statistical Society B, 53, 285–339.",
    "Gower 1975": "Gower, J. C. (1975). Generalized Procrustes analysis. Psychometrika, 40, 33–51. "
    "https://doi.org/10.1007/BF02291478",
    "Gunz & Mitteroecker 2013": "Gunz, P., & Mitteroecker, P. (2013). Semilandmarks: a method for "
    "quantifying curves and surfaces. Hystrix, 24, 103–109. "
    "https://doi.org/10.4404/hystrix-24.1-6292",
    "Klingenberg et al. 2002": "Klingenberg, C. P., Barluenga, M., & Meyer, A. (2002). Shape "
    "analysis of symmetric structures: quantifying variation among individuals and asymmetry. "
    "Evolution, 56, 1909–1920. https://doi.org/10.1111/j.0014-3820.2002.tb00117.x",
    "Rohlf & Corti 2000": "Rohlf, F. J., & Corti, M. (2000). Use of two-block partial "
    "least-squares to study covariation in shape. Systematic Biology, 49, 740–753. "
    "https://doi.org/10.1080/106351500750049806",
    "Rohlf & Slice 1990": "Rohlf, F. J., & Slice, D. (1990). Extensions of the Procrustes method "
    "for the optimal superimposition of landmarks. Systematic Zoology, 39, 40–59. "
    "https://doi.org/10.2307/2992207",
}


def write_methods(
    alignment: Alignment,
    *,
    smoothing: SmoothingPath | None = None,
    cross_validation: CrossValidation | None = None,
    comparison: Comparison | None = None,
    statistics: Iterable[Statistic] = (),
    edits: Iterable[Edit] = (),
) -> str:
    """Return a methods paragraph to copy into an article, followed by its references.

    Parameters
    ----------
    alignment : Alignment
        The result that the article reports.
    smoothing, cross_validation, comparison, statistics
        What else was done, as in `write_report`.
    edits : iterable of Edit
        The corrections that were made before, as `read_edits` gives them.

    Returns
    -------
    str
        The paragraph, an empty line, and one reference a line.

    Examples
    --------
    >>> import defgpa
    >>> wings = defgpa.datasets.load_wings()
    >>> text = write_methods(defgpa.DefGPA().fit(wings).alignment_)
    >>> "deformable generalised Procrustes analysis (Bai & Bartoli 2022)" in text
    True
    """
    if not isinstance(alignment, Alignment):
        raise DefgpaError(
            f"Methods are those of an Alignment (model.alignment_); got {type(alignment).__name__}."
        )
    import defgpa

    sentences = [
        _describe_data(alignment),
        *_describe_edits(edits),
        _describe_alignment(alignment),
        *_describe_weights(alignment),
        *_describe_choice(smoothing, cross_validation, comparison),
        *dict.fromkeys(_describe_statistic(statistic) for statistic in statistics),
        f"All computations were done with defgpa {defgpa.__version__}.",
    ]
    paragraph = " ".join(sentences)
    cited = [text for key, text in _REFERENCES.items() if key in paragraph]
    return "\n".join([paragraph, "", *cited]) + "\n"


def _describe_weights(alignment: Alignment) -> Iterator[str]:
    """Yield sentences on the landmark weights."""
    if alignment.rejection is None:
        if alignment.has_weights:
            yield "Landmarks were weighted by their given weights."
        return
    n_left_out = int((alignment.shapes.visible & (alignment.weights == 0.0)).sum())
    yield (
        "Landmark weights were estimated by iteratively reweighted least squares on leave-one-out "
        f"residuals, which left {n_left_out:,} of {alignment.shapes.visible.sum():,} landmarks out "
        "as gross errors."
    )


def _describe_data(alignment: Alignment) -> str:
    visible = alignment.shapes.visible
    n_missing = visible.size - int(visible.sum())
    share = format_percent(n_missing / visible.size)
    missing = f" ({n_missing:,} of {visible.size:,} landmarks, {share}, were missing)"
    return (
        f"We analysed {alignment.shapes.n_shapes:,} specimens with "
        f"{alignment.shapes.n_landmarks:,} landmarks in {alignment.shapes.n_dims} dimensions"
        f"{missing if n_missing else ''}."
    )


def _describe_edits(edits: Iterable[Edit]) -> list[str]:
    """Count the corrections of each kind; accepted findings and links change no coordinate."""
    actions = [edit.action for edit in edits if edit.action not in _NO_CHANGE]
    if not actions:
        return []
    counts = ", ".join(f"{action} ({count})" for action, count in Counter(actions).items())
    return [f"Corrections made before the analysis are listed in edits.json: {counts}."]


def _describe_alignment(alignment: Alignment) -> str:
    incomplete = not alignment.shapes.visible.all()
    no_imputation = " Missing landmarks were neither dropped nor imputed in the fit."
    spline = " (Bookstein 1989)"
    match alignment.registration:
        case MotionRegistration(motions):
            scaling = " with scaling" if motions.scaling else ""
            return (
                f"They were superimposed by generalised Procrustes analysis{scaling} (Gower 1975; "
                f"Rohlf & Slice 1990).{no_imputation if incomplete else ''}"
            )
        case AffineRegistration():
            return "They were aligned by affine generalised Procrustes analysis (Gower 1975)."
        case RidgeRegistration(model):
            source = spline if isinstance(model, ThinPlateSpline) else ""
            return (
                "They were aligned by deformable generalised Procrustes analysis (Bai & Bartoli "
                "2022), which estimates a reference shape and one warp per specimen together, in "
                f"closed form. The warp was {describe_model(model)}{source}."
                f"{no_imputation if incomplete else ''}"
            )
        case ElasticRegistration(model, rigidity):
            source = spline if isinstance(model, ThinPlateSpline) else ""
            return (
                "They were aligned by deformable Procrustes analysis with a penalty on stretching "
                f"(rigidity {rigidity:.3g}; after Bai & Bartoli 2022). The warp was "
                f"{describe_model(model)}{source}.{no_imputation if incomplete else ''}"
            )
    return "They were aligned onto one reference shape (Bai & Bartoli 2022)."


def _describe_choice(
    path: SmoothingPath | None, cv: CrossValidation | None, comparison: Comparison | None
) -> list[str]:
    """Say how smoothing and method were chosen, and the error of prediction."""
    sentences = []
    if path is not None:
        rule = (
            "had the smallest cross-validation error"
            if path.best_value == path.least_value
            else "was the stiffest without folded warps whose cross-validation error lay within "
            "one standard error of the smallest (one-standard-error rule; Breiman et al. 1984)"
        )
        sentences.append(f"The relative smoothing, {path.best_value:.3g}, {rule}.")
    if cv is not None:
        sentences.append(
            f"Leaving out {cv.fold_size} landmark{'s' * (cv.fold_size != 1)} at a time, the "
            f"cross-validation error was {cv.error:.4g} (in the unit of the coordinates)."
        )
    if comparison is not None:
        names = ", ".join(row.name for row in comparison.rows)
        sentences.append(f"Methods were compared by the same cross-validation ({names}).")
    return sentences


def _describe_size(model: stats.ProcrustesAnova) -> str:
    """Say what the size in the formula of a model is; nothing where there is none."""
    if "size" not in model.design.spec.required_variables:
        return ""
    source = "centroid size" if model.has_centroid_size else "a column of the data"
    return f", where size is {source}"


def _describe_statistic(statistic: Statistic) -> str:
    match statistic:
        case stats.ProcrustesAnova():
            return (
                f"Shape was tested by Procrustes ANOVA ({statistic.formula}; Goodall 1991) with "
                f"residual randomisation in {statistic.permutations.count:,} permutations (Collyer "
                f"et al. 2015){_describe_size(statistic)}."
            )
        case stats.PairwiseDistances():
            return "Mean shapes of groups were compared pairwise by Procrustes distance."
        case stats.Allometry():
            size = "centroid size" if statistic.anova.has_centroid_size else "size, as it was given"
            return f"Allometry was tested by multivariate regression of shape on log {size}."
        case stats.LandmarkDifferences():
            return (
                "Landmarks were compared between groups one by one by permutation, with control of "
                "the false discovery rate."
            )
        case stats.Symmetry():
            return (
                "Asymmetry was partitioned into a directional and a fluctuating component "
                "(Klingenberg et al. 2002)."
            )
        case stats.Repeatability():
            return "Repeatability was estimated from replicate measurements."
        case stats.Disparity():
            return (
                f"Procrustes variances of groups, about {statistic.formula}, were compared in "
                f"{statistic.n_permutations:,} permutations."
            )
        case stats.Classification():
            return (
                "Groups were told apart by linear discriminants of "
                f"{statistic.n_components} components of shape, their number chosen and the share "
                "of correct classifications measured with specimens left out."
            )
        case stats.TwoBlockPLS():
            return "Covariation was tested by two-block partial least squares (Rohlf & Corti 2000)."
        case stats.ModuleTest(statistic="r-PLS"):
            return "Integration of modules was tested by r-PLS (Adams & Collyer 2016)."
        case stats.ModuleTest():
            return "Modularity was tested by the covariance ratio (Adams 2016)."
        case stats.ModelComparison():
            return "Nested models were compared by what the larger one explains in addition."
        case stats.EffectSizes():
            return "Effect sizes were compared by two-sample z (Adams & Collyer 2016)."
        case stats.EigenvalueVariance():
            return "Integration was measured by the relative variance of eigenvalues."
        case stats.GroupAllometry():
            return "Allometric slopes of groups were compared by their lengths and angles."
        case stats.Trajectories():
            return "Paths of groups through stages were compared by length, angle and form."
        case stats.MeasurementError():
            return "Measurement error was separated into a systematic and a random part."
        case stats.PhylogeneticSignal():
            return "Phylogenetic signal was tested by Kmult (Adams 2014)."
        case stats.PhylogeneticComponents():
            return "Ancestral shapes were estimated under Brownian motion."
        case stats.EvolutionaryRates():
            return "Rates of evolution under Brownian motion were compared between groups."
        case SlidShapes():
            return "Semilandmarks were slid along their curves (Gunz & Mitteroecker 2013)."
