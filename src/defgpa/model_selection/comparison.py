"""Is deformation worth it? The methods side by side, each by the same figures."""

from __future__ import annotations

import csv
import html
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.base import clone

from defgpa.arrays import Array, Progress, rms, rms_radius
from defgpa.dataframes import import_pandas
from defgpa.diagnostics.findings import Finding, Problem, warn_about
from defgpa.errors import DefgpaError
from defgpa.estimators import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA
from defgpa.formatting import align_columns, format_number
from defgpa.model_selection.cross_validation import (
    align_without_warning,
    consecutive_folds,
    fix_robust_weights,
    leave_folds_out,
)
from defgpa.shapes import Shapes, ShapesLike, as_shapes
from defgpa.warps import Affine, ThinPlateSpline

_TITLES = ("RMSE_d", "RMSE_r", "CVE", "RMSE_d %", "RMSE_r %", "CVE %", "time [s]")
_LEGEND = (
    "In %: of the size of the method's own reference, RMSE_d of that of the shapes. Ranked by "
    "CVE %."
)
MAX_TESTED = 100  # landmarks over which methods are paired
MAX_USEFUL_ERROR = 0.5  # of the size of the reference: a larger CVE predicts nothing
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "_%&#${}"}
    | {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class MethodFigures:
    """Row of a comparison: the figures of a method, NaN where it has none, and why.

    ``size`` is that of its own reference, the RMS distance of the landmarks from their centroid:
    errors of references of different size compare only relative to it. RMSE_d is measured in the
    space of the shapes, whose size is ``shape_size``.

    Examples
    --------
    >>> row = MethodFigures("AFF_r", 6.7266, 6.5411, 6.9113, 52.0, 0.0021, shape_size=50.0)
    >>> row.cells
    ('AFF_r', '6.727', '6.541', '6.911', '13.45', '12.58', '13.29', '0.0021')
    """

    name: str
    rmse_datum: float
    rmse_reference: float
    cve: float
    size: float
    seconds: float
    failure: str = ""
    shape_size: float = np.nan

    @property
    def relative_rmse_datum(self) -> float:
        """RMSE_d relative to the size of the shapes."""
        return self.rmse_datum / self.shape_size

    @property
    def relative_rmse_reference(self) -> float:
        """RMSE_r relative to the size of the reference."""
        return self.rmse_reference / self.size

    @property
    def relative_cve(self) -> float:
        """The cross-validation error relative to the size of the reference."""
        return self.cve / self.size

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text: a name, three errors, the same in per cent, and the time."""
        errors = (self.rmse_datum, self.rmse_reference, self.cve)
        relative = (self.relative_rmse_datum, self.relative_rmse_reference, self.relative_cve)
        figures = (*errors, *(100.0 * share for share in relative))
        seconds = format_number(self.seconds, 2, unknown="–")
        return (self.name, *(format_number(value, unknown="–") for value in figures), seconds)

    def to_dict(self) -> dict[str, Any]:
        """All figures by name, the failure last."""
        figures = {field.name: getattr(self, field.name) for field in fields(self)}
        failure = figures.pop("failure")
        relative = ("relative_rmse_datum", "relative_rmse_reference", "relative_cve")
        return figures | {name: getattr(self, name) for name in relative} | {"failure": failure}


@dataclass(frozen=True)
class Verdict:
    """Which method predicts best, and whether that is more than chance.

    Attributes
    ----------
    best : str
        The method of the least relative CVE.
    against : str
        What it is held against: the better of the rigid methods, or if that is the best itself,
        the best of the others; empty if there is none.
    rigid : bool
        Whether the best is a rigid method.
    gain : float
        How much less the relative CVE of the best is, relative to that of the other.
    probability : float
        Of such a difference by chance, paired over landmarks (Wilcoxon); NaN for too few. Of very
        many landmarks, which are not independent, 100 are taken.
    next_step : str
        What to run next.
    cautions : tuple of str
        Sentences on what the best method does badly, although it predicts best.
    better_share : float
        Share of the paired landmarks that the best predicts better than the other; NaN if unknown.

    Examples
    --------
    >>> print(Verdict("TPS_r(5)", "EUC_d(scaling)", False, 0.25, 0.003).sentence)
    TPS_r(5) predicts best, with an error 25 % below that of EUC_d(scaling): more than chance
    (p = 0.003, paired over landmarks).
    """

    best: str
    against: str
    rigid: bool
    gain: float
    probability: float
    next_step: str = ""
    cautions: tuple[str, ...] = ()
    better_share: float = np.nan

    @property
    def clear(self) -> bool:
        """Whether the difference is more than chance: of a probability below 0.05."""
        return self.probability < 0.05

    @property
    def few_decide(self) -> bool:
        """Whether large errors at a few landmarks decide, against the majority of them."""
        return self.probability >= 0.05 and self.better_share < 0.5

    @property
    def sentence(self) -> str:
        """What to conclude, and what to run next."""
        return self.conclusion + (f" Next: {self.next_step}" if self.next_step else "")

    @property
    def conclusion(self) -> str:
        """Which method predicts best, by how much, and whether that is more than chance."""
        return " ".join([self._rigid if self.rigid else self._deformable, *self.cautions])

    @property
    def _deformable(self) -> str:
        margin = f"{_format_percent(self.gain)} below that of {self.against}"
        if self.clear or self.few_decide:
            detail = f"{':' if self.clear else ','} {self._chance}"
            return f"{self.best} predicts best, with an error {margin}{detail}."
        return (
            f"{self.best} predicts best, but with an error only {margin}, {self._chance}: the "
            "rigid method does as well."
        )

    @property
    def _rigid(self) -> str:
        if not self.against:
            return f"{self.best} predicts best."
        more = _format_percent(self.gain / (1.0 - self.gain)) if self.gain < 1.0 else "infinitely"
        detail = f"{':' if self.clear else ','} {self._chance}"
        return (
            f"{self.best} predicts best: these shapes need not be deformed. The next best, "
            f"{self.against}, has an error {more} above{detail}."
        )

    @property
    def _chance(self) -> str:
        if np.isnan(self.probability):
            return "with too few landmarks to tell that from chance"
        p = "p < 0.001" if self.probability < 0.001 else f"p = {self.probability:.2g}"
        tested = f"({p}, paired over landmarks)"
        if self.few_decide:
            return (
                f"but a few landmarks decide that: {self.against} predicts "
                f"{_format_percent(1.0 - self.better_share)} of the landmarks better {tested}"
            )
        return f"more than chance {tested}" if self.clear else f"which may be chance {tested}"


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same shapes; prints as a table.

    Attributes
    ----------
    rows : tuple of MethodFigures
        One per method: ``name``, ``rmse_datum``, ``rmse_reference``, ``cve``, the same relative to
        the size, ``seconds`` of one fit, and ``failure``, empty unless the method failed.
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
    >>> stiff = MethodFigures("AFF_r", 6.727, 6.541, 6.911, 52.0, 0.002, shape_size=50.0)
    >>> bent = MethodFigures("TPS_r(5)", 3.602, 3.885, 4.525, 51.0, 0.003, shape_size=50.0)
    >>> print(Comparison((stiff, bent), fold_size=1))
       method    RMSE_d  RMSE_r    CVE  RMSE_d %  RMSE_r %  CVE %  time [s]
    ───────────────────────────────────────────────────────────────────────
     2 AFF_r      6.727   6.541  6.911     13.45     12.58  13.29    0.0020
    ▸1 TPS_r(5)   3.602   3.885  4.525     7.204     7.618  8.873    0.0030
    CVE: 1 landmark left out at a time. In %: of the size of the method's own reference, RMSE_d of
    that of the shapes. Ranked by CVE %.
    """

    rows: tuple[MethodFigures, ...]
    fold_size: int
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def ranking(self) -> tuple[str, ...]:
        """The methods by their relative CVE, the best first; those without one are not in it."""
        ranked = [row for row in self.rows if not np.isnan(row.relative_cve)]
        return tuple(row.name for row in sorted(ranked, key=lambda row: row.relative_cve))

    @property
    def best(self) -> MethodFigures | None:
        """The row with the least relative CVE; None if no method has one."""
        return self[self.ranking[0]] if self.ranking else None

    def __getitem__(self, name: str) -> MethodFigures:
        """Return the row of a method."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"There is no method {name!r}. There are: {[row.name for row in self.rows]}")

    def __iter__(self) -> Iterator[MethodFigures]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        best = f", {self.ranking[0]} predicts best" if self.ranking else ""
        return f"Comparison({len(self)} methods{best})"

    def __str__(self) -> str:
        table = [("   method", *_TITLES), *(self._format_row(row) for row in self.rows)]
        head, *lines = align_columns(table, between="  ").split("\n")
        return "\n".join([head, "─" * len(head), *lines, *self._notes()])

    def _format_row(self, row: MethodFigures) -> tuple[str, ...]:
        """Return the cells of a row after its rank, with a mark on the best one."""
        name, *figures = row.cells
        place = self.ranking.index(name) + 1 if name in self.ranking else ""
        width = len(str(len(self.rows)))
        return f"{'▸' if place == 1 else ' '}{place:>{width}} {name}", *figures

    def _format_cells(
        self, row: MethodFigures, mark: str, escaped: Callable[[str], str]
    ) -> list[str]:
        """Return the escaped cells of a row, with the name of the best in this markup."""
        name, *figures = map(escaped, row.cells)
        return [mark.format(name) if row is self.best else name, *figures]

    def to_markdown(self) -> str:
        """Return a Markdown table; the name of the best method is bold."""
        lines = [["method", *_TITLES], ["---", *["---:"] * len(_TITLES)]]
        lines += [
            self._format_cells(row, "**{}**", lambda t: t.replace("|", "\\|")) for row in self.rows
        ]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        notes = [f"\n{note}" for note in self._notes()]  # a paragraph each
        return "\n".join([*table, *notes]) + "\n"

    def to_latex(self) -> str:
        """Return a LaTeX tabular that needs no package; the name of the best method is bold."""
        head = map(_in_latex, ("method", *_TITLES))
        rows = [self._format_cells(row, r"\textbf{{{}}}", _in_latex) for row in self.rows]
        lines = [" & ".join(line) + r" \\" for line in (head, *rows)]
        columns = "l" + "r" * len(_TITLES)
        body = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:]]
        notes = [f"% {note}" for note in self._notes()]
        return "\n".join([*body, r"\hline", r"\end{tabular}", *notes]).replace("–", "--") + "\n"

    def to_csv(self) -> str:
        """Return the table as CSV with all digits, one line per method."""
        text = io.StringIO()
        rows = [row.to_dict() for row in self.rows]
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, indexed by method."""
        rows = [row.to_dict() for row in self.rows]
        return import_pandas().DataFrame(rows).set_index("name")

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("method", *_TITLES))
        rows = [self._format_cells(row, "<strong>{}</strong>", html.escape) for row in self.rows]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _notes(self) -> list[str]:
        """Why methods failed, what the figures are, and the verdict."""
        failures: dict[str, list[str]] = {}  # each is told once, with the methods it is about
        for row in self.rows:
            if row.failure:
                failures.setdefault(" ".join(row.failure.split()), []).append(row.name)
        verdict = [] if self.verdict is None else [self.verdict.sentence]
        count = "1 landmark" if self.fold_size == 1 else f"{self.fold_size} landmarks"
        legend = f"CVE: {count} left out at a time. {_LEGEND}"
        failed = [f"{', '.join(names)}: {reason}" for reason, names in failures.items()]
        return [*failed, legend, *verdict]


