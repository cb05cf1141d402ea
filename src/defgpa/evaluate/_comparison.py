"""Is deformation worth it? The methods side by side, each by the same figures."""

from __future__ import annotations

import csv
import html
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from defgpa._arrays import Array
from defgpa.errors import DefgpaError
from defgpa.estimators import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA, ShapesLike
from defgpa.evaluate._cross_validation import CrossValidation, cross_validated
from defgpa.evaluate._folds import Progress, consecutive_folds, looked_at
from defgpa.findings import Finding, Kind
from defgpa.sentences import warn_of
from defgpa.shapes import Shapes, as_shapes
from defgpa.warps import Affine, ThinPlateSpline

_TITLES = ("RMSE_d", "RMSE_r", "CVE", "CVE [%]", "time [s]")
SIMILAR = "EUC_d(scaling)"
_CHANCE = 0.05  # probability below which a difference is more than chance
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "_%&#${}"}
    | {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class MethodFigures:
    """One row: the figures of a method, NaN where it has none, and why.

    ``size`` is that of its own reference, the RMS distance of the landmarks from their centroid:
    errors of references of different size compare only relative to it.

    Examples
    --------
    >>> row = MethodFigures("AFF_r", 6.7266, 6.5411, 6.9113, 52.0, 0.0021)
    >>> row.cells
    ('AFF_r', '6.727', '6.541', '6.911', '13.29', '0.0021')
    """

    name: str
    rmse_datum: float
    rmse_reference: float
    cve: float
    size: float
    seconds: float
    failure: str = ""

    @property
    def relative_cve(self) -> float:
        """The cross-validation error relative to the size of the reference."""
        return self.cve / self.size

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text: a name and five figures."""
        errors = (self.rmse_datum, self.rmse_reference, self.cve, 100.0 * self.relative_cve)
        return (self.name, *(_text(x, 4) for x in errors), _text(self.seconds, 2))


@dataclass(frozen=True)
class Verdict:
    """Which method predicts best, and whether that is more than chance.

    Attributes
    ----------
    best, rigid : str
        The method of the least relative CVE, and the rigid one it is held against.
    gain : float
        How much less the relative CVE of the best is, relative to that of the rigid one.
    probability : float
        Of such a difference by chance, paired over landmarks (Wilcoxon); NaN for too few.
    """

    best: str
    rigid: str
    gain: float
    probability: float

    @property
    def clear(self) -> bool:
        """Whether the difference is more than chance."""
        return self.probability < _CHANCE

    def sentence(self, next_step: str) -> str:
        """What to conclude, and what to run next."""
        if self.best == self.rigid:
            return (
                f"{self.rigid} predicts best: these shapes do not need to be deformed. "
                f"Next: {next_step}"
            )
        chance = (
            f"more than chance, p = {self.probability:.2g} over landmarks"
            if self.clear
            else "which may be chance"
        )
        return (
            f"{self.best} predicts best, with an error {self.gain:.0%} below that of {self.rigid} "
            f"({chance}). Next: {next_step}"
        )


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same shapes; prints as a table.

    Attributes
    ----------
    rows : tuple of MethodFigures
        One per method: ``name``, ``rmse_datum``, ``rmse_reference``, ``cve``, ``size`` of its
        reference, ``relative_cve``, ``seconds`` of one fit, and ``failure``, empty unless the
        method failed.
    fold_size : int
        Landmarks left out at a time for the CVE.
    verdict : Verdict or None
        Which method predicts best; None unless a rigid one is among them.
    findings : tuple of Finding
        What the fits and their folds found, each once, with the methods it holds for.

    See Also
    --------
    compare : makes it.

    Examples
    --------
    >>> rows = MethodFigures("AFF_r", 6.727, 6.541, 6.911, 52.0, 0.002), MethodFigures(
    ...     "TPS_r(5)", 3.602, 3.885, 4.525, 51.0, 0.003
    ... )
    >>> print(Comparison(rows, fold_size=1))
      method    RMSE_d  RMSE_r    CVE  CVE [%]  time [s]
    ────────────────────────────────────────────────────
      AFF_r      6.727   6.541  6.911    13.29    0.0020
    ▸ TPS_r(5)   3.602   3.885  4.525    8.873    0.0030
    """

    rows: tuple[MethodFigures, ...]
    fold_size: int
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def best(self) -> MethodFigures | None:
        """The row of the least relative CVE; None if no method has one."""
        judged = [row for row in self.rows if row.relative_cve == row.relative_cve]
        return min(judged, key=lambda row: row.relative_cve, default=None)

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
        table = [("  method", *_TITLES), *(self._marked(row) for row in self.rows)]
        widths = [max(len(line[k]) for line in table) for k in range(len(table[0]))]
        lines = [_aligned(line, widths) for line in table]
        lines.insert(1, "─" * len(lines[0]))
        return "\n".join([*lines, *self._notes()])

    def _marked(self, row: MethodFigures) -> tuple[str, ...]:
        """The cells of a row, the best one pointed at."""
        name, *figures = row.cells
        return ("▸ " if row is self.best else "  ") + name, *figures

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
        body = [r"\begin{tabular}{lrrrrr}", r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"]
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
        What to compare. By default the rigid and affine benchmarks EUC_d, EUC_d with scaling and
        AFF_d (starred in the paper), then AFF_r and TPS_r with 3, 5 and 7 control points per axis,
        and ELA(5), ElasticGPA between rigid and TPS_r(5).
        ``published_methods()`` are the paper's six with the paper's proportions.
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
    trials = []
    for done, (name, estimator) in enumerate(chosen.items()):
        told = _part_of(progress, done * folds, len(chosen) * folds)
        trials.append(_tried(name, estimator, shapes, fold_size, n_jobs, told))
        if trials[-1].row.failure and told is not None:
            told(folds, folds)
    rows = tuple(trial.row for trial in trials)
    if all(row.failure and np.isnan(row.rmse_reference) for row in rows):
        raise DefgpaError(f"No method can align these shapes. {rows[0].failure}")
    table = Comparison(rows, fold_size, _verdict(trials), tuple(_once(trials)))
    warn_of(table.findings)
    return table


def default_methods() -> dict[str, Any]:
    """The methods of the paper's Table 2, similarities, and the elastic family between them."""
    splines = {f"TPS_r({k})": DefGPA(ThinPlateSpline(points_per_axis=k)) for k in (3, 5, 7)}
    return {
        "EUC_d": EuclideanGPA(),
        SIMILAR: EuclideanGPA(scaling=True),
        "AFF_d": AffineGPA(),
        "AFF_r": DefGPA(Affine()),
        **splines,
        "ELA(5)": ElasticGPA(),
    }


def published_methods(theta: float | None = None) -> dict[str, Any]:
    """The six methods of the paper's Table 2 with its proportions, and its θ where one is given."""
    warps: dict[str, Any] = {
        "AFF_r": Affine(),
        **{f"TPS_r({k})": ThinPlateSpline(points_per_axis=k, theta=theta) for k in (3, 5, 7)},
    }
    deformable = {name: DefGPA(warp, proportions="prior") for name, warp in warps.items()}
    return {"EUC_d": EuclideanGPA(), "AFF_d": AffineGPA(), **deformable}


@dataclass(frozen=True, eq=False)
class _Trial:
    """One method tried: its row, how well it predicts each landmark, and what it found."""

    row: MethodFigures
    per_landmark: Array | None = None  # (m,): relative to the size of its reference
    findings: tuple[Finding, ...] = field(default=())


def _tried(
    name: str,
    estimator: Any,
    shapes: Shapes,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> _Trial:
    """One method; what goes wrong is told in its row, and the others go on."""
    row = MethodFigures(name, np.nan, np.nan, np.nan, np.nan, np.nan)
    found: tuple[Finding, ...] = ()
    try:
        start = time.perf_counter()
        full = looked_at(estimator, shapes)
        seconds = time.perf_counter() - start
        found, size = full.findings, _size(full.reference[shapes.views >= 2])
        row = replace(row, seconds=seconds, size=size, rmse_reference=full.rmse_reference)
        row = replace(row, rmse_datum=full.rmse_datum)
        validated = cross_validated(estimator, full, fold_size, n_jobs, progress)
    except Exception as error:  # a method of one's own may raise anything
        return _Trial(replace(row, failure=str(error) or type(error).__name__), None, found)
    found += _news(validated)
    return _Trial(replace(row, cve=validated.error), validated.per_landmark / size, found)


def _news(validated: CrossValidation) -> tuple[Finding, ...]:
    return () if validated.news is None else (validated.news,)


def _size(reference: Array) -> float:
    """The RMS distance of the landmarks from their centroid."""
    return float(np.sqrt(((reference - reference.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _once(trials: Sequence[_Trial]) -> Iterator[Finding]:
    """What was found, each once, with the methods it holds for."""
    first: dict[str, Finding] = {}
    methods: dict[str, list[str]] = {}
    for trial in trials:
        for finding in trial.findings:
            key = repr((finding.kind, finding.shapes, finding.landmarks))
            first.setdefault(key, finding)
            methods.setdefault(key, []).append(trial.row.name)
    for key, finding in first.items():
        if len(methods[key]) == len(trials):
            yield finding
        else:
            names = tuple(dict.fromkeys(methods[key]))
            yield Finding(Kind.IN_METHODS, methods=names, parts=(finding,))


def _verdict(trials: Sequence[_Trial]) -> Verdict | None:
    """The best against the better of the rigid methods."""
    judged = [trial for trial in trials if trial.per_landmark is not None]
    rigid = [trial for trial in judged if trial.row.name in ("EUC_d", SIMILAR)]
    if not rigid:
        return None
    best, plain = (min(own, key=lambda t: t.row.relative_cve) for own in (judged, rigid))
    gain = 1.0 - best.row.relative_cve / plain.row.relative_cve
    return Verdict(best.row.name, plain.row.name, gain, _probability(best, plain))


def _probability(best: _Trial, plain: _Trial) -> float:
    """Of errors as different as these by chance, paired over landmarks."""
    assert best.per_landmark is not None
    assert plain.per_landmark is not None
    differences = best.per_landmark - plain.per_landmark
    differences = differences[np.isfinite(differences) & (differences != 0.0)]
    if len(differences) < 6:  # even if all agreed, chance could not be ruled out
        return float("nan")
    return float(wilcoxon(differences).pvalue)


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
    if isinstance(estimator, (DefGPA, ElasticGPA)):
        warp = ThinPlateSpline() if estimator.warp is None else estimator.warp
        elastic = isinstance(estimator, ElasticGPA)
        if isinstance(warp, Affine):
            return "ELA(affine)" if elastic else "AFF_r"
        if isinstance(warp, ThinPlateSpline) and warp.control_points is None:
            return f"{'ELA' if elastic else 'TPS_r'}({warp.points_per_axis})"
        return f"{type(estimator).__name__}({type(warp).__name__})"
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
