"""Functions of long jobs: comparing methods, choosing the smoothing, tests, writing results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from defgpa.app.analyses import Analysis
from defgpa.app.jobs import Job
from defgpa.app.methods import Method, describe_estimator
from defgpa.app.project import Project
from defgpa.app.requests import Values
from defgpa.app.results import write_results
from defgpa.app.thread_warnings import collect_notes
from defgpa.errors import DefgpaError
from defgpa.estimators import AlignmentEstimator
from defgpa.model_selection import (
    SmoothingPath,
    compare,
    default_methods,
    select_method,
    select_smoothing,
)
from defgpa.model_selection.method_selection import choose_fold_size
from defgpa.shapes import Shapes

_SMOOTHINGS = [10.0**exponent for exponent in range(-7, 2)]  # of smoothing, drawn point by point


def choose_work(
    kind: str, project: Project, analysis: Analysis, values: Values
) -> Callable[[Job], object]:
    """Return the function that a job of this kind runs on a project as it is now."""
    shapes, test = project.study.shapes, project.settings["test"]
    columns = project.settings["asymmetry"]
    count, seed = test["n_permutations"], test["seed"]
    work_by_kind: dict[str, Callable[[Job], object]] = {
        "compare": lambda job: compare_methods(job, shapes),
        "smoothing": lambda job: choose_smoothing(job, shapes, analysis.method),
        "fit": lambda job: fit(job, analysis),
        "allometry": lambda job: analysis.regress_on_size(count, seed, job.report_progress),
        "test": lambda job: analysis.test(
            test["formula"], count, seed, test["pairwise"], job.report_progress
        ),
        "repeatability": lambda job: analysis.measure_repeatability(columns["individual"]),
        "symmetry": lambda job: analysis.analyse_symmetry(
            columns["individual"], columns["side"], columns["replicate"], count, seed
        ),
        "results": lambda job: write_results(job, project, analysis, _list_words(values, "parts")),
    }
    if kind not in work_by_kind:
        raise DefgpaError(f"There is no work called {kind!r}.")
    return work_by_kind[kind]


def _list_words(values: Values, key: str) -> list[str]:
    words = values.get(key)
    return [str(word) for word in words] if isinstance(words, list) else []


def compare_methods(job: Job, shapes: Shapes) -> dict[str, object]:
    """Compare all methods, reporting each row when it is ready; then recommend one, and say why."""
    fold_size = choose_fold_size(shapes)
    methods = default_methods()
    with collect_notes() as notes:
        for number, (name, estimator) in enumerate(methods.items()):
            about = _describe(estimator)
            job.tell("stage", text=f"Trying {about['label']}", done=number, total=len(methods))
            try:
                row = compare(
                    shapes, {name: estimator}, fold_size, n_jobs=1, progress=job.report_progress
                ).rows[0]
            except DefgpaError as error:
                job.tell("row", name=name, label=about["label"], failure=str(error))
                continue
            job.tell("row", **row.to_dict(), **about)
        job.tell("stage", text="Weighing the methods, choosing the smoothing", done=0, total=0)
        selection = select_method(shapes, fold_size, n_jobs=1, progress=job.report_progress)
    return {
        "fold_size": fold_size,
        "chosen": _find_name(selection.estimator, methods),
        **_describe(selection.estimator),
        "sentence": selection.reason,
        "points": [] if selection.path is None else _list_points(selection.path),
        "best": None if selection.path is None else selection.path.best_value,
        "choice": "" if selection.path is None else selection.path.explain_choice(),
        "notes": notes,
    }


def _find_name(estimator: AlignmentEstimator, methods: Mapping[str, AlignmentEstimator]) -> str:
    """Return which of the methods an estimator is, whatever its smoothing and rigidity."""
    chosen = describe_estimator(estimator)
    for name, candidate in methods.items():
        method = describe_estimator(candidate)
        if chosen is not None and method is not None:
            reused_method = replace(method, smoothing=chosen.smoothing, rigidity=chosen.rigidity)
            if reused_method == chosen:
                return name
    return ""


def _describe(estimator: AlignmentEstimator) -> dict[str, object]:
    method = describe_estimator(estimator)
    if method is None:
        return {"method": None, "label": "affine, in the specimens"}
    return {"method": method.to_dict(), "label": method.label}


def choose_smoothing(job: Job, shapes: Shapes, method: Method) -> dict[str, object]:
    """Choose the smoothing by cross-validation, reporting each point of the curve when ready."""
    fold_size = choose_fold_size(shapes)
    estimator = method.estimator
    fixed = {"rigidities": [method.rigidity]} if method.kind == "elastic" else {}
    with collect_notes() as notes:
        for number, value in enumerate(_SMOOTHINGS):
            job.tell("stage", text=f"Smoothing {value:g}", done=number, total=len(_SMOOTHINGS))
            path = select_smoothing(
                estimator,
                shapes,
                grid=[value],
                fold_size=fold_size,
                n_jobs=1,
                progress=job.report_progress,
                **fixed,
            )
            job.tell("point", **_point(path, 0))
        job.tell("stage", text="Looking more finely beside the best", done=0, total=0)
        path = select_smoothing(
            estimator, shapes, fold_size=fold_size, n_jobs=1, progress=job.report_progress, **fixed
        )
    return {
        "fold_size": fold_size,
        "points": _list_points(path),
        "best": path.best_value,
        "choice": path.explain_choice(),
        **_describe(path.best),
        "notes": notes,
    }


def _list_points(path: SmoothingPath) -> list[dict[str, float]]:
    return [_point(path, k) for k in range(len(path.values))]


def _point(path: SmoothingPath, k: int) -> dict[str, float]:
    names = {"smoothing": "values", "cve": "cve", "rmse_reference": "rmse_reference"}
    return {name: float(getattr(path, column)[k]) for name, column in names.items()}


def fit(job: Job, analysis: Analysis) -> dict[str, object]:
    """Align by the chosen method."""
    job.tell("stage", text=f"Fitting: {analysis.method.sentence}", done=0, total=0)
    return analysis.describe()
