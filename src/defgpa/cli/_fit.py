"""``defgpa fit``: shapes in, a reference, warps, errors and files out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import (
    add_covariates,
    add_links,
    list_edits,
    parse_proportions,
    parse_rigidity,
    parse_smoothing,
    prepare_for_fit,
    read_input,
    warp_model,
)
from defgpa.cli._output import (
    check_output_folder,
    format_command,
    open_results,
    refuse_inputs,
    require_report,
    show_run,
)

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.diagnostics.findings import Finding
    from defgpa.diagnostics.rejection import Rejection
    from defgpa.estimators import AlignmentEstimator
    from defgpa.model_selection import Comparison, CrossValidation, SmoothingPath
    from defgpa.shapes import Shapes
    from defgpa.warps import WarpModel

_MIN_ROBUST_SHAPES = 5  # fewer cannot outvote a stray landmark


@options.command("fit", "defgpa fit wings.tps -o result/ --report")
@options.input_argument
@options.method_option(
    "--method",
    type=click.Choice(options.METHODS),
    metavar="NAME",
    help="rigid (classical GPA), affine, elastic, deformable, or auto (default): the one that "
    "predicts left-out landmarks best.",
)
@options.method_option(
    "--scaling/--no-scaling",
    default=True,
    help="With --method rigid: bring specimens to one size (default), or keep their sizes.",
)
@options.method_option(
    "--robust/--no-robust",
    default=None,
    help="Leave gross errors out: estimate landmark weights, and name what is rejected. By default "
    "--method auto does so where it finds any.",
)
@options.cross_validation
@options.method_option(
    "--pose",
    default="principal",
    metavar="principal|first|NAME",
    help="Pose of the reference: its principal axes (default), or that of a specimen.",
)
@options.warping
@options.smoothing
@options.rigidity
@options.proportions
@options.output_option("FOLDER", "Folder for the results; INPUT-defgpa by default.")
@options.option("--report", is_flag=True, help="Also write report.html.")
@options.title
@options.links
@options.covariates
@options.drop_unlisted
@options.reading
def command(
    source: tuple[str, ...],
    method: str | None,
    scaling: bool,
    robust: bool | None,
    fold_size: int | None,
    jobs: int | None,
    pose: str,
    warp: str | None,
    points_per_axis: str | None,
    smoothing: str | None,
    theta: float | None,
    rigidity: str | None,
    proportions: str,
    output: str | None,
    report: bool,
    title: str | None,
    links: str | None,
    data: str | None,
    drop_unlisted: bool,
    console: Console,
) -> None:
    """Align shapes onto one reference: rigidly, or with one smooth warp per shape.

    By default the method is chosen by cross-validation, and so are smoothing and rigidity where
    they are not stated; a sentence says which and why. Writes the reference and the shapes,
    aligned (through their warps, deformation removed) and superimposed (by similarity only,
    deformation kept), as CSV and in the input's own format; specimens.csv (one row each);
    result.npz (for the other commands and
    defgpa.load); summary.json; edits.json, if specimens were corrected or left out. What an
    earlier run left in the folder is replaced.
    """
    from defgpa.edits import write_edits
    from defgpa.result_folder import write_alignment

    choice = MethodOptions(
        *(method, warp, points_per_axis, smoothing, theta, rigidity, proportions, fold_size, jobs),
        scaling=scaling,
    )
    choice.refuse_contradictions()
    folder = check_output_folder(output, source, "defgpa")
    if title is not None and not report:
        raise click.UsageError("--title is the heading of the report: give --report too.")
    if report:
        require_report()
    with console.note_warnings():
        shapes = prepare_for_fit(console, read_input(source))
        shapes = add_links(add_covariates(console, shapes, data, drop_unlisted), links)
        written = ("reference", "aligned", "superimposed")
        refuse_inputs(
            [*shapes.metadata.get("sources", ()), *filter(None, [data])], folder, *written
        )
        if pose not in ("principal", "first"):
            shapes.index(pose)  # a name that nobody has is told before the work
        rejection = choose_rejection(console, shapes, choice, robust)
        if rejection is None:
            fit = fit_shapes(console, shapes, choice)
        else:
            fit = fit_robustly(console, shapes, choice, rejection)
        alignment = fit.alignment
        if pose != "principal":
            alignment = alignment.posed_like(shapes[0 if pose == "first" else pose])
        console.note_findings(*alignment.findings)
        for finding in alignment.foldover_findings:
            console.note_findings(_add_remedy(finding, fit, shapes))
    results = collect_results(alignment, fit)
    summary: dict[str, object] = {
        "figures": results,
        "parameters": {**describe_parameters(fit), "proportions": proportions, "pose": pose},
        "smoothing_path": tabulate_path(fit.path),
        "input": list(source),
    }
    if fit.comparison is not None:
        summary["comparison"] = [row.to_dict() for row in fit.comparison]
    with open_results(console, folder, summary) as new_folder:
        write_alignment(alignment, new_folder)
        if edits := list_edits():
            write_edits(new_folder / "edits.json", edits)
        if report:
            with console.show_activity("Writing the report"):
                write_fit_report(alignment, fit, new_folder, title)
    show_results(console, results)
    show_choice(console, fit)
    show_run(console, folder, summary)


@dataclass(frozen=True)
class MethodOptions:
    """The options of the command line that choose the method, unparsed."""

    method: str | None = None
    warp: str | None = None
    points_per_axis: str | None = None
    smoothing: str | None = None
    theta: float | None = None
    rigidity: str | None = None
    proportions: str = "rigid"
    fold_size: int | None = None
    jobs: int | None = None
    scaling: bool = True

    @property
    def method_name(self) -> str:
        """The method named, or the one that options for experts imply; auto without any."""
        if self.method is not None:
            return self.method
        if self.rigidity is not None:
            return "elastic"
        if self.warp == "affine":
            return "affine"
        return "deformable" if self._expert_options else "auto"

    @property
    def _expert_options(self) -> list[str]:
        """The options for experts that were given."""
        values = {
            "--warp": self.warp,
            "--points-per-axis": self.points_per_axis,
            "--smoothing": self.smoothing,
            "--theta": self.theta,
            "--rigidity": self.rigidity,
            "--proportions": None if self.proportions == "rigid" else self.proportions,
        }
        return [name for name, value in values.items() if value is not None]

    def refuse_contradictions(self) -> None:
        """Raise a UsageError if one option makes another meaningless."""
        method, experts = self.method_name, self._expert_options
        if not self.scaling and method != "rigid":
            raise click.UsageError("--no-scaling is for rigid alignment: give --method rigid.")
        if method in ("auto", "rigid") and experts:
            reason = "chooses the warps" if method == "auto" else "has no warps"
            raise click.UsageError(f"--method {method} {reason}: drop {' and '.join(experts)}.")
        if method == "affine" and self.warp not in (None, "affine"):
            raise click.UsageError(f"--method affine has affine warps: drop --warp {self.warp}.")
        if method == "deformable" and self.rigidity is not None:
            raise click.UsageError("--rigidity makes warps elastic: give --method elastic.")
        if method in ("deformable", "elastic") and self.method and self.warp == "affine":
            raise click.UsageError(f"--warp affine does not bend: drop it, or --method {method}.")
        automatic = [name for name in ("smoothing", "rigidity") if getattr(self, name) == "auto"]
        if automatic and self.theta is not None:
            raise click.UsageError(f"--{automatic[0]} auto chooses the smoothing: drop --theta.")
        if automatic and (self.warp == "affine" or method == "affine"):
            raise click.UsageError(f"An affine warp does not bend: drop --{automatic[0]} auto.")
        if self.rigidity is not None and self.proportions != "rigid":
            raise click.UsageError(
                "--rigidity says where the proportions come from: drop --proportions."
            )
        if method not in ("auto", "rigid"):
            self.make_warp()

    def make_warp(self) -> WarpModel:
        """Return the warp model that the options describe."""
        family = "affine" if self.method_name == "affine" else self.warp or "tps"
        return warp_model(family, self.points_per_axis, parse_smoothing(self.smoothing), self.theta)

    def make_estimator(self) -> AlignmentEstimator:
        """Return the estimator of a method that was named or implied."""
        from defgpa.estimators import DefGPA, ElasticGPA, EuclideanGPA

        match self.method_name:
            case "rigid":
                return EuclideanGPA(scaling=self.scaling)
            case "elastic":
                return ElasticGPA(self.make_warp(), parse_rigidity(self.rigidity or "auto"))
            case _:
                return DefGPA(self.make_warp(), proportions=parse_proportions(self.proportions))

    @property
    def chooses(self) -> bool:
        """Whether smoothing or rigidity are to be chosen."""
        if self.method_name == "elastic":
            choosable = self.warp != "affine" and self.theta is None
            return choosable and (
                self.rigidity in (None, "auto") or self.smoothing in (None, "auto")
            )
        return self.method_name == "deformable" and (
            self.smoothing == "auto" or (self.smoothing is None and self.theta is None)
        )

    @property
    def constraints(self) -> dict[str, list[float]]:
        """What of smoothing and rigidity is stated, as select_smoothing takes it."""
        fixed: dict[str, list[float]] = {}
        if self.method_name == "elastic" and self.rigidity not in (None, "auto"):
            fixed["rigidities"] = [parse_rigidity(str(self.rigidity))]
        value = parse_smoothing(self.smoothing)
        if self.method_name == "elastic" and value is not None:
            fixed["grid"] = [value]
        return fixed


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit, with the comparison or smoothing path that chose it."""

    method: str
    estimator: AlignmentEstimator
    alignment: Alignment
    fold_size: int | None = None
    path: SmoothingPath | None = None
    cross_validation: CrossValidation | None = None
    comparison: Comparison | None = None
    reason: str = ""