def compare(
    shapes: ShapesLike,
    estimators: Mapping[str, Any] | Sequence[Any] | None = None,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    refit: bool = False,
) -> Comparison:
    """Return the errors of several methods on the same shapes, as in the paper's Table 2.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    estimators : mapping of str to estimator, or sequence of estimators, optional
        What to compare. Robust ones share the landmark weights of one robust deformable fit, so
        that their errors are of the same landmarks. By default the rigid and affine benchmarks
        EUC_d, EUC_d with scaling and AFF_d (starred in the paper), then AFF_r and TPS_r with 3, 5
        and 7 control points per axis, and ELA(5), ElasticGPA between rigid and TPS_r(5).
        ``published_methods()`` are the paper's six with the paper's proportions.
    fold_size, n_jobs, progress, refit
        As in ``cross_validate``; ``progress`` counts the folds of all methods.

    Returns
    -------
    Comparison
        Prints as a table, ranked by the relative CVE, with a verdict where a rigid method is among
        them; ``to_markdown``, ``to_csv``, ``to_latex`` and ``to_frame`` give it away. A method
        that fails on these shapes has its error in its row.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from defgpa.model_selection import compare
    >>> base = np.random.default_rng(0).normal(size=(30, 2)) * [3, 2]
    >>> shapes = [base + 0.1 * np.sin(base[:, ::-1] + phase) for phase in range(6)]
    >>> table = compare(shapes, [defgpa.DefGPA(defgpa.Affine()), defgpa.DefGPA()])
    >>> [row.name for row in table]
    ['AFF_r', 'TPS_r(5)']
    >>> table["TPS_r(5)"].cve < table["AFF_r"].cve
    True
    """
    shapes = as_shapes(shapes)
    chosen = default_methods() if estimators is None else _name_estimators(estimators)
    folds = len(consecutive_folds(shapes.n_landmarks, fold_size))
    # the settings of the first robust method, if there is one, weigh the landmarks of all of them
    robust = next((e.robust for e in chosen.values() if getattr(e, "robust", False)), False)
    _, weighted, rejections = fix_robust_weights(DefGPA(robust=robust), shapes)
    trials = []
    for done, (name, estimator) in enumerate(chosen.items()):
        listener = progress and partial(_report_in_all, progress, done * folds, len(chosen) * folds)
        is_robust = getattr(estimator, "robust", False)
        counted = weighted if is_robust else shapes
        trial = _evaluate_method(name, estimator, counted, fold_size, n_jobs, listener, refit)
        if is_robust:
            trial = replace(trial, findings=(*rejections, *trial.findings))
        trials.append(trial)
        if trials[-1].row.failure and listener is not None:
            listener(folds, folds)
    rows = tuple(trial.row for trial in trials)
    if all(row.failure and np.isnan(row.rmse_reference) for row in rows):
        raise DefgpaError(f"No method can align these shapes. {rows[0].failure}")
    table = Comparison(rows, fold_size, _reach_verdict(trials), tuple(_merge_findings(trials)))
    warn_about(table.findings)
    return table


