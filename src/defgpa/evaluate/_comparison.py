"""Is deformation worth it? The methods side by side, each by the same figures."""

from __future__ import annotations

import csv
import html
import io
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from defgpa.errors import DefgpaError, DefgpaWarning
from defgpa.estimators import AffineGPA, DefGPA, EuclideanGPA, ShapesLike
from defgpa.evaluate._cross_validation import cross_validated
from defgpa.evaluate._folds import Progress, consecutive_folds
from defgpa.evaluate._refit import quietly_fitted
from defgpa.shapes import Shapes, as_shapes
from defgpa.warps import Affine, ThinPlateSpline

_TITLES = ("RMSE_d", "RMSE_r", "CVE", "time [s]")
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "_%&#${}"}
    | {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class MethodFigures:
    """One row: the figures of a method, NaN where it has none, and why.

    Examples
    --------
    >>> MethodFigures("AFF_r", 6.7266, 6.5411, 6.9113, 0.0021).cells
    ('AFF_r', '6.727', '6.541', '6.911', '0.0021')
    """

    name: str
    rmse_datum: float
    rmse_reference: float
    cve: float
    seconds: float
    failure: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text: a name and four figures."""
        errors = (self.rmse_datum, self.rmse_reference, self.cve)
        return (self.name, *(_text(x, 4) for x in errors), _text(self.seconds, 2))


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same shapes; prints as a table.

    Attributes
    ----------
    rows : tuple of MethodFigures
        One per method: ``name``, ``rmse_datum``, ``rmse_reference``, ``cve``, ``seconds`` of one
        fit, and ``failure``, empty unless the method failed.
    fold_size : int
        Landmarks left out at a time for the CVE.

    See Also
    --------
    compare : makes it.

    Examples
    --------
    >>> rows = MethodFigures("AFF_r", 6.727, 6.541, 6.911, 0.002), MethodFigures(
    ...     "TPS_r(5)", 3.602, 3.885, 4.525, 0.003
    ... )
    >>> print(Comparison(rows, fold_size=1))
    method    RMSE_d  RMSE_r    CVE  time [s]
    ─────────────────────────────────────────
    AFF_r      6.727   6.541  6.911    0.0020
    TPS_r(5)   3.602   3.885  4.525    0.0030
    """

    rows: tuple[MethodFigures, ...]
    fold_size: int

    def __getitem__(self, name: str) -> MethodFigures:
        """The row of a method."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"There is no method {name!r}. There are: {[row.name for row in self.rows]}")

    def __iter__(self) -> Iterator[MethodFigures]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        table = [("method", *_TITLES), *(row.cells for row in self.rows)]
        widths = [max(len(line[k]) for line in table) for k in range(len(table[0]))]
        lines = [_aligned(line, widths) for line in table]
        lines.insert(1, "─" * len(lines[0]))
        return "\n".join([*lines, *self._notes()])

    def to_markdown(self) -> str:
        """A Markdown table."""
        lines = [("method", *_TITLES), ("---", *["---:"] * len(_TITLES))]
        lines += [row.cells for row in self.rows]
        table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in c) + " |" for c in lines]
        notes = [f"\n{note}" for note in self._notes()]  # a paragraph each
        return "\n".join([*table, *notes]) + "\n"

    def to_latex(self) -> str:
        """A LaTeX tabular that needs no package."""
        lines = [("method", *_TITLES), *(row.cells for row in self.rows)]
        rows = [" & ".join(cell.translate(_LATEX) for cell in c) + r" \\" for c in lines]
        body = [r"\begin{tabular}{lrrrr}", r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"]
        notes = [f"% {note}" for note in self._notes()]
        return "\n".join([*body, r"\end{tabular}", *notes]).replace("–", "--") + "\n"

    def to_csv(self) -> str:
        """Comma-separated text with all digits, one line per method."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(field.name for field in fields(MethodFigures))
        writer.writerows(astuple(row) for row in self.rows)
        return text.getvalue()

    def to_frame(self) -> Any:
        """A pandas DataFrame, indexed by method."""
        try:
            import pandas
        except ImportError:
            raise DefgpaError("A DataFrame needs pandas: pip install 'defgpa[tables]'.") from None
        names = [field.name for field in fields(MethodFigures)]
        return pandas.DataFrame([astuple(row) for row in self.rows], columns=names).set_index(
            "name"
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("method", *_TITLES))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row.cells) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _notes(self) -> list[str]:
        return [f"{row.name}: {' '.join(row.failure.split())}" for row in self.rows if row.failure]