def fit_shapes(console: Console, shapes: Shapes, choice: MethodOptions) -> Fit:
    """Choose the method and the smoothing if asked to, fit, and cross-validate; nothing twice."""
    from defgpa.model_selection import cross_validate, select_method
    from defgpa.model_selection.method_selection import choose_fold_size, is_ordinary_size

    size = choose_fold_size(shapes) if choice.fold_size is None else choice.fold_size
    method = choice.method_name
    if method == "auto":
        with console.show_progress("Choosing the method") as tick:
            chosen = select_method(shapes, fold_size=size, n_jobs=choice.jobs, progress=tick)
        return Fit(**vars(chosen), fold_size=None if chosen.cross_validation is None else size)
    estimator = choice.make_estimator()
    is_asked = "auto" in (choice.smoothing, choice.rigidity)
    if choice.chooses and (is_asked or is_ordinary_size(shapes)):
        return choose_smoothing(console, shapes, estimator, choice)
    if choice.chooses:
        console.note(
            f"The set is large ({shapes.n_shapes} x {shapes.n_landmarks}): the default smoothing, "
            "1e-3, was taken. --smoothing auto chooses it by cross-validation."
        )
    if choice.fold_size is None:
        return Fit(method, estimator, estimator.fit(shapes).alignment_)
    with console.show_progress("Cross-validating") as tick:
        cv = cross_validate(estimator, shapes, fold_size=size, n_jobs=choice.jobs, progress=tick)
    return Fit(method, estimator, cv.alignment, size, cross_validation=cv)


