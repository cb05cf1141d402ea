"""``defgpa fit``: shapes in, a reference, warps, figures and files out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import (
    fitting_input,
    fold_size_for,
    proportions_value,
    read_input,
    rigidity_value,
    smoothing_value,
    warp_model,
)
from defgpa.cli._output import (
    output_folder,
    refuse_inputs,
    require_report,
    results,
    tell_run,
    to_paste,
    write_shapes_twice,
)

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.diagnostics.findings import Finding
    from defgpa.shapes import Shapes


@options.command("fit", "defgpa fit wings.tps -o result/ --smoothing auto --report")
@options.input_argument
@click.option(
    "--output", "-o", type=click.Path(), help="Folder for the results; INPUT-defgpa by default."
)
@options.warping
@options.smoothing
@options.rigidity
@options.proportioning
@options.folding
@click.option(
    "--pose",
    default="principal",
    show_default=True,
    metavar="principal|first|NAME",
    help="Pose of the reference: its principal axes, or like a shape.",
)
@click.option("--report", is_flag=True, help="Also write report.html.")
@options.reading
def command(
    source: tuple[str, ...],
    output: str | None,
    warp: str,
    points_per_axis: str | None,
    smoothing: str | None,
    theta: float | None,
    rigidity: str | None,
    proportions: str,
    fold_size: int | None,
    jobs: int | None,
    pose: str,
    report: bool,
    console: Console,
) -> None:
    """Align shapes onto one reference, with one smooth warp per shape.

    Writes the reference and the shapes, aligned (through their warps, deformation removed) and
    superimposed (by similarity only, deformation kept), as CSV and in the input's own format;
    specimens.csv (one row each); result.npz (the warps; defgpa.load reads it); summary.json.
    What an earlier run left in the folder is replaced. The cross-validation error is computed
    with --fold-size or --smoothing auto.
    """
    _refuse_contradictions(warp, smoothing, theta, rigidity, proportions)
    model = warp_model(warp, points_per_axis, smoothing_value(smoothing), theta)
    folder = output_folder(output, source, "defgpa")
    if report:
        require_report()
    with console.noting():
        shapes = fitting_input(console, read_input(source))
        written = ("reference", "aligned", "superimposed")
        refuse_inputs(shapes.metadata.get("sources", ()), folder, *written)
        if pose not in ("principal", "first"):
            shapes.index(pose)  # a name that nobody has is told before the work
        chosen = "auto" in (smoothing, rigidity)
        estimator = _estimator(model, rigidity, proportions)
        held = _held(smoothing, rigidity)
        done = fitted(console, shapes, estimator, chosen, fold_size, jobs, **held)
        alignment = done.alignment
        if pose != "principal":
            alignment = alignment.posed_like(shapes[0 if pose == "first" else pose])
        console.tell(*alignment.findings)
        for finding in alignment.foldover_findings:
            console.tell(_with_remedy(finding, done, shapes))
    numbers = figures(alignment, done)
    tried = len(getattr(done.path, "rigidities", ()))
    numbers["chosen_rigidity"] = _told(done.path.best_rigidity) if tried > 1 else None
    summary: dict[str, Any] = {
        "figures": numbers,
        "parameters": {
            "warp": repr(done.estimator.model),
            "proportions": proportions,
            "rigidity": _told(getattr(done.estimator, "rigidity", None)),
            "fold_size": done.fold_size,
            "pose": pose,
        },
        "smoothing_path": path_table(done.path),
        "input": list(source),
    }
    with results(console, folder, summary) as partial:
        write_alignment(alignment, partial)
        if report:
            from defgpa.report import write_report

            write_report(
                alignment,
                partial / "report.html",
                smoothing=done.path,
                cross_validation=done.cv,
                provenance={"command": to_paste(), "result": "result.npz"},
            )
    show_figures(console, numbers)
    tell_run(console, folder, summary)


def _refuse_contradictions(
    warp: str, smoothing: str | None, theta: float | None, rigidity: str | None, proportions: str
) -> None:
    """A UsageError where one option leaves another nothing to say."""
    chooses = "auto" in (smoothing, rigidity)
    which = "--smoothing auto" if smoothing == "auto" else "--rigidity auto"
    if chooses and theta is not None:
        raise click.UsageError(f"{which} chooses the smoothing: drop --theta.")
    if chooses and warp == "affine":
        raise click.UsageError(f"--warp affine does not bend: drop {which}.")
    if rigidity is not None and proportions != "rigid":
        raise click.UsageError(
            "--rigidity says where the proportions come from: drop --proportions"
        )


def _estimator(model: Any, rigidity: str | None, proportions: str) -> Any:
    """DefGPA, or with a rigidity ElasticGPA."""
    from defgpa.estimators import DefGPA, ElasticGPA

    if rigidity is None:
        return DefGPA(model, proportions=proportions_value(proportions))
    return ElasticGPA(model, rigidity_value(rigidity))


def _held(smoothing: str | None, rigidity: str | None) -> dict[str, Any]:
    """What of the dial is stated and only the rest to be chosen, as select_smoothing takes it."""
    held: dict[str, Any] = {}
    if rigidity not in (None, "auto"):
        held["rigidities"] = [rigidity_value(str(rigidity))]
    if rigidity == "auto" and smoothing not in (None, "auto"):
        held["grid"] = [smoothing_value(smoothing)]
    return held


def _told(rigidity: float | None) -> float | str | None:
    """As JSON can hold it."""
    return "inf" if rigidity == float("inf") else rigidity


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit with what was learnt on the way to it."""

    estimator: Any
    alignment: Alignment
    fold_size: int | None = None
    path: Any = None
    cv: Any = None