def compare(
    shapes: ShapesLike,
    estimators: Mapping[str, Any] | Sequence[Any] | None = None,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The errors of several methods on the same shapes, as in the paper's Table 2.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    estimators : mapping of str to estimator, or sequence of estimators, optional
        What to compare. By default the rigid and affine benchmarks EUC_d and AFF_d (starred in the
        paper), then AFF_r and TPS_r with 3, 5 and 7 control points per axis.
    fold_size, n_jobs, progress
        As in ``cross_validate``; ``progress`` counts the folds of all methods.

    Returns
    -------
    Comparison
        Prints as a table; ``to_markdown``, ``to_csv``, ``to_latex`` and ``to_frame`` give it away.
        A method that fails on these shapes has its error in its row.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from defgpa.evaluate import compare
    >>> base = np.random.default_rng(0).normal(size=(30, 2)) * [3, 2]
    >>> shapes = [base + 0.1 * np.sin(base[:, ::-1] + phase) for phase in range(6)]
    >>> table = compare(shapes, [defgpa.DefGPA(defgpa.Affine()), defgpa.DefGPA()])
    >>> [row.name for row in table]
    ['AFF_r', 'TPS_r(5)']
    >>> table["TPS_r(5)"].cve < table["AFF_r"].cve
    True
    """
    shapes = as_shapes(shapes)
    chosen = default_methods() if estimators is None else _named(estimators)
    folds = len(consecutive_folds(shapes.n_landmarks, fold_size))
    rows = []
    for done, (name, estimator) in enumerate(chosen.items()):
        told = _part_of(progress, done * folds, len(chosen) * folds)
        row, remarks = _figures(name, estimator, shapes, fold_size, n_jobs, told)
        rows.append(row)
        if row.failure and told is not None:
            told(folds, folds)
        for remark in remarks:
            warnings.warn(f"{name}: {remark}", DefgpaWarning, stacklevel=2)
    return Comparison(tuple(rows), fold_size)


def default_methods() -> dict[str, Any]:
    """The methods of the paper's Table 2."""
    splines = {f"TPS_r({k})": DefGPA(ThinPlateSpline(points_per_axis=k)) for k in (3, 5, 7)}
    return {
        "EUC_d": EuclideanGPA(),
        "AFF_d": AffineGPA(),
        "AFF_r": DefGPA(Affine()),
        **splines,
    }


def _figures(
    name: str,
    estimator: Any,
    shapes: Shapes,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[MethodFigures, list[str]]:
    """The row of one method, where what goes wrong is told, and what else is to be said."""
    datum = reference = cve = seconds = np.nan
    failure, remarks = "", list[str]()
    try:
        start = time.perf_counter()
        full = quietly_fitted(estimator, shapes)
        seconds = time.perf_counter() - start
        remarks += full.diagnostics.warnings
        datum, reference = full.rmse_datum, full.rmse_reference
        validated = cross_validated(estimator, full, fold_size, n_jobs, progress)
        remarks += [] if validated.news is None else [validated.news]
        cve = validated.error
    except Exception as error:  # a method of one's own may raise anything: the others go on
        failure = str(error) or type(error).__name__
    return MethodFigures(name, datum, reference, cve, seconds, failure), remarks


def _named(estimators: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Estimators by name; those of a list are named after what they are."""
    if isinstance(estimators, Mapping):
        return dict(estimators)
    named: dict[str, Any] = {}
    for estimator in estimators:
        name = _name(estimator)
        same = sum(known.split(" #")[0] == name for known in named)
        named[f"{name} #{same + 1}" if same else name] = estimator
    return named


def _name(estimator: Any) -> str:
    """The paper's name of a method, or what it is made of."""
    if isinstance(estimator, DefGPA):
        warp = ThinPlateSpline() if estimator.warp is None else estimator.warp
        if isinstance(warp, Affine):
            return "AFF_r"
        if isinstance(warp, ThinPlateSpline) and warp.control_points is None:
            return f"TPS_r({warp.points_per_axis})"
        return f"DefGPA({type(warp).__name__})"
    if isinstance(estimator, EuclideanGPA):
        more = [word for word in ("scaling", "reflections") if getattr(estimator, word)]
        return f"EUC_d({', '.join(more)})" if more else "EUC_d"
    if isinstance(estimator, AffineGPA):
        return "AFF_d" if estimator.frame == "first" else f"AFF_d({estimator.frame})"
    return type(estimator).__name__


def _part_of(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of one part, told as progress of the whole."""
    if progress is None:
        return None
    listener = progress
    return lambda done, _: listener(before + done, total)


def _text(figure: float, digits: int) -> str:
    """So many significant digits, zeros at the end too; a dash for NaN."""
    return "–" if np.isnan(figure) else f"{figure:#.{digits}g}".removesuffix(".")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    figures = [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *figures])