def choose_rejection(
    console: Console, shapes: Shapes, choice: MethodOptions, robust: bool | None
) -> Rejection | None:
    """Find gross errors by a robust deformable fit, if asked to, or if the method is automatic.

    Returns
    -------
    Rejection or None
        None for least squares: where that was asked for, or no landmark is named.
    """
    from defgpa.errors import DefgpaError
    from defgpa.estimators import DefGPA
    from defgpa.model_selection.method_selection import is_ordinary_size

    is_automatic = robust is None and choice.method_name == "auto" and is_ordinary_size(shapes)
    if not (robust or (is_automatic and shapes.n_shapes >= _MIN_ROBUST_SHAPES)):
        return None
    try:
        with console.show_activity("Looking for gross errors"):
            rejection = DefGPA(robust=True).align(shapes).rejection
    except DefgpaError:
        if robust:
            raise
        return None  # the fit says what is wrong
    assert rejection is not None
    n_landmarks, n_shapes = int(rejection.landmarks.sum()), int(rejection.shapes.sum())
    if is_automatic and not n_landmarks + n_shapes:
        return None
    if is_automatic:
        counts = [
            f"{count} {word}{'s' * (count > 1)}"
            for count, word in ((n_landmarks, "landmark"), (n_shapes, "whole specimen"))
            if count
        ]
        console.note(
            f"Fitted robustly, without {' and '.join(counts)} that did not fit the others; "
            "--no-robust keeps everything."
        )
    return rejection