def default_methods() -> dict[str, Any]:
    """Return the methods of the paper's Table 2, similarities, and the elastic family.

    Returns
    -------
    dict[str, Any]
        The estimators, by the code of the method.
    """
    splines = {f"TPS_r({k})": DefGPA(ThinPlateSpline(points_per_axis=k)) for k in (3, 5, 7)}
    return {
        "EUC_d": EuclideanGPA(),
        "EUC_d(scaling)": EuclideanGPA(scaling=True),
        "AFF_d": AffineGPA(),
        "AFF_r": DefGPA(Affine()),
        **splines,
        "ELA(5)": ElasticGPA(),
    }


def published_methods(theta: float | None = None) -> dict[str, Any]:
    """Return the six methods of the paper's Table 2 with its proportions, and its θ if given.

    Parameters
    ----------
    theta : float, optional
        θ of the thin-plate splines, absolute.

    Returns
    -------
    dict[str, Any]
        The estimators, by the code of the method.
    """
    warps: dict[str, Any] = {
        "AFF_r": Affine(),
        **{f"TPS_r({k})": ThinPlateSpline(points_per_axis=k, theta=theta) for k in (3, 5, 7)},
    }
    deformable = {name: DefGPA(warp, proportions="prior") for name, warp in warps.items()}
    return {"EUC_d": EuclideanGPA(), "AFF_d": AffineGPA(), **deformable}


