"""``defgpa test``: what shape depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import click

from defgpa.cli import _options as options
from defgpa.cli._analysis import (
    Analysis,
    AnalysisSettings,
    analysis_options,
    open_analysis,
    select_values,
)
from defgpa.cli._console import Console
from defgpa.cli._input import make_word_error

if TYPE_CHECKING:
    from defgpa.statistics import ProcrustesAnova


@options.command("test", "defgpa test heads.tps --data heads.csv -f 'shape ~ species'")
@options.input_argument
@options.analysis_option(
    "--formula",
    "-f",
    metavar="MODEL",
    help="Model as in R, such as 'shape ~ species * site'; size is centroid size.",
)
@options.analysis_option(
    "--pairwise", metavar="COLUMN[:COLUMN]", help="Distances between the groups of the model."
)
@options.analysis_option(
    "--landmarks", metavar="COLUMN", help="Compare two groups landmark by landmark."
)
@options.analysis_option(
    "--between", metavar="A,B", help="The two groups of --landmarks, if there are more."
)
@options.analysis_option(
    "--allometry", "by_size", is_flag=True, help="Regression of shape on log centroid size."
)
@options.analysis_option(
    "--sizes", metavar="S,S,…", help="Write the shapes that --allometry predicts at these sizes."
)
@options.analysis_option(
    "--repeatability",
    "individual",
    metavar="COLUMN",
    help="Repeatability; COLUMN has the individual of each replicate.",
)
@options.analysis_option(
    "--slopes",
    metavar="COLUMN",
    help="Compare how shape changes with size between the groups in COLUMN.",
)
@options.analysis_option(
    "--trajectories",
    "paths",
    metavar="GROUPS,STAGES",
    help="Compare the paths of groups through the same stages; two columns.",
)
@options.analysis_option(
    "--stages",
    metavar="A,B,…",
    help="The order of the stages of --trajectories; default: that of numbers, or of the file.",
)
@options.analysis_option(
    "--measurement-error",
    "replicates",
    metavar="SUBJECT,REPLICATE",
    help="Systematic and random error of replicates; two columns, or several joined such as "
    "ind:side,rep.",
)
@options.analysis_option(
    "--ss-type",
    type=click.Choice(["I", "II", "III"]),
    default="I",
    show_default=True,
    metavar="TYPE",
    help="Sums of squares of --formula: I (sequential), II or III.",
)
@options.analysis_option(
    "--error", metavar="TERM=TERM,…", help="Error terms of --formula, such as species=species:site."
)
@options.analysis_option(
    "--against", metavar="MODEL", help="Test what --formula explains beyond this smaller model."
)
@options.analysis_option(
    "--imputations",
    metavar="COUNT",
    type=click.IntRange(min=0),
    default=0,
    help="Pool --formula, --pairwise and --allometry over COUNT completions of missing "
    "landmarks, drawn from their uncertainty.",
)
@analysis_options
def command(
    source: tuple[str, ...],
    formula: str | None,
    pairwise: str | None,
    landmarks: str | None,
    between: str | None,
    by_size: bool,
    sizes: str | None,
    individual: str | None,
    slopes: str | None,
    paths: str | None,
    stages: str | None,
    replicates: str | None,
    ss_type: str,
    error: str | None,
    against: str | None,
    imputations: int,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Test what shape depends on: groups, size, covariates; repeatability.

    INPUT is a saved result or landmark files. Either way the specimens are analysed, in the
    classical tangent space, whatever warps a result has; missing landmarks are completed. P comes
    from permuting the residuals of reduced models.
    """
    if not (
        formula or landmarks or by_size or sizes or individual or slopes or paths or replicates
    ):
        raise click.UsageError(
            "Nothing to test: give --formula, --landmarks, --allometry, --slopes, --trajectories, "
            "--repeatability or --measurement-error."
        )
    if stages and not paths:
        raise click.UsageError("--stages orders the stages of --trajectories: give that too.")
    for option, word in (("--pairwise", pairwise), ("--error", error), ("--against", against)):
        if word and not formula:
            raise click.UsageError(f"{option} goes with a model: give --formula too.")
    with open_analysis(console, source, "Tests", "test.json", **settings) as analysis:
        if formula:
            model = analysis.fit_model(
                formula,
                ss_type=len(ss_type),
                error=_parse_error_terms(error),
                n_imputations=imputations,
            )
            analysis.add("anova", model, [row.__dict__ for row in model.table], "effects")
            if against:
                _compare_models(analysis, model, against)
            if pairwise:
                _compare_pairs(analysis, model, pairwise)
        if by_size or sizes:
            _test_allometry(analysis, _parse_sizes(sizes), imputations)
        if slopes:
            _compare_slopes(analysis, slopes)
        if paths:
            _compare_trajectories(analysis, paths, stages)
        if landmarks:
            _compare_landmarks(analysis, landmarks, between)
        if individual:
            _measure_repeatability(analysis, individual)
        if replicates:
            _measure_error(analysis, replicates)


def _compare_models(analysis: Analysis, model: ProcrustesAnova, against: str) -> None:
    """Test what a model explains beyond a smaller one."""
    from defgpa.statistics import compare_models

    compared = compare_models(analysis.fit_model(against), model)
    analysis.add("models", compared, [row.__dict__ for row in compared.table], "permuted")


