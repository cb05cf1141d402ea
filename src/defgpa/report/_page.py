"""The page: everything gathered, poured into the template, written in one piece."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError, ShapeError
from defgpa.report import _tables as tables
from defgpa.report._columns import group_columns, sentences
from defgpa.report._drawn import MOST_PAIRS, Drawn, drawn_part
from defgpa.report._packing import finite, script_json
from defgpa.report._scene import Scene
from defgpa.report._shape_space import ShapeSpace, shape_space
from defgpa.report._statistics import Found, Links, sections
from defgpa.report._words import number, what_was_fitted, worries

if TYPE_CHECKING:
    from defgpa.evaluate import Comparison, CrossValidation, SmoothingPath

_SCRIPTS = (
    "data.js",
    "theme.js",
    "space.js",
    "plots.js",
    "charts.js",
    "components.js",
    "controls.js",
    "main.js",
)
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
    from defgpa.io.atomic import write_text

    _require_alignment(alignment)
    _require_same_shapes(alignment, cross_validation)
    write_text(
        target,
        _rendered(
            {
                **_text(alignment, cross_validation, title, provenance or {}),
                **_numbers(
                    alignment,
                    drawn_part(alignment, most_drawn),
                    smoothing,
                    cross_validation,
                    comparison,
                ),
                "provenance": tables.provenance_rows(provenance),
                "sections": sections(statistics, alignment.shapes.links),
            }
        ),
        errors="backslashreplace",
    )


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
    from defgpa.io.atomic import write_text

    known = provenance or {}
    values = {
        "title": title,
        "sections": sections(statistics, links),
        "parameters": [],
        "provenance": tables.provenance_rows(known),
        "code": None,
        "command": known.get("command"),
    }
    write_text(target, _filled("statistics_page.html", values), errors="backslashreplace")


def _text(
    alignment: Alignment, cv: CrossValidation | None, title: str | None, known: Mapping[str, str]
) -> dict[str, Any]:
    """The parts of the page that are words."""
    return {
        "title": title or tables.default_title(alignment),
        "lead": what_was_fitted(alignment),
        "worries": worries(alignment, cv),
        "parameters": tables.parameters(alignment),
        "code": tables.code(alignment, known.get("result")),
        "command": known.get("command"),
    }


def _numbers(
    alignment: Alignment,
    drawn: Drawn,
    path: SmoothingPath | None,
    cv: CrossValidation | None,
    comparison: Comparison | None,
) -> dict[str, Any]:
    """The parts of the page that are figures, tables and plots."""
    rows, space = tables.figures(alignment, cv), shape_space(alignment, drawn)
    return {
        "figures": rows,
        "with_cve": cv is not None,
        "headlines": [row for key in _HEADLINES for row in rows if row.key == key],
        "comparison": None if comparison is None else tables.comparison_rows(comparison),
        "fold_size": None if comparison is None else comparison.fold_size,
        "verdict": getattr(getattr(comparison, "verdict", None), "conclusion", None),
        "largest": tables.largest_residuals(alignment),
        "shapes": tables.shape_rows(alignment, cv, drawn),
        "missing": _missing_counts(alignment),
        "path": None if path is None else _path_in_words(path),
        "spectrum": alignment.spectral is not None,
        "gap": "" if alignment.spectral is None else number(alignment.spectral.gap, 3),
        "dim": alignment.shapes.dim,
        "space": space,
        "thinned": [*drawn.sentences, *sentences(group_columns(alignment.shapes))],
        "data": script_json(_data(alignment, drawn, space, path, cv)),
    }


def _data(
    alignment: Alignment,
    drawn: Drawn,
    space: ShapeSpace | None,
    path: SmoothingPath | None,
    cv: CrossValidation | None,
) -> dict[str, Any]:
    """What the page's script draws from."""
    return {
        **Scene(alignment, drawn, cv).as_data(),
        "smoothing": None if path is None else _path_columns(path),
        "spectrum": [] if alignment.spectral is None else finite(alignment.spectral.spectrum),
        **({"space": None, "outliers": None} if space is None else space.as_data()),
    }


def _path_columns(path: SmoothingPath) -> dict[str, Any]:
    """The path where its logarithm can be drawn."""
    shown = path.values > 0
    columns: dict[str, Array] = {
        "values": path.values,
        "cve": path.cve,
        "rmse_reference": path.rmse_reference,
        "rmse_datum": path.rmse_datum,
    }
    return {
        **{key: finite(column[shown]) for key, column in columns.items()},
        "best": path.best_value if path.best_value > 0 else None,
    }


def _path_in_words(path: SmoothingPath) -> dict[str, Any]:
    return {
        "best": f"{path.best_value:.3g}",
        "at_edge": path.at_edge,
        "parting": None if path.parting is None else f"{path.parting:.3g}",
        "dial": _dial_in_words(path),
    }


def _dial_in_words(path: SmoothingPath) -> dict[str, Any] | None:
    """The cross-validation error over smoothing and rigidity, the stiffest first; None if none."""
    from defgpa.evaluate import DialSurface

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


def _rendered(values: Mapping[str, Any]) -> str:
    """The page of an alignment; every value escaped but our own scripts."""
    _, markup, get_plotlyjs = _extra()
    own = {
        "data": markup(values["data"]),
        "plotly": markup(get_plotlyjs()),
        "script": markup("\n".join(_template(name) for name in _SCRIPTS)),
    }
    return _filled("report.html", {**values, **own})


@cache
def _templates() -> Any:
    """The templates, each compiled when it is first asked for."""
    jinja2 = _extra()[0]
    return jinja2.Environment(
        loader=jinja2.PackageLoader("defgpa.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _filled(name: str, values: Mapping[str, Any]) -> str:
    """A template with these values, the versions and the style."""
    markup = _extra()[1]
    style, versions = markup(_template("style.css")), tables.versions()
    return str(_templates().get_template(name).render(values, versions=versions, style=style))


def _extra() -> tuple[Any, Any, Any]:
    """What a page is made with, or a sentence on how to get it."""
    try:
        import jinja2
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise DefgpaError(
            "A report needs plotly and jinja2: pip install 'defgpa[report]'."
        ) from None
    return jinja2, Markup, get_plotlyjs


def _template(name: str) -> str:
    return (files("defgpa.report") / "templates" / name).read_text(encoding="utf-8")


def _require_alignment(alignment: Alignment) -> None:
    if not isinstance(alignment, Alignment):
        raise DefgpaError(
            f"A report is about an Alignment (model.alignment_); got {type(alignment).__name__}."
        )


def _require_same_shapes(alignment: Alignment, cv: CrossValidation | None) -> None:
    if cv is not None and cv.predicted.shape != alignment.shapes.points.shape:
        raise ShapeError(
            f"The cross-validation is of shapes (n, m, d) = {cv.predicted.shape}, the alignment "
            f"of {alignment.shapes.points.shape}. Give the one of the same shapes."
        )