@dataclass(frozen=True, eq=False)
class _Trial:
    """A method with its row, its error at each landmark, and its findings."""

    row: MethodFigures
    estimator: Any
    per_landmark: Array | None = None  # (m,): relative to the size of its reference
    findings: tuple[Finding, ...] = ()


def _evaluate_method(
    name: str,
    estimator: Any,
    shapes: Shapes,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
    refit: bool,
) -> _Trial:
    """Evaluate one method; an error becomes a part of its row, and the comparison goes on."""
    centred = shapes.points - np.nanmean(shapes.points, axis=1, keepdims=True)
    shape_size = rms(centred[shapes.visible])
    row = MethodFigures(name, np.nan, np.nan, np.nan, np.nan, np.nan, shape_size=shape_size)
    findings: tuple[Finding, ...] = ()
    try:
        start = time.perf_counter()
        is_robust = getattr(estimator, "robust", False)
        unweighted = clone(estimator).set_params(robust=False) if is_robust else estimator
        full, problem = align_without_warning(unweighted, shapes)
        seconds = time.perf_counter() - start
        findings, size = full.findings, rms_radius(full.reference[shapes.views >= 2])
        row = replace(row, seconds=seconds, size=size, rmse_reference=full.rmse_reference)
        row = replace(row, rmse_datum=full.rmse_datum)
        validated = leave_folds_out(unweighted, full, problem, fold_size, n_jobs, progress, refit)
    except Exception as error:  # a method of one's own may raise anything
        row = replace(row, failure=str(error) or type(error).__name__)
        return _Trial(row, estimator, None, findings)
    if (fold_finding := validated.fold_finding) is not None:
        findings += (fold_finding,)
    row = replace(row, cve=validated.error)
    return _Trial(row, estimator, validated.per_landmark / size, findings)