def fit_robustly(
    console: Console, shapes: Shapes, choice: MethodOptions, rejection: Rejection
) -> Fit:
    """Choose method and smoothing, and fit, with the landmark weights of a robust fit.

    The weights are estimated once, by a deformable fit, so that gross errors choose nothing.
    """
    from sklearn.base import clone

    from defgpa.estimators import weigh_shapes

    fit = fit_shapes(console, weigh_shapes(shapes, rejection), choice)
    alignment = fit.estimator.add_rejection(fit.alignment, shapes, rejection)
    return replace(fit, estimator=clone(fit.estimator).set_params(robust=True), alignment=alignment)


def choose_smoothing(
    console: Console, shapes: Shapes, estimator: AlignmentEstimator, choice: MethodOptions
) -> Fit:
    """Fit with the smoothing (and rigidity) that predicts left-out landmarks best."""
    from defgpa.model_selection import select_smoothing
    from defgpa.model_selection.method_selection import choose_fold_size, is_ordinary_size

    size = choose_fold_size(shapes) if choice.fold_size is None else choice.fold_size
    constraints = choice.constraints
    with console.show_progress("Choosing the smoothing") as tick:
        path = select_smoothing(
            estimator, shapes, fold_size=size, n_jobs=choice.jobs, progress=tick, **constraints
        )
    validated = path.cross_validation
    if validated is not None and choice.method is None and is_ordinary_size(shapes):
        note_better_rigid(console, shapes, validated, size)
    return Fit(choice.method_name, path.best, path.alignment, size, path, validated)


def note_better_rigid(
    console: Console, shapes: Shapes, validated: CrossValidation, fold_size: int
) -> None:
    """Say so if rigid alignment predicts left-out landmarks better than warps nobody asked for."""
    from defgpa.estimators import EuclideanGPA
    from defgpa.model_selection import cross_validate

    rigid = cross_validate(EuclideanGPA(scaling=True), shapes, fold_size=fold_size)
    rigid_error, error = (
        100.0 * cv.error / float((cv.reference**2).sum(axis=1).mean() ** 0.5)
        for cv in (rigid, validated)
    )
    if rigid_error <= error:
        console.note(
            f"Rigid alignment predicts left-out landmarks better: with an error of "
            f"{rigid_error:.3g} % of the size of the reference, these warps with {error:.3g} %. "
            "To align rigidly: --method rigid in place of --smoothing and --rigidity."
        )


def describe_parameters(fit: Fit) -> dict[str, object]:
    """Return what was fitted and how, for the summary."""
    model = getattr(fit.estimator, "warp_model", None)
    return {
        "method": fit.method,
        "estimator": repr(fit.estimator),
        "warp": None if model is None else repr(model),
        "rigidity": _state_rigidity(getattr(fit.estimator, "rigidity", None)),
        "fold_size": fit.fold_size,
        "reason": fit.reason or None,
    }


def _state_rigidity(rigidity: float | None) -> float | str | None:
    """Return a rigidity as JSON can hold it."""
    return "inf" if rigidity == float("inf") else rigidity


def write_fit_report(alignment: Alignment, fit: Fit, folder: Path, title: str | None) -> None:
    """Write ``report.html`` into the folder of a fit."""
    from defgpa.report import write_report

    write_report(
        alignment,
        folder / "report.html",
        smoothing=fit.path,
        cross_validation=fit.cross_validation,
        comparison=fit.comparison,
        title=title,
        provenance={"command": format_command(), "result": "result.npz"},
    )