def _compare_pairs(analysis: Analysis, model: ProcrustesAnova, groups: str) -> None:
    """Test the distances between the groups of a model."""
    with analysis.console.show_progress("Permuting") as tick:
        pairs = model.pairwise(groups, progress=tick)
    values = {"groups": pairs.names, **select_values(pairs, "distances", "p")}
    analysis.add("pairwise", pairs, values, "pairwise")


def _test_allometry(analysis: Analysis, sizes: list[float], imputations: int) -> None:
    """Regress shape on log size (a column ``size``, or centroid size); predict at sizes."""
    from defgpa.statistics import allometry

    size = analysis.columns.get("size")
    regression = analysis.permute(allometry, analysis.sample, size, n_imputations=imputations)
    rows = [row.__dict__ for row in regression.anova.table]
    analysis.add("allometry", regression, rows, "allometry", links=analysis.shapes.links)
    if sizes:
        names = [f"size {size:g}" for size in sizes]
        points = regression.predict(sizes)
        analysis.files.write_shapes("predicted", points, names, analysis.shapes.landmarks)


def _compare_slopes(analysis: Analysis, name: str) -> None:
    """Compare the slopes of groups, and write the shapes corrected for size."""
    from defgpa.statistics import group_allometry

    groups = analysis.find_labels(name, "--slopes")
    size = analysis.columns.get("size")
    result = analysis.permute(group_allometry, analysis.sample, groups, size, name=name)
    values = select_values(result, "groups", "lengths", "length_p", "angles", "angle_p")
    values["table"] = [row.__dict__ for row in result.anova.table]
    analysis.add("slopes", result, values, "group_allometry")
    analysis.files.write_table("allometric_scores.csv", result.scores_to_csv())
    shapes = result.correct_size()
    analysis.files.write_shapes("size_corrected", shapes.points, shapes.names, shapes.landmarks)


def _compare_trajectories(analysis: Analysis, names: str, order: str | None) -> None:
    """Compare the paths of groups through stages."""
    from defgpa.statistics import trajectories

    groups, stages = _find_two_columns(analysis, names, "--trajectories")
    words = None if order is None else [word.strip() for word in order.split(",")]
    result = analysis.permute(trajectories, analysis.sample, groups, stages, order=words)
    values = {"groups": result.groups, "lengths": result.lengths, "pairs": result.records()}
    analysis.add("trajectories", result, values, "trajectories")


def _compare_landmarks(analysis: Analysis, name: str, between: str | None) -> None:
    """Compare two groups landmark by landmark."""
    from defgpa.statistics import landmark_differences

    groups = analysis.find_labels(name, "--landmarks")
    pair = _choose_two_groups(groups, between)
    differences = analysis.permute(landmark_differences, analysis.sample, groups, between=pair)
    values = {"p": differences.p, "q": differences.q, "distance": differences.distances}
    links = analysis.shapes.links
    analysis.add("landmarks", differences, values, "landmark_differences", links=links)


def _measure_repeatability(analysis: Analysis, name: str) -> None:
    """Compare replicates of the same individuals."""
    from defgpa.statistics import repeatability

    result = repeatability(analysis.sample, analysis.find_labels(name, "--repeatability"))
    values = {"overall": result.overall, "per_landmark": result.per_landmark}
    links = analysis.shapes.links
    analysis.add("repeatability", result, values, "repeatability", links=links)


def _measure_error(analysis: Analysis, names: str) -> None:
    """Separate systematic from random error of replicates."""
    from defgpa.statistics import measurement_error

    subject, replicate = _find_two_columns(analysis, names, "--measurement-error")
    result = analysis.permute(measurement_error, analysis.sample, subject, replicate)
    values = select_values(result, "eta_squared", "signal_to_noise")
    values["table"] = [row.__dict__ for row in result.table]
    analysis.add("measurement_error", result, values, "permuted")


def _find_two_columns(
    analysis: Analysis, names: str, option: str
) -> tuple[Sequence[object], Sequence[object]]:
    """Return the two columns that ``A,B`` names."""
    first, sign, second = names.partition("," if "," in names else ":")
    if not sign or not first.strip() or not second.strip():
        raise make_word_error(option, "two columns such as species,stage", names)
    return analysis.find_labels(first, option), analysis.find_labels(second, option)


def _parse_error_terms(words: str | None) -> dict[str, str]:
    """Parse ``species=species:site,…`` as terms and their error terms."""
    terms = {}
    for item in (words or "").split(","):
        term, sign, denominator = (name.strip() for name in item.partition("="))
        if sign and term and denominator:
            terms[term] = denominator
        elif item.strip():
            raise make_word_error("--error", "terms such as species=species:site", words)
    return terms


def _choose_two_groups(groups: list[str], between: str | None) -> tuple[str, str]:
    """Return the two groups to compare, or an error that says which there are."""
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        raise click.BadParameter(
            f"landmarks are compared between 2 groups; there is only {names[0]!r}.",
            param_hint="--landmarks",
        )
    requested_groups = names if between is None else [word.strip() for word in between.split(",")]
    unknown = [word for word in requested_groups if word not in names]
    if unknown or len(requested_groups) != 2:
        from defgpa.errors import format_names

        raise click.BadParameter(
            f"landmarks are compared between 2 groups, such as --between {','.join(names[:2])}; "
            f"there is {format_names(names)}.",
            param_hint="--between",
        )
    return requested_groups[0], requested_groups[1]


def _parse_sizes(words: str | None) -> list[float]:
    try:
        return [float(word) for word in (words or "").split(",") if word.strip()]
    except ValueError:
        raise make_word_error("--sizes", "numbers such as 10,20", words) from None