def fitted(
    console: Console,
    shapes: Shapes,
    estimator: Any,
    choose_smoothing: bool,
    fold_size: int | None,
    jobs: int | None,
    **held: Any,
) -> Fitted:
    """Choose the smoothing if asked to, fit, and cross-validate if asked to; nothing twice."""
    from defgpa.model_selection import cross_validate, select_smoothing

    size = fold_size_for(shapes, fold_size)
    if choose_smoothing:
        with console.progress("Choosing the smoothing") as tick:
            path = select_smoothing(
                estimator, shapes, fold_size=size, n_jobs=jobs, progress=tick, **held
            )
        return Fitted(path.best, path.alignment, size, path, path.cross_validation)
    if fold_size is None:
        return Fitted(estimator, estimator.fit(shapes).alignment_)
    with console.progress("Cross-validating") as tick:
        cv = cross_validate(estimator, shapes, fold_size=size, n_jobs=jobs, progress=tick)
    return Fitted(estimator, cv.alignment, size, cv=cv)


def write_alignment(alignment: Alignment, folder: Path) -> None:
    """Reference, shapes in both spaces, a table of the specimens, the result with its warps."""
    from defgpa.io import save
    from defgpa.shapes import Shapes

    shapes = alignment.shapes
    reference = Shapes.specimens(
        [alignment.reference],
        names=["reference"],
        landmarks=shapes.landmarks,
        faces=shapes.faces,
        metadata={
            key: shapes.metadata[key] for key in ("format", "space") if key in shapes.metadata
        },
    )
    write_shapes_twice(reference, folder, "reference")
    for name in ("aligned", "superimposed"):
        brought = shapes.with_points(getattr(alignment, name))
        # scales of the files do not hold in the space of the reference
        write_shapes_twice(brought.with_metadata(scales=None), folder, name)
    write_specimens(alignment, folder)
    save(alignment, folder / "result.npz")


