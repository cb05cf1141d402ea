"""Sections on statistics: one a test, with words, table and figure."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from functools import singledispatch
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import defgpa.statistics as stats
from defgpa.errors import DefgpaError, format_some
from defgpa.formatting import format_number
from defgpa.semilandmarks import SlidShapes
from defgpa.statistics.table import EffectTable, format_p

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Links = Sequence[tuple[int, int]]
Tables = tuple[tuple[str, Sequence[Sequence[str]]], ...]  # captions, and headers with rows
TabularStatistic = (
    stats.ProcrustesAnova
    | stats.ModelComparison
    | stats.PairwiseDistances
    | stats.Allometry
    | stats.LandmarkDifferences
    | stats.Symmetry
    | stats.Repeatability
    | stats.Disparity
    | stats.Classification
    | stats.TwoBlockPLS
    | stats.ModuleTest
    | stats.EffectSizes
    | stats.EigenvalueVariance
    | stats.GroupAllometry
    | stats.Trajectories
    | stats.MeasurementError
    | stats.PhylogeneticSignal
    | stats.PhylogeneticComponents
    | stats.EvolutionaryRates
)
Statistic = TabularStatistic | SlidShapes

_LEVEL = 0.05
_MAX_NAMES = 12  # in a sentence


class Section(NamedTuple):
    """One result as the template shows it."""

    heading: str
    words: tuple[str, ...]  # paragraphs
    caption: str  # of the table
    table: Sequence[Sequence[str]]  # its header and rows
    picture: dict[str, str] | None  # addresses of the figure by format; None without matplotlib
    further: Tables = ()
    second_picture: dict[str, str] | None = None
    id: str = ""

    @property
    def pictures(self) -> list[dict[str, str]]:
        """All figures."""
        return [picture for picture in (self.picture, self.second_picture) if picture]

    @property
    def tables(self) -> Tables:
        """All tables with their captions."""
        return ((self.caption, self.table), *self.further)


def build_sections(statistics: Iterable[Statistic], links: Links) -> list[Section]:
    """Return one section for each result, in their order."""
    sections = []
    for k, statistic in enumerate(statistics, start=1):
        section = _describe(statistic, links)
        if not isinstance(statistic, (SlidShapes, stats.EffectSizes)):  # they have no coordinates
            section = section._replace(words=(*section.words, str(statistic.provenance)))
        sections.append(section._replace(id=f"test-{k}"))
    return sections


@singledispatch
def _describe(statistic: object, links: Links) -> Section:
    """Return the section of a result; each kind of result registers its own function below."""
    _, *kinds = (kind.__name__ for kind in _describe.registry)
    raise DefgpaError(
        f"A report has sections for results of statistics ({', '.join(kinds)}); "
        f"got {type(statistic).__name__}."
    )


@_describe.register
def _describe_anova(anova: stats.ProcrustesAnova, links: Links) -> Section:
    order = {
        1: "The terms are added sequentially",
        2: "Each term is added to all that do not contain it",
        3: "Each term is added to all others",
    }[anova.ss_type]
    weighted = (
        "" if anova.design.whitening is None else "Generalised least squares along the tree. "
    )
    how = (
        f"{anova.formula}. {weighted}{order}; the F of each is compared with "
        f"{anova.permutations.count:,} permutations of the residuals of the model without it."
        + "".join(f" F of {a} is over the mean square of {b}." for a, b in anova.error.items())
    )
    if anova.error and anova.chance == "rotations":
        how += " Chance rotates what shape has in both (Langsrud 2005)."
    significant = [row.term for row in anova.table if row.p <= _LEVEL]
    result = f"No term is significant (P ≤ {_LEVEL:g})."
    if significant:
        result = f"Significant (P ≤ {_LEVEL:g}): {format_some(significant, _MAX_NAMES)}."
    n_terms = sum(row.f == row.f for row in anova.table)
    picture = _draw("effects", anova, height=1.6 + 0.7 * n_terms)
    caption = f"Sums of squares of type {'I' * anova.ss_type}"
    return Section(
        "What shape depends on", (how, result), caption, _tabulate_effects(anova.table), picture
    )


@_describe.register
def _describe_model_comparison(comparison: stats.ModelComparison, links: Links) -> Section:
    row = comparison.table.rows[0]
    words = (
        f"What {comparison.full} explains beyond {comparison.reduced}: {row.r_squared:.1%} of the "
        f"variance (P {format_p(row.p)}), by permuting the residuals of the smaller model.",
    )
    table, picture = _tabulate_effects(comparison.table), _draw("permuted", comparison)
    return Section("Models compared", words, "Added terms", table, picture)


@_describe.register
def _describe_pairwise(distances: stats.PairwiseDistances, links: Links) -> Section:
    rows = distances.cells()
    n_significant = int((distances.p[np.triu_indices_from(distances.p, 1)] <= _LEVEL).sum())
    words = (
        "Procrustes distances between the mean shapes of the groups; P is the share of "
        "permutations in which groups are at least as far apart.",
        f"Of {len(rows)} pairs, {n_significant} differ significantly (P ≤ {_LEVEL:g}).",
    )
    table = [("Groups", "Distance", "Z", "P"), *rows]
    picture = _draw("pairwise", distances, height=min(1.8 + 0.7 * len(distances.names), 8.0))
    return Section("Groups compared", words, "Pairs of groups", table, picture)


@_describe.register
def _describe_allometry(allometry: stats.Allometry, links: Links) -> Section:
    row = allometry.anova["log(size)"]
    words = (
        f"Size explains {row.r_squared:.1%} of the variation of shape "
        f"(P {format_p(row.p)}). The regression score of a specimen is its "
        "position along the change of shape with size; the shapes below the plot are those that "
        "the regression predicts for the smallest and the largest specimen.",
    )
    table, picture = (
        _tabulate_effects(allometry.anova.table),
        _draw("allometry", allometry, height=5.6, links=links),
    )
    return Section("Shape and size", words, "Regression on log size", table, picture)


@_describe.register
def _describe_landmarks(differences: stats.LandmarkDifferences, links: Links) -> Section:
    first, second = differences.groups
    flags = differences.significant()
    significant = [differences.landmarks[j] for j in np.flatnonzero(flags)]
    words = (
        "One permutation test for each landmark; q is P adjusted for the false discovery rate. "
        "The arrows lead from the first mean to the second.",
        f"At a false discovery rate of {_LEVEL:.0%}, {len(significant)} of "
        f"{len(differences.landmarks)} landmarks differ{': ' if significant else ''}"
        f"{format_some(significant, _MAX_NAMES)}.",
    )
    table = [("Landmark", "Distance", "P", "q"), *differences.cells()]
    picture = _draw("landmark_differences", differences, links=links)
    heading = f"Where {first} and {second} differ"
    return Section(heading, words, "Landmark by landmark", table, picture)


@_describe.register
def _describe_symmetry(symmetry: stats.Symmetry, links: Links) -> Section:
    design = {
        "object": "Each shape has both sides: it is compared with its own mirror image.",
        "matching": "Each shape is one side of an individual.",
    }[symmetry.kind]
    words = (
        f"{design} Directional asymmetry is the mean difference between the sides (side), "
        "fluctuating asymmetry the deviation of the individuals from it (individual × side).",
        f"Directional {format_number(symmetry.directional_index)}, fluctuating "
        f"{format_number(symmetry.fluctuating_index)} (RMS over {len(symmetry.individuals)} "
        "individuals), in units of centroid size.",
    )
    table, picture = _tabulate_effects(symmetry.table), _draw("symmetry", symmetry, links=links)
    extra_tables: Tables = ()
    if symmetry.size_table is not None:
        caption = "Asymmetry of size: the two-way table of log centroid size"
        extra_tables = ((caption, _tabulate_effects(symmetry.size_table)),)
    return Section("Symmetry", words, "The two-way table", table, picture, extra_tables)


@_describe.register
def _describe_repeatability(repeatability: stats.Repeatability, links: Links) -> Section:
    worst = repeatability.landmarks[int(np.argmax(repeatability.error))]
    words = (
        f"{repeatability.overall:.1%} of the variance is among individuals, the rest is "
        f"measurement error. The error is largest at landmark {worst} "
        f"({format_number(float(repeatability.error.max()))} of centroid size).",
    )
    table = [("Landmark", "Repeatability", "Error"), *repeatability.cells()]
    picture = _draw("repeatability", repeatability, links=links)
    return Section("Repeatability", words, "Landmark by landmark", table, picture)


@_describe.register
def _describe_disparity(disparity: stats.Disparity, links: Links) -> Section:
    pairs = disparity.cells()
    largest = disparity.groups[int(np.argmax(disparity.variances))]
    n_significant = int((disparity.p[np.triu_indices_from(disparity.p, 1)] <= _LEVEL).sum())
    kind = "partial disparity" if disparity.partial else "Procrustes variance"
    words = (
        f"How much the groups vary: the {kind} of each, with a 95 % interval from resampling its "
        "specimens. P of a difference comes from permuting residuals between groups.",
        f"It is largest in {largest}. Of {len(pairs)} pairs, {n_significant} differ "
        f"significantly (P ≤ {_LEVEL:g}).",
    )
    rows = [
        (name, format_number(variance), f"{format_number(low)} to {format_number(high)}")
        for name, variance, (low, high) in zip(
            disparity.groups, disparity.variances, disparity.intervals, strict=True
        )
    ]
    table = [("Group", kind.capitalize(), "95 % interval"), *rows]
    extra_tables = (("Pairs of groups", [("Pair", "Difference", "P"), *pairs]),)
    picture = _draw("disparity", disparity, height=1.3 + 0.45 * len(rows))
    return Section("How much groups vary", words, "Variances", table, picture, extra_tables)


@_describe.register
def _describe_classification(classification: stats.Classification, links: Links) -> Section:
    words = (
        f"Linear discriminants of {classification.n_components} components of shape; every "
        f"specimen was assigned by a rule made without it. {classification.accuracy:.1%} are "
        f"correct, where chance would give {classification.chance_level:.1%} (kappa "
        f"{classification.kappa:.2f}).",
        "The figure shows the canonical variates with the shapes at their ends; ringed specimens "
        "were assigned to another group. Variates are made to part the groups: how well they do "
        "is said by the table, not by the figure.",
        "The second figure has the scores of between-group PCA, every specimen left out of the "
        "means. Scores that are not left out show groups even in noise.",
    )
    rows = [
        (name, *map(str, row))
        for name, row in zip(classification.groups, classification.confusion, strict=True)
    ]
    table = [("Group", *(f"as {g}" for g in classification.groups)), *rows]
    header = ("Pair", "Mahalanobis", "P", "Procrustes", "P")
    extra_tables = (("Distances between groups", [header, *classification.distance_cells()]),)
    picture = _draw("canonical_variates", classification, height=6.0, links=links)
    caption = "Specimens by group and assignment"
    heading = "Can the groups be told apart?"
    between = _draw("between_groups", classification)
    return Section(heading, words, caption, table, picture, extra_tables, between)


@_describe.register
def _describe_pls(pls: stats.TwoBlockPLS, links: Links) -> Section:
    first, second = pls.blocks
    words = (
        f"Two-block partial least squares of {first} and {second}: the pair of axes along which "
        f"they covary most. r-PLS is {pls.r:.3f} (Z {pls.z:.2f}, P {format_p(pls.p)}); "
        f"the first pair has {pls.shares[0]:.1%} of the squared covariance. The shapes are those "
        "at the ends of the axes.",
    )
    rows = [
        (str(k), format_number(value), f"{share:.1%}")
        for k, (value, share) in enumerate(zip(pls.singular_values, pls.shares, strict=True), 1)
    ]
    table = [("Axis", "Singular value", "Share"), *rows[:8]]
    picture = _draw("covariation", pls, height=6.0)
    return Section(f"How {first} and {second} covary", words, "Pairs of axes", table, picture)


@_describe.register
def _describe_modules(test: stats.ModuleTest, links: Links) -> Section:
    meaning = {
        "CR": "The covariance ratio is the covariance between modules over that within them: "
        "below 1 where modules vary on their own. Chance assigns landmarks to modules at random.",
    }.get(
        test.statistic,
        "r-PLS is the correlation between modules along the axes that covary most. Chance permutes "
        "the specimens of each module.",
    )
    interval = ""
    if test.interval is not None:
        low, high = map(format_number, test.interval)
        interval = f", 95 % interval {low} to {high} from resampling specimens"
    words = (
        f"Modules: {format_some(test.modules, _MAX_NAMES)}. {meaning}",
        f"{test.statistic} is {test.observed:.3f} (Z {format_number(test.z)}, "
        f"P {format_p(test.p)}{interval}).",
    )
    table = [("Module", "Module", test.statistic)]
    table += [(str(a), str(b), format_number(value)) for a, b, value in test.to_rows()]
    kind = "Modularity" if test.statistic == "CR" else "Integration"
    heading = f"{kind}: {format_some(test.modules, 3)}"
    return Section(heading, words, "Pairs of modules", table, _draw("permuted", test))


@_describe.register
def _describe_effect_sizes(sizes: stats.EffectSizes, links: Links) -> Section:
    words = (
        f"How far {sizes.statistic} lies above chance, compared between {len(sizes.names)} tests: "
        "z is the difference of two, transformed to be normal under chance, over its standard "
        "error. Z of each is in units of its own chance, so z is not the difference of Z.",
    )
    effects = zip(sizes.names, map(format_number, sizes.observed), sizes.effect_sizes, strict=True)
    table = [("", "Observed", "Z"), *((n, value, format_number(z)) for n, value, z in effects)]
    rows = [(f"{a} – {b}", format_number(z), format_p(p)) for a, b, z, p in sizes.to_rows()]
    extra_tables = (("Pairs", [("Pair", "z of the difference", "P"), *rows]),)
    picture = _draw("effect_sizes", sizes, height=1.3 + 0.55 * len(sizes.names))
    heading = f"Effect sizes compared: {sizes.statistic}"
    return Section(heading, words, "Effect sizes", table, picture, extra_tables)


@_describe.register
def _describe_eigenvalue_variance(result: stats.EigenvalueVariance, links: Links) -> Section:
    words = (
        f"The relative variance of the eigenvalues, Vrel, is {format_number(result.vrel)}: 0 where "
        "shape varies alike in all directions, 1 where it varies along one axis. Z is its effect "
        "size above that of no integration, and compares samples.",
    )
    figures = (result.vrel, result.z, float(np.sqrt(result.z_variance)))
    table = [("Vrel", "Z", "Standard error of Z"), tuple(map(format_number, figures))]
    picture = _draw("scree", result, height=3.4)
    return Section("Integration of all landmarks", words, "Vrel", table, picture)


@_describe.register
def _describe_group_allometry(allometry: stats.GroupAllometry, links: Links) -> Section:
    row = allometry.anova.table.rows[2]  # the interaction of size and groups
    words = (
        f"Do the groups change in the same way with size? The interaction of size and group has P "
        f"{format_p(row.p)}. Slopes are compared by length (how much shape changes) "
        "and angle (how).",
        "The figure shows the common allometric component, the regression score and the predicted "
        "line of every specimen over log size.",
    )
    table = _tabulate_effects(allometry.anova.table)
    header = ("Pair", "Length difference", "P", "Angle", "P")
    slopes = zip(allometry.groups, map(format_number, allometry.lengths), strict=True)
    extra_tables = (
        ("Slopes of groups", [("Group", "Slope length"), *slopes]),
        ("Slopes compared", [header, *allometry.cells()]),
    )
    picture = _draw("group_allometry", allometry, height=3.4)
    return Section("Shape and size by group", words, "Model", table, picture, extra_tables)


@_describe.register
def _describe_trajectories(paths: stats.Trajectories, links: Links) -> Section:
    words = (
        f"The paths of {len(paths.groups)} groups through {len(paths.stages)} stages "
        f"({', '.join(paths.stages)}), compared by length, angle and, of three stages or more, "
        "form.",
    )
    rows = paths.cells()
    header = ("Pair", "Length difference", "P", "Angle", "P", "Form", "P")[: len(rows[0])]
    picture = _draw("trajectories", paths)
    lengths = zip(paths.groups, map(format_number, paths.lengths), strict=True)
    extra_tables = (("Lengths of the paths", [("Group", "Path length"), *lengths]),)
    return Section("Trajectories", words, "Pairs of groups", [header, *rows], picture, extra_tables)


@_describe.register
def _describe_measurement_error(error: stats.MeasurementError, links: Links) -> Section:
    words = (
        f"{error.eta_squared:.1%} of the measurement error is systematic: a shift that a replicate "
        "has in all subjects. The sum of squares of the subjects is "
        f"{format_number(error.signal_to_noise)} times that of random error.",
    )
    table = _tabulate_effects(error.table)
    picture = _draw("permuted", error)
    return Section("Measurement error", words, "Subjects, replicates, random error", table, picture)


@_describe.register
def _describe_signal(signal: stats.PhylogeneticSignal, links: Links) -> Section:
    words = (
        f"K is {format_number(signal.k)} (P {format_p(signal.p)}), 1 being what "
        "Brownian motion along the tree leads one to expect; P comes from permuting the shapes "
        f"among the {len(signal.species)} tips.",
        f"The effect size Z of the likelihood, of {signal.n_components} components and λ "
        f"{signal.scaling:.3g}, is {format_number(signal.z, unknown='none')}; it compares data "
        "sets.",
    )
    table = [("K", "P", "Z", "λ", "Components")]
    table += [
        (
            *(format_number(signal.k), format_p(signal.p)),
            *(format_number(signal.z, unknown="none"), f"{signal.scaling:.3g}"),
            str(signal.n_components),
        )
    ]
    return Section("Phylogenetic signal", words, "Signal", table, _draw("permuted", signal))


@_describe.register
def _describe_phylogenetic_components(space: stats.PhylogeneticComponents, links: Links) -> Section:
    words = (
        f"{len(space.shapes)} species and {len(space.ancestors)} ancestors, whose shapes are the "
        "most likely ones under Brownian motion. The shape in the corner is that of the root, "
        "bent from the mean of the species.",
    )
    rows = [
        (str(k), format_number(variance), f"{share:.1%}")
        for k, (variance, share) in enumerate(zip(space.variances, space.shares, strict=True), 1)
    ]
    table = [("Component", "Variance", "Share"), *rows[:8]]
    picture = _draw("phylomorphospace", space, height=5.6)
    return Section("The tree in morphospace", words, "Components", table, picture)


@_describe.register
def _describe_rates(rates: stats.EvolutionaryRates, links: Links) -> Section:
    words = (
        f"The fastest group evolved {rates.ratio:.3g} times as fast as the slowest (P "
        f"{format_p(rates.p)}); rates are per coordinate and unit of branch length.",
    )
    rows = zip(rates.names, rates.counts, rates.rates, strict=True)
    table = [("Group", "Species", "Rate"), *((n, str(k), format_number(r)) for n, k, r in rows)]
    extra_tables: Tables = ()
    if len(rates.names) > 2:
        extra_tables = (("Pairs of groups", [("Pair", "Ratio", "P"), *rates.cells()]),)
    picture = _draw("permuted", rates)
    return Section("Rates of evolution", words, "Rates", table, picture, extra_tables)


@_describe.register
def _describe_sliding(slid: SlidShapes, links: Links) -> Section:
    moved = np.where(np.isnan(slid.distances), 0.0, slid.distances)
    order = np.argsort(-moved.max(axis=1), kind="stable")
    farthest = int(order[0])
    counts = np.maximum(slid.visible[:, slid.sliders].sum(axis=1), 1)
    rows = [
        (slid.names[i], format_number(moved[i].sum() / counts[i]), format_number(moved[i].max()))
        for i in order
    ]
    first, last = slid.criterion[0, 0].sum(), slid.criterion[-1, 1].sum()
    words = (
        f"{len(slid.sliders)} of {slid.n_landmarks} landmarks slid in {len(slid.criterion)} "
        f"iterations, which reduced the criterion from {first:.4g} to {last:.4g}. The figure shows "
        f"{slid.names[farthest]}, whose points slid farthest.",
        *map(str, slid.findings),
    )
    table = [("Specimen", "Mean", "Largest"), *rows]
    before = slid.with_points(slid.digitised)
    picture = _draw("sliding", before, slid, farthest, n_dims=slid.n_dims)
    return Section("Semilandmarks", words, "How far the points slid", table, picture)


def _tabulate_effects(table: EffectTable) -> list[Sequence[str]]:
    header, *rows = table.cells()
    return [("Term", *header[1:]), *rows]


def _draw(
    name: str, *shown: object, n_dims: int = 2, height: float = 5.0, **options: object
) -> dict[str, str] | None:
    """Draw a figure of `defgpa.plot` and return it as addresses, in SVG and PNG.

    The same figure is the same every time.
    """
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from defgpa import plot

    with rc_context({"svg.hashsalt": name, "text.parse_math": False}):  # a name is no formula
        figure = Figure(figsize=(8.0, height), layout="constrained")
        axes = figure.add_subplot(projection="defgpa") if n_dims == 3 else figure.subplots()
        getattr(plot, name)(*shown, ax=axes, **options)
        return {
            "svg": _encode(figure, "svg", "image/svg+xml", metadata={"Date": None}),
            "png": _encode(figure, "png", "image/png", dpi=200, metadata={"Software": None}),
        }


def _encode(figure: Figure, kind: str, media_type: str, **options: Any) -> str:
    """Encode a figure as a data URL."""
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, **options)
    return f"data:{media_type};base64," + base64.b64encode(stream.getvalue()).decode("ascii")