def _merge_findings(trials: Sequence[_Trial]) -> Iterator[Finding]:
    """Collect the findings, each once, with the methods it holds for."""
    first: dict[str, Finding] = {}
    methods: dict[str, list[str]] = {}
    for trial in trials:
        for finding in trial.findings:
            key = repr((finding.problem, finding.shapes, finding.landmarks))
            first.setdefault(key, finding)
            methods.setdefault(key, []).append(trial.row.name)
    for key, finding in first.items():
        if len(methods[key]) == len(trials):
            yield finding
        else:
            names = tuple(dict.fromkeys(methods[key]))
            yield Finding(Problem.IN_METHODS, methods=names, parts=(finding,))


def _reach_verdict(trials: Sequence[_Trial]) -> Verdict | None:
    """Compare the best with the better rigid method, or a rigid best with the others."""
    ranked = [trial for trial in trials if trial.per_landmark is not None]
    ranked = sorted(ranked, key=lambda trial: trial.row.relative_cve)
    rigid = [trial for trial in ranked if isinstance(trial.estimator, EuclideanGPA)]
    if not rigid:
        return None
    best, is_rigid = ranked[0], ranked[0] in rigid
    rivals = [trial for trial in ranked if trial not in rigid] if is_rigid else rigid
    cautions = _find_cautions(best.row, rigid[0].row)
    verdict = Verdict(best.row.name, "", is_rigid, 0.0, np.nan, cautions=cautions)
    chosen = best
    if rivals:
        rival = rivals[0]
        smallest, error = best.row.relative_cve, rival.row.relative_cve
        gain = 1.0 - smallest / error if error > 0.0 else 0.0
        probability, share = _test_difference(best, rival)
        verdict = replace(
            verdict,
            against=rival.row.name,
            gain=gain,
            probability=probability,
            better_share=share,
        )
        # where rigid and deformable predict alike, the simpler one does
        chosen = best if verdict.clear or is_rigid else rival
    next_step = f"{chosen.estimator!r}.fit(shapes)"
    if hasattr(getattr(chosen.estimator, "warp_model", None), "smoothing"):
        next_step = f"defgpa.select_smoothing({chosen.estimator!r}, shapes).best.fit(shapes)"
    return replace(verdict, next_step=next_step)


