"""Write the page: gather everything, fill the template, write it in one piece."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from defgpa.alignment import Alignment
from defgpa.diagnostics.suspects import explain_rejection
from defgpa.errors import DefgpaError, ShapeError, import_extra
from defgpa.report import _tables as tables
from defgpa.report._display import MAX_PAIRS, Display, choose_display
from defgpa.report._encoding import dump_script_json, list_finite
from defgpa.report._groups import Columns, find_group_columns, note_many_groups
from defgpa.report._methods import write_methods
from defgpa.report._photographs import find_photographs
from defgpa.report._scene import build_scene
from defgpa.report._sentences import describe_fit, format_number, list_warnings
from defgpa.report._shape_space import build_shape_space
from defgpa.report._statistics import Links, Statistic, build_sections
from defgpa.solvers.registration import MotionRegistration

if TYPE_CHECKING:
    from jinja2 import Environment

    from defgpa.model_selection import Comparison, CrossValidation, SmoothingPath

_SCRIPTS = ("data", "theme", "space", "plots", "charts", "components", "controls", "main")
_INSTALL_HINT = 'A report needs plotly and jinja2: pip install "defgpa[report]".'
_MAX_SUSPECTS = 50  # rows of the table of landmarks that were left out
_REASONS = {
    "exchanged": "exchanged with each other",
    "shifted": "shifted together",
    "misplaced": "misplaced",
    "reversed": "order reversed",
    "far": "far from all the others",
}
_HEADLINES = ("rmse_reference", "rmse_datum", "cve", "spectral_gap")


def write_report(
    alignment: Alignment,
    target: str | os.PathLike[str],
    *,
    smoothing: SmoothingPath | None = None,
    cross_validation: CrossValidation | None = None,
    comparison: Comparison | None = None,
    statistics: Iterable[Statistic] = (),
    data: Mapping[str, ArrayLike] | None = None,
    links: Links | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    max_drawn: int | None = MAX_PAIRS,
) -> None:
    """Write one self-contained HTML page about an alignment.

    It opens in any browser, needs no network, reads on a phone, on paper and in the dark, and
    stays at about 10 MB. Every specimen is drawn; of very many landmarks an even choice is, and
    the page says so. Its numbers are those of all of them.

    Parameters
    ----------
    alignment : Alignment
        What ``fit`` left, or ``defgpa.load`` has read.
    target : path
        The HTML file; written beside and renamed, never half a page.
    smoothing : SmoothingPath, optional
        From ``select_smoothing``: adds the errors along the amount of smoothing.
    cross_validation : CrossValidation, optional
        From ``cross_validate`` on the same shapes: adds the CVE and the predicted landmarks.
    comparison : Comparison, optional
        From ``compare``: adds the table of methods.
    statistics : iterable, optional
        Results of `defgpa.statistics` (`procrustes_anova`, its ``pairwise``, `allometry`,
        `landmark_differences`, `symmetry`, `repeatability`) and of `defgpa.slide`: a section each.
    data : mapping of str to sequences of n, or DataFrame, optional
        What is known of the specimens besides the files (species, sex, site), as lists, arrays or
        columns: colours and outlines by group.
    links : sequence of (int, int), optional
        Landmarks to join by lines; by default those of the shapes. None are invented.
    title : str, optional
        The heading; by default the name of the file, and how many specimens were aligned.
    provenance : mapping of str to str, optional
        What else it takes to reproduce it: input files, dates. ``command``, what was typed, and
        ``result``, where ``defgpa.load`` finds the alignment, become code to paste.
    max_drawn : int or None, default 150,000
        Landmarks of all specimens together beyond which an even choice is drawn; None draws all,
        however large the page becomes.

    Raises
    ------
    ShapeError
        If the cross-validation or a column of the data is of other shapes.
    DefgpaError
        If the extra ``report`` is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import defgpa
    >>> from defgpa.report import write_report
    >>> model = defgpa.DefGPA().fit(defgpa.datasets.load_wings())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "report.html"
    ...     write_report(model.alignment_, page, title="Wings")
    ...     "<h1>Wings</h1>" in page.read_text(encoding="utf-8")
    True
    """
    if not isinstance(alignment, Alignment):
        raise DefgpaError(
            f"A report is about an Alignment (model.alignment_); got {type(alignment).__name__}."
        )
    measured = alignment.shapes.points.shape
    if cross_validation is not None and cross_validation.predicted.shape != measured:
        raise ShapeError(
            f"The cross-validation is of shapes (n, m, d) = {cross_validation.predicted.shape}, "
            f"the alignment of {measured}. Give the one of the same shapes."
        )
    plotly, _ = import_extra("plotly.offline", _INSTALL_HINT), import_extra("jinja2", _INSTALL_HINT)
    display = choose_display(alignment, links, max_drawn)
    columns = find_group_columns(alignment.shapes, data)
    origin = provenance or {}
    analyses = list(statistics)
    joined = list(alignment.shapes.links if links is None else links)
    values = {
        "title": title or tables.make_title(alignment),
        "lead": describe_fit(alignment),
        "is_rigid": isinstance(alignment.registration, MotionRegistration),
        "warnings": list_warnings(alignment, cross_validation),
        **_collect_values(alignment, display, columns, smoothing, cross_validation, comparison),
        "sections": build_sections(analyses, joined),
        "methods": write_methods(
            alignment,
            smoothing=smoothing,
            cross_validation=cross_validation,
            comparison=comparison,
            statistics=analyses,
        ),
        "photographs": find_photographs(alignment.shapes),
        "parameters": tables.list_parameters(alignment),
        "code": tables.write_code(alignment, origin.get("result")),
        "plotly": plotly.get_plotlyjs(),
        "script": "\n".join(_read_template(f"{name}.js") for name in _SCRIPTS),
    }
    _write_page(target, "report.html", values, origin)


def write_statistics(
    statistics: Iterable[Statistic],
    target: str | os.PathLike[str],
    *,
    title: str = "Statistics of shape",
    links: Links = (),
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write one self-contained HTML page about tests of shapes that were not aligned by warps.

    Parameters
    ----------
    statistics : iterable
        Results of `defgpa.statistics` (`procrustes_anova`, its ``pairwise``, `allometry`,
        `landmark_differences`, `symmetry`, `repeatability`) and of `defgpa.slide`: a section each.
    target : path
        The file to write.
    title : str
        Of the page.
    links : sequence of (int, int)
        Landmarks to join by lines.
    provenance : mapping of str to str, optional
        As in `write_report`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from defgpa.report import write_statistics
    >>> from defgpa.statistics import allometry
    >>> rng = np.random.default_rng(0)
    >>> model = allometry(rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(10, 8, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "statistics.html"
    ...     write_statistics([model], page)
    ...     "Size explains" in page.read_text(encoding="utf-8")
    True
    """
    values = {
        "title": title,
        "sections": build_sections(statistics, links),
        "parameters": [],
        "code": None,
    }
    _write_page(target, "statistics_page.html", values, provenance or {})


