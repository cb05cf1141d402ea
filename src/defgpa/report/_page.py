"""The page: everything gathered, poured into the template, written in one piece."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError, ShapeError, needed
from defgpa.report import _tables as tables
from defgpa.report._drawn import MOST_PAIRS, Drawn, drawn_part, group_columns, many_groups
from defgpa.report._packing import finite, script_json
from defgpa.report._scene import scene
from defgpa.report._shape_space import shape_space
from defgpa.report._statistics import Found, Links, sections
from defgpa.report._words import number, what_was_fitted, worries

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison, CrossValidation, SmoothingPath

_SCRIPTS = ("data", "theme", "space", "plots", "charts", "components", "controls", "main")
_EXTRA = "A report needs plotly and jinja2: pip install 'defgpa[report]'."
_HEADLINES = ("rmse_reference", "rmse_datum", "cve", "spectral_gap")


def write_report(
    alignment: Alignment,
    target: str | os.PathLike[str],
    *,
    smoothing: SmoothingPath | None = None,
    cross_validation: CrossValidation | None = None,
    comparison: Comparison | None = None,
    statistics: Iterable[Found] = (),
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    most_drawn: int | None = MOST_PAIRS,
) -> None:
    """Write one self-contained HTML page about an alignment.

    It opens in any browser, needs no network, reads on a phone, on paper and in the dark, and
    stays below 10 MB: of very many shapes or landmarks an even choice is drawn, and the page says
    so. Its figures are those of all of them.

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
    title : str, optional
        The heading; by default the name of the file, and how many shapes were aligned.
    provenance : mapping of str to str, optional
        What else it takes to do it again: input files, dates. ``command``, what was typed, and
        ``result``, where ``defgpa.load`` finds the alignment, become code to paste.

    most_drawn : int or None, default 60,000
        Landmarks of all shapes together beyond which an even choice is drawn; None draws all,
        however large the page becomes.

    Raises
    ------
    ShapeError
        If the cross-validation is of other shapes.
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
    plotly, _ = needed("plotly.offline", _EXTRA), needed("jinja2", _EXTRA)
    drawn, known = drawn_part(alignment, most_drawn), provenance or {}
    values = {
        "title": title or tables.default_title(alignment),
        "lead": what_was_fitted(alignment),
        "worries": worries(alignment, cross_validation),
        **_numbers(alignment, drawn, smoothing, cross_validation, comparison),
        "sections": sections(statistics, alignment.shapes.links),
        "parameters": tables.parameters(alignment),
        "code": tables.code(alignment, known.get("result")),
        "plotly": plotly.get_plotlyjs(),
        "script": "\n".join(_template(f"{name}.js") for name in _SCRIPTS),
    }
    _write(target, "report.html", values, known)


def write_statistics(
    statistics: Iterable[Found],
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
        "sections": sections(statistics, links),
        "parameters": [],
        "code": None,
    }
    _write(target, "statistics_page.html", values, provenance or {})


def _numbers(
    alignment: Alignment,
    drawn: Drawn,
    path: SmoothingPath | None,
    cv: CrossValidation | None,
    comparison: Comparison | None,
) -> dict[str, Any]:
    """The parts of the page that are figures, tables and plots."""
    rows = tables.figures(alignment, cv)
    space, space_data = shape_space(alignment, drawn)
    spectral = alignment.spectral
    data = {
        **scene(alignment, drawn, cv),
        "smoothing": None if path is None else _path_columns(path),
        "spectrum": [] if spectral is None else finite(spectral.spectrum),
        **space_data,
    }
    return {
        "figures": rows,
        "with_cve": cv is not None,
        "headlines": [row for key in _HEADLINES for row in rows if row["key"] == key],
        "comparison": None if comparison is None else tables.comparison_rows(comparison),
        "fold_size": None if comparison is None else comparison.fold_size,
        "verdict": getattr(getattr(comparison, "verdict", None), "conclusion", None),
        "largest": tables.largest_residuals(alignment),
        "shapes": tables.shape_rows(alignment, cv, drawn),
        "missing": _missing_counts(alignment),
        "path": None if path is None else _path_in_words(path),
        "spectrum": spectral is not None,
        "gap": "" if spectral is None else number(spectral.gap, 3),
        "dim": alignment.shapes.n_dims,
        "space": space,
        "thinned": [*drawn.sentences, *many_groups(group_columns(alignment.shapes))],
        "data": script_json(data),
    }


def _path_columns(path: SmoothingPath) -> dict[str, Any]:
    """The path where its logarithm can be drawn."""
    shown = path.values > 0
    names = ("values", "cve", "rmse_reference", "rmse_datum")
    columns = {name: finite(getattr(path, name)[shown]) for name in names}
    return {**columns, "best": path.best_value if path.best_value > 0 else None}


def _path_in_words(path: SmoothingPath) -> dict[str, Any]:
    return {
        "best": f"{path.best_value:.3g}",
        "at_edge": path.at_edge,
        "parting": None if path.parting is None else f"{path.parting:.3g}",
        "dial": _dial_in_words(path),
    }


def _dial_in_words(path: SmoothingPath) -> dict[str, Any] | None:
    """The cross-validation error over smoothing and rigidity, the stiffest first; None if none."""
    from defgpa.model_selection import DialSurface

    if not isinstance(path, DialSurface):
        return None
    cells = [[f"{error:.4g}" for error in row] for row in path.surface]
    rows = list(zip([f"{value:.3g}" for value in path.values], cells, strict=True))
    row, column = path.position
    return {
        "best": f"{path.best_rigidity:g}",
        "rigidities": [f"{value:g}" for value in path.rigidities],
        "rows": rows[::-1],
        "chosen": (len(rows) - 1 - row, column),
    }


def _missing_counts(alignment: Alignment) -> dict[str, Any] | None:
    """Where landmarks are missing; None if nowhere."""
    shapes = alignment.shapes
    hidden = ~shapes.visible
    if not hidden.any():
        return None
    return {
        "total": f"{hidden.sum():,}",
        "all": f"{hidden.size:,}",
        "shapes": f"{hidden.any(axis=1).sum():,}",
        "landmarks": f"{hidden.any(axis=0).sum():,}",
        "fewest_views": f"{shapes.views.min():,}",
        "least_seen": shapes.landmarks[int(np.argmin(shapes.views))],
    }


@cache
def _templates() -> Any:
    """The templates, each compiled when it is first asked for."""
    jinja2 = needed("jinja2", _EXTRA)
    return jinja2.Environment(
        loader=jinja2.PackageLoader("defgpa.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write(
    target: str | os.PathLike[str], name: str, values: Mapping[str, Any], known: Mapping[str, str]
) -> None:
    """A template with these values and what both pages have; all is escaped but our own scripts."""
    from defgpa.io.atomic import write_text

    template = _templates().get_template(name)
    text = template.render(
        values,
        provenance=tables.provenance_rows(known),
        command=known.get("command"),
        versions=tables.versions(),
        style=_template("style.css"),
    )
    write_text(target, text, errors="backslashreplace")


def _template(name: str) -> str:
    return (files("defgpa.report") / "templates" / name).read_text(encoding="utf-8")