def _find_cautions(best: MethodFigures, rigid: MethodFigures) -> tuple[str, ...]:
    """Say where the method that predicts best is far from the shapes, or predicts badly itself."""
    cautions = []
    if not best.rmse_datum <= rigid.rmse_datum * (1.0 + 1e-9):
        error = (
            f"is {_format_percent(best.relative_rmse_datum)} of the size of the shapes"
            if np.isfinite(best.rmse_datum)
            else "cannot be computed"
        )
        cautions.append(
            f"But its error in the shapes themselves (RMSE_d) {error}, that of {rigid.name} only "
            f"{_format_percent(rigid.relative_rmse_datum)}: do not use it."
        )
    if best.relative_cve > MAX_USEFUL_ERROR:
        cautions.append(
            f"No method predicts these landmarks: an error of {_format_percent(best.relative_cve)} "
            "of the size of the reference is no prediction. Check order and labels of the "
            "landmarks."
        )
    return tuple(cautions)


def _test_difference(best: _Trial, rival: _Trial) -> tuple[float, float]:
    """Test whether a method predicts landmarks better than another, by more than chance.

    Returns
    -------
    float
        Two-sided P of the paired signed-rank test, NaN for too few landmarks.
    float
        Share of the landmarks that the best predicts better, NaN if none differs.
    """
    assert best.per_landmark is not None
    assert rival.per_landmark is not None
    # neighbours on a dense curve or mesh are no independent sample: 100 spread evenly are taken
    last, n_tested = len(best.per_landmark) - 1, min(len(best.per_landmark), MAX_TESTED)
    tested = np.unique(np.linspace(0, last, n_tested).astype(int))
    differences = (best.per_landmark - rival.per_landmark)[tested]
    differences = differences[np.isfinite(differences) & (differences != 0.0)]
    if not len(differences):
        return np.nan, np.nan
    share = float(np.mean(differences < 0.0))
    if len(differences) < 6:  # of fewer, even if all agreed, chance could not be ruled out
        return np.nan, share
    # twice the side on which the best is better: landmarks that disagree with the CVE do not count
    return min(1.0, 2.0 * float(wilcoxon(differences, alternative="less").pvalue)), share


def _name_estimators(estimators: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Name estimators; those of a list get names that describe them."""
    if isinstance(estimators, Mapping):
        return dict(estimators)
    named: dict[str, Any] = {}
    for estimator in estimators:
        name = _name_estimator(estimator)
        n_same = sum(label.split(" #")[0] == name for label in named)
        named[f"{name} #{n_same + 1}" if n_same else name] = estimator
    return named


def _name_estimator(estimator: Any) -> str:
    """Return the paper's name of a method, or one made of its parameters."""
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


def _report_in_all(progress: Progress, before: int, total: int, n_done: int, _: int) -> None:
    """Report the progress of one method as progress of the comparison."""
    progress(before + n_done, total)


def _in_latex(text: str) -> str:
    return text.translate(_LATEX)


def _format_percent(share: float) -> str:
    """Format a share with two digits, as in 23 %, 1.4 % and 0.06 %, from 100 % on with all."""
    if share >= 1.0:
        return f"{100.0 * share:.0f} %"
    return f"{format_number(100.0 * share, 2)} %"