def _collect_values(
    alignment: Alignment,
    display: Display,
    columns: Columns,
    path: SmoothingPath | None,
    cv: CrossValidation | None,
    comparison: Comparison | None,
) -> dict[str, object]:
    """Return the parts of the page that are numbers, tables and plots."""
    rows = tables.list_results(alignment, cv)
    space, space_data = build_shape_space(alignment, display, columns)
    spectral = alignment.spectral
    data = {
        **build_scene(alignment, display, columns, cv),
        "smoothing": None if path is None else _list_path(path),
        "spectrum": [] if spectral is None else list_finite(spectral.spectrum),
        **space_data,
    }
    return {
        "results": rows,
        "with_cve": cv is not None,
        "headlines": [row for key in _HEADLINES for row in rows if row["key"] == key],
        "comparison": None if comparison is None else tables.tabulate_comparison(comparison),
        "fold_size": None if comparison is None else comparison.fold_size,
        "verdict": getattr(getattr(comparison, "verdict", None), "conclusion", None),
        "largest": tables.list_largest_residuals(alignment),
        "specimens": tables.tabulate_specimens(alignment, cv),
        "weights": _describe_weights(alignment),
        "missing": _count_missing(alignment),
        "path": None if path is None else _describe_path(path),
        "spectrum": spectral is not None,
        "gap": "" if spectral is None else format_number(spectral.gap, 3),
        "n_shapes": alignment.shapes.n_shapes,
        "dim": alignment.shapes.n_dims,
        "is_mesh": display.faces is not None,
        "space": space,
        "notes": [*display.notes, *note_many_groups(columns)],
        "data": dump_script_json(data),
    }