def collect_results(alignment: Alignment, fit: Fit) -> dict[str, object]:
    """Return the numbers of a fit, by name; smoothing and rigidity where they were chosen."""
    spectral, validated, path = alignment.spectral, fit.cross_validation, fit.path
    rigidities = getattr(path, "rigidities", ())
    return {
        "shapes": alignment.shapes.n_shapes,
        "landmarks": alignment.shapes.n_landmarks,
        "dimension": alignment.shapes.n_dims,
        "visible": alignment.n_counted,
        "left_out": int((alignment.shapes.visible & (alignment.weights == 0.0)).sum()),
        "method": fit.method,
        "rmse_reference": alignment.rmse_reference,
        "rmse_datum": alignment.rmse_datum,
        "cve": None if validated is None else float(validated.error),
        "chosen_smoothing": None if path is None or len(path.values) < 2 else path.best_value,
        "chosen_rigidity": _state_rigidity(getattr(path, "best_rigidity", None))
        if len(rigidities) > 1
        else None,
        "eigenvalues": alignment.eigenvalues,
        "spectral_gap": None if spectral is None else spectral.gap,
        "excess_cost": None if spectral is None else spectral.excess,
        "similarity_residual": None if spectral is None else spectral.similarity_residual,
        "foldovers": None if alignment.has_affine_warps else int(alignment.foldovers.sum()),
        "mirrored": list(alignment.mirrored),
        "lone_landmarks": list(alignment.lone_landmarks),
        "rejected_landmarks": [list(landmark) for landmark in alignment.rejected],
        "rejected_shapes": list(alignment.rejected_shapes),
    }


def tabulate_path(path: SmoothingPath | None) -> dict[str, object] | None:
    """Return the smoothing path as plain columns; None where nothing was chosen."""
    if path is None:
        return None
    from defgpa.model_selection import DialSurface

    columns: dict[str, object] = {}
    if isinstance(path, DialSurface):
        rigidities = [_state_rigidity(float(value)) for value in path.rigidities]
        columns = {"rigidity": rigidities, "surface": path.surface}
    return columns | {
        "smoothing": path.values,
        "cve": path.cve,
        "chosen": path.best_value,
        "least": path.least_value,
    }


def show_choice(console: Console, fit: Fit) -> None:
    """Say which method and smoothing were chosen, by which rule, and how to ask for others."""
    if fit.reason:
        console.print_paragraph(f"{fit.reason} To choose another: --method NAME.")
    if fit.path is not None and len(fit.path.values) > 1:
        console.print_paragraph(fit.path.explain_choice())
    if fit.reason or fit.path is not None:
        console.print_line("")


def show_results(console: Console, results: dict[str, object]) -> None:
    """Show the results with a phrase each."""
    rows = [
        ["RMSE_r", results["rmse_reference"], "left between aligned shapes and reference"],
        ["RMSE_d", results["rmse_datum"], "the same, projected back into each shape"],
        ["CVE", results["cve"], "error on landmarks that were left out"],
        ["smoothing", results["chosen_smoothing"], "chosen by cross-validation"],
        ["rigidity", results["chosen_rigidity"], "chosen by cross-validation"],
        ["spectral gap", results["spectral_gap"], "near 0: the reference is ambiguous"],
        ["foldovers", results["foldovers"], "landmarks where a warp folds over (want 0)"],
    ]
    rows = [row for row in rows if row[1] is not None]
    title = f"Results of {results['method']} alignment"
    if results["left_out"]:
        title += f", without {results['left_out']} landmarks"
    console.print_table(title, ["result", "value", "meaning"], rows)


def _add_remedy(finding: Finding, fit: Fit, shapes: Shapes) -> Finding:
    """Add to the finding of foldovers a smoothing at which no warp folds, if one is found."""
    warp = getattr(fit.estimator, "warp_model", None)
    name = "smoothing" if getattr(warp, "theta", None) is None else "theta"
    value = _find_unfolding(fit, shapes, name, getattr(warp, name, None))
    remedy = {} if value is None else {name: value}
    return replace(finding, values={**finding.values, **remedy})


def _find_unfolding(fit: Fit, shapes: Shapes, name: str, current: float | None) -> float | None:
    """Return the least smoothing tried at which no warp folds: along the path, or by decades."""
    from sklearn.base import clone

    if fit.path is not None:
        return fit.path.unfolded_value
    if current is None or shapes.visible.size > 200_000:  # more fits would take long
        return None
    for exponent in range(1, 7):  # decades
        value = max(current, 1e-6) * 10.0**exponent
        warp = replace(fit.estimator.warp_model, **{name: value})
        stiffer = clone(fit.estimator).set_params(warp=warp)
        if not stiffer.solve(shapes)[0].foldovers.any():
            return float(value)
    return None
