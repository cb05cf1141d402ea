"""Write the results of a project into its folder, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from defgpa.app.analyses import Analysis
from defgpa.app.imports import import_modules
from defgpa.app.jobs import Job
from defgpa.app.project import EDITS, RESULTS, Project
from defgpa.app.scripts import write_commands, write_python
from defgpa.app.thread_warnings import collect_notes
from defgpa.edits import write_edits, write_log
from defgpa.errors import DefgpaError, FormatError
from defgpa.exports import export
from defgpa.io import FORMATS, write_shapes
from defgpa.io.atomic import replace_folder, write_text
from defgpa.io.text.table import format_csv
from defgpa.report import TabularStatistic, write_methods, write_report
from defgpa.result_folder import write_alignment, write_specimens
from defgpa.statistics import (
    Allometry,
    PairwiseDistances,
    ProcrustesAnova,
    Repeatability,
    Symmetry,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {
    "result": "The result folder of defgpa fit: reference, aligned and superimposed specimens",
    "corrected": "The corrected landmarks in the format of the files",
    "tables": "Tables: specimens, scores, tests (CSV)",
    "figures": "Figures (SVG and PNG)",
    "report": "The report: one HTML page",
    "r": "For R",
    "morphoj": "For MorphoJ",
    "slicermorph": "For SlicerMorph (3-D)",
    "scripts": "Python script, commands, log of edits",
    "methods": "A paragraph for the methods section",
}


def write_results(
    job: Job, project: Project, analysis: Analysis, parts: Sequence[str]
) -> list[str]:
    """Write the chosen results, replacing those of an earlier run.

    Returns
    -------
    list of str
        The files, relative to the folder of results.
    """
    writers: dict[str, Callable[[Project, Analysis, Path], None]] = {
        "result": _write_result,
        "corrected": _write_corrections,
        "tables": _write_tables,
        "figures": _write_figures,
        "report": _write_report,
        **{name: partial(_write_export, name) for name in ("r", "morphoj", "slicermorph")},
        "scripts": _write_scripts,
        "methods": _write_methods,
    }
    chosen = [name for name in parts if name in writers]
    if not chosen:
        raise DefgpaError("Choose what to write.")
    for number, name in enumerate(chosen):
        job.tell("stage", text=PARTS[name], done=number, total=len(chosen))
        with collect_notes() as notes, replace_folder(project.folder / RESULTS / name) as folder:
            writers[name](project, analysis, folder)
        for note in notes:
            job.tell("note", text=note)
    return list_results(project)


def list_results(project: Project) -> list[str]:
    """Return the files of the folder of results."""
    root = project.folder / RESULTS
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return sorted(name for name in names if not name.startswith("."))


def _write_result(project: Project, analysis: Analysis, folder: Path) -> None:
    write_alignment(analysis.alignment, folder)
    if analysis.study.edits:
        write_edits(folder / EDITS, analysis.study.edits)


def _write_corrections(project: Project, analysis: Analysis, folder: Path) -> None:
    shapes = analysis.study.corrected
    name = shapes.metadata.get("format")
    stem = project.folder.name
    try:
        formats = {format_.name: format_ for format_ in FORMATS}
        chosen = formats.get(str(name))
        if chosen is None or chosen.write is None:
            raise FormatError("")
        target = folder / (stem if chosen.one_shape_per_file else stem + chosen.suffixes[0])
        write_shapes(shapes, target, format=chosen.name)
    except FormatError:
        write_shapes(shapes, folder / f"{stem}.csv", format="csv")


def _write_tables(project: Project, analysis: Analysis, folder: Path) -> None:
    write_specimens(analysis.alignment, folder)
    pca = analysis.pca
    heads = ["id", *pca.get_feature_names_out().tolist()]
    names = analysis.study.shapes.names
    rows = ([name, *scores] for name, scores in zip(names, pca.scores_.tolist(), strict=True))
    write_text(folder / "scores.csv", format_csv(heads, rows))
    shares = zip(heads[1:], pca.explained_variance_ratio_.tolist(), strict=True)
    write_text(folder / "variance.csv", format_csv(["component", "share"], shares))
    for name, result in list_statistics(project, analysis).items():
        text = result.indices_to_csv() if isinstance(result, Symmetry) else result.to_csv()
        write_text(folder / f"{name}.csv", text)


def list_statistics(project: Project, analysis: Analysis) -> dict[str, TabularStatistic]:
    """Return what was tested, by name."""
    test, asymmetry = project.settings["test"], project.settings["asymmetry"]
    permutations = test["n_permutations"], test["seed"]
    statistics: dict[str, TabularStatistic] = {}
    if test["formula"].strip():
        anova = statistics["anova"] = analysis.fit_model(test["formula"], *permutations)
        if test["pairwise"]:
            statistics["pairwise"] = analysis.compare_groups(anova, test["pairwise"])
    if project.settings["allometry"]:
        statistics["allometry"] = analysis.fit_allometry(*permutations)
    columns = asymmetry["individual"], asymmetry["side"], asymmetry["replicate"]
    match asymmetry["kind"]:
        case "repeatability":
            statistics["repeatability"] = analysis.fit_repeatability(asymmetry["individual"])
        case "symmetry":
            statistics["symmetry"] = analysis.fit_symmetry(*columns, *permutations)
    return statistics


def _write_figures(project: Project, analysis: Analysis, folder: Path) -> None:
    if find_spec("matplotlib") is None:
        raise DefgpaError('Figures are drawn with matplotlib: pip install "defgpa[plot]".')
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    import_modules("defgpa.plot")
    from defgpa import plot

    alignment, pca = analysis.alignment, analysis.pca
    drawings: dict[str, Callable[[Axes], object]] = {
        "aligned": lambda ax: plot.overlay(alignment, ax=ax),
        "scree": lambda ax: plot.scree(pca, ax=ax),
        "residuals": lambda ax: plot.residual_map(alignment, ax=ax),
    }
    if pca.scores_.shape[1] > 1:
        groups = analysis.study.columns_in_analysis.get("group")
        drawings["morphospace"] = lambda ax: plot.components(pca, groups=groups, ax=ax)
    if not alignment.shapes.visible.all():
        drawings["missing"] = lambda ax: plot.missing_map(alignment.shapes, ax=ax)
    for name, result in list_statistics(project, analysis).items():
        match result:
            case ProcrustesAnova():
                drawings["effects"] = partial(plot.effects, result)
            case PairwiseDistances():
                drawings[name] = partial(plot.pairwise, result)
            case Allometry():
                drawings[name] = partial(plot.allometry, result, links=alignment.shapes.links)
            case Repeatability():
                drawings[name] = partial(plot.repeatability, result)
            case Symmetry():
                drawings[name] = partial(plot.symmetry, result, links=alignment.shapes.links)
    spatial = {"aligned"} if alignment.shapes.n_dims == 3 else set()
    for name, draw in drawings.items():
        figure = Figure(figsize=(7.0, 5.0), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot(projection="defgpa" if name in spatial else None))
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{name}.png", dpi=160)


def _write_report(project: Project, analysis: Analysis, folder: Path) -> None:
    write_report(
        analysis.alignment,
        folder / "report.html",
        title=project.title,
        statistics=list_statistics(project, analysis).values(),
    )


def _write_export(target: str, project: Project, analysis: Analysis, folder: Path) -> None:
    export(analysis.alignment, folder, to=target)


def _write_scripts(project: Project, analysis: Analysis, folder: Path) -> None:
    write_text(folder / "analysis.py", write_python(project), errors="backslashreplace")
    write_text(folder / "commands.sh", write_commands(project), errors="backslashreplace")
    write_log(folder / EDITS, project.log)


def _write_methods(project: Project, analysis: Analysis, folder: Path) -> None:
    write_text(folder / "methods.txt", describe_methods(project, analysis))


def describe_methods(project: Project, analysis: Analysis) -> str:
    """Return the paragraph for the methods section of an article, with its references."""
    return write_methods(
        analysis.alignment,
        statistics=list_statistics(project, analysis).values(),
        edits=analysis.study.edits,
    )