def _list_path(path: SmoothingPath) -> dict[str, object]:
    """List the values of the path that a logarithmic axis can show."""
    is_shown = path.values > 0
    names = ("values", "cve", "rmse_reference", "rmse_datum", "standard_error")
    curves = {
        name: list_finite(getattr(path, name)[is_shown])
        for name in names
        if getattr(path, name) is not None
    }
    chosen, minimum = path.best_value, path.least_value
    return {
        **curves,
        "chosen": chosen if chosen > 0 else None,
        "minimum": minimum if minimum > 0 else None,
    }


def _describe_path(path: SmoothingPath) -> dict[str, object]:
    return {
        "choice": path.explain_choice(),
        "at_edge": path.at_edge,
        "parting": None if path.parting is None else f"{path.parting:.3g}",
        "dial": _tabulate_surface(path),
    }


def _tabulate_surface(path: SmoothingPath) -> dict[str, object] | None:
    """Tabulate the CVE over smoothing and rigidity, the stiffest first; None without rigidity."""
    from defgpa.model_selection import DialSurface

    if not isinstance(path, DialSurface):
        return None
    cells = [["" if np.isnan(error) else f"{error:.4g}" for error in row] for row in path.surface]
    rows = list(zip([f"{value:.3g}" for value in path.values], cells, strict=True))
    row, column = path.position
    return {
        "best": f"{path.best_rigidity:g}",
        "rigidities": [f"{value:g}" for value in path.rigidities],
        "rows": rows[::-1],
        "chosen": (len(rows) - 1 - row, column),
    }


def _describe_weights(alignment: Alignment) -> dict[str, object] | None:
    """Count and explain the landmarks that a robust fit left out; None where all count alike."""
    if not alignment.has_weights:
        return None
    left_out = alignment.shapes.visible & (alignment.weights == 0.0)
    return {
        "robust": alignment.rejection is not None,
        "left_out": f"{left_out.sum():,}",
        "all": f"{alignment.shapes.visible.sum():,}",
        "suspects": [
            (s.shape, ", ".join(s.landmarks) or "all", _REASONS[s.reason], f"{s.score:.0f}")
            for s in explain_rejection(alignment)[:_MAX_SUSPECTS]
        ],
    }


def _count_missing(alignment: Alignment) -> dict[str, object] | None:
    """Count where landmarks are missing; None if nowhere."""
    shapes = alignment.shapes
    missing = ~shapes.visible
    if not missing.any():
        return None
    return {
        "total": f"{missing.sum():,}",
        "all": f"{missing.size:,}",
        "shapes": f"{missing.any(axis=1).sum():,}",
        "landmarks": f"{missing.any(axis=0).sum():,}",
        "fewest_views": f"{shapes.views.min():,}",
        "rarest": shapes.landmarks[int(np.argmin(shapes.views))],
    }


@cache
def _load_templates() -> Environment:
    """Return the templates, each compiled when it is first asked for."""
    jinja2 = import_extra("jinja2", _INSTALL_HINT)
    return jinja2.Environment(
        loader=jinja2.PackageLoader("defgpa.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write_page(
    target: str | os.PathLike[str],
    name: str,
    values: Mapping[str, object],
    origin: Mapping[str, str],
) -> None:
    """Fill a template with these values and the common ones; all but our scripts is escaped."""
    from defgpa.io.atomic import write_text

    template = _load_templates().get_template(name)
    text = template.render(
        values,
        provenance=tables.list_provenance(origin),
        command=origin.get("command"),
        versions=tables.list_versions(),
        style=_read_template("style.css"),
    )
    write_text(target, text, errors="backslashreplace")


def _read_template(name: str) -> str:
    return (files("defgpa.report") / "templates" / name).read_text(encoding="utf-8")