def write_specimens(alignment: Alignment, folder: Path) -> None:
    """``specimens.csv``: one row a specimen."""
    from defgpa.io.atomic import write_text
    from defgpa.io.text.table import format_csv
    from defgpa.statistics import specimens

    columns = specimens(alignment)
    rows = zip(*columns.values(), strict=True)
    write_text(folder / "specimens.csv", format_csv(list(columns), rows, unknown="nan"))


def figures(alignment: Alignment, done: Fitted) -> dict[str, Any]:
    """The numbers of a fit, by name; the smoothing where it was chosen by the way."""
    found, cv, path = alignment.spectral, done.cv, done.path
    chosen = path is not None and len(path.values) > 1
    return {
        "shapes": alignment.shapes.n_shapes,
        "landmarks": alignment.shapes.n_landmarks,
        "dimension": alignment.shapes.n_dims,
        "visible": alignment.n_counted,
        "rmse_reference": alignment.rmse_reference,
        "rmse_datum": alignment.rmse_datum,
        "cve": None if cv is None else float(cv.error),
        "chosen_smoothing": float(path.best_value) if chosen else None,
        "eigenvalues": alignment.eigenvalues,
        "spectral_gap": None if found is None else found.gap,
        "excess_cost": None if found is None else found.excess,
        "similarity_residual": None if found is None else found.similarity_residual,
        "foldovers": int(alignment.foldovers.sum()),
        "mirrored": list(alignment.mirrored),
        "lone_landmarks": list(alignment.lone_landmarks),
    }


def path_table(path: Any) -> dict[str, Any] | None:
    """The smoothing path as plain columns; None where nothing was to be chosen."""
    if path is None:
        return None
    dial: dict[str, Any] = {}
    if hasattr(path, "rigidities"):
        dial = {"rigidity": [_told(float(own)) for own in path.rigidities], "surface": path.surface}
    return dial | {
        "smoothing": path.values,
        "rmse_reference": path.rmse_reference,
        "rmse_datum": path.rmse_datum,
        "cve": path.cve,
        "chosen": path.best_value,
    }


def show_figures(console: Console, numbers: dict[str, Any]) -> None:
    """The figures with one sentence each."""
    rows = [
        ["RMSE_r", numbers["rmse_reference"], "left between warped shapes and reference"],
        ["RMSE_d", numbers["rmse_datum"], "the same, carried back to each shape"],
        ["CVE", numbers["cve"], "error on landmarks the fit had not seen"],
        ["smoothing", numbers["chosen_smoothing"], "chosen by cross-validation"],
        ["rigidity", numbers.get("chosen_rigidity"), "chosen by cross-validation"],
        ["spectral gap", numbers["spectral_gap"], "near 0: the reference is ambiguous"],
        ["foldovers", numbers["foldovers"], "landmarks where a warp folds over (want 0)"],
    ]
    console.table(
        "Figures", ["figure", "value", "what it says"], [r for r in rows if r[1] is not None]
    )


def _with_remedy(finding: Finding, done: Fitted, shapes: Shapes) -> Finding:
    """The finding of warps that fold over, with a smoothing at which none does, if one is found."""
    warp = done.estimator.model
    name = "smoothing" if getattr(warp, "theta", None) is None else "theta"
    value = _unfolded(done, shapes, name, getattr(warp, name, None))
    figures = {} if value is None else {name: value}
    return replace(finding, values={**finding.values, **figures})


def _unfolded(done: Fitted, shapes: Shapes, name: str, used: float | None) -> float | None:
    """The least smoothing tried at which no warp folds over: along the path, or by decades."""
    from sklearn.base import clone

    if done.path is not None:
        return done.path.unfolded_value
    if used is None or shapes.visible.size > 200_000:  # more fits would take long
        return None
    for exponent in range(1, 7):  # decades
        value = max(used, 1e-6) * 10.0**exponent
        warp = replace(done.estimator.model, **{name: value})
        other = clone(done.estimator).set_params(warp=warp)
        if not other.solve(shapes).foldovers.any():
            return float(value)
    return None
