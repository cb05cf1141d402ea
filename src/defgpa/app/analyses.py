"""Analyses of aligned specimens for the page: morphospace, size, groups, tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NotRequired, TypedDict, TypeVar

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from defgpa.alignment import Alignment
from defgpa.app.methods import Method
from defgpa.app.study import Cell, Study
from defgpa.app.thread_warnings import collect_notes
from defgpa.arrays import Array, Index
from defgpa.errors import DefgpaError
from defgpa.io.mesh.files import read_mesh
from defgpa.meshes import Mesh, warp_mesh
from defgpa.statistics import (
    Allometry,
    PairwiseDistances,
    ProcrustesAnova,
    Repeatability,
    ShapePCA,
    Symmetry,
    allometry,
    centroid_sizes,
    outliers,
    procrustes_anova,
    repeatability,
    specimens,
    symmetry,
)
from defgpa.warps import fit_interpolating_spline

MAX_COMPONENTS = 10
GRID_CELLS, GRID_POINTS = 16, 60  # along the longer side; points of each line
_MAX_VERTICES = 60_000

ELLIPSE = np.sqrt(5.991)  # standard deviations that hold 95 % of a normal distribution in the plane
ELLIPSE_POINTS = 72

Progress = Callable[[int, int], None]
_Result = TypeVar("_Result")


class Drawing(TypedDict):
    """Drawing of a shape: landmarks (m, d), the mean shape and, in 2-D, lines of a bent grid."""

    points: Array
    mean: Array
    grid: NotRequired[list[Array]]


class Analysis:
    """One study aligned by one method, with what was computed of it so far."""

    def __init__(self, study: Study, method: Method) -> None:
        self.study, self.method = study, method
        self._results: dict[tuple[object, ...], Any] = {}

    @cached_property
    def alignment(self) -> Alignment:
        """The specimens aligned by the method."""
        with collect_notes():
            return self.method.estimator.fit(self.study.shapes).alignment_

    @cached_property
    def alignment_for_display(self) -> Alignment:
        """The same alignment in the pose of the superimposed specimens, for display."""
        return self.alignment.posed_like(self.study.superimposition.reference)

    @cached_property
    def pca(self) -> ShapePCA:
        """Principal components of the superimposed specimens."""
        with collect_notes():
            return ShapePCA().fit(self.alignment)

    @cached_property
    def notes(self) -> list[str]:
        """What a user should be told about the alignment."""
        with collect_notes() as notes:
            self.method.estimator.fit(self.study.shapes)
        return notes

    def describe(self) -> dict[str, object]:
        """Return the figures of the alignment, and its residuals by specimen and landmark."""
        alignment = self.alignment
        with collect_notes():
            table = self.tabulate_specimens()
            foldovers = int(alignment.foldovers.sum())
            rmse = alignment.rmse_reference, alignment.rmse_datum
        residuals = alignment.residuals
        return {
            "method": self.method.to_dict(),
            "sentence": self.method.sentence,
            "rmse_reference": rmse[0],
            "rmse_datum": rmse[1],
            "foldovers": foldovers,
            "specimens": table,
            "by_landmark": np.sqrt(np.nanmean(residuals**2, axis=0)),
            "residuals": residuals,
            "reference": self.alignment_for_display.reference,
            "notes": self.notes,
        }

    def tabulate_specimens(self) -> dict[str, Sequence[object]]:
        """Return the columns of ``specimens.csv``."""
        with collect_notes():
            return specimens(self.alignment)

    def describe_morphospace(self) -> dict[str, object]:
        """Return scores, shares of variance and the mean shape."""
        pca = self.pca
        return {
            "scores": pca.scores_[:, :MAX_COMPONENTS],
            "ratios": pca.explained_variance_ratio_[:MAX_COMPONENTS],
            "deviations": np.sqrt(pca.explained_variance_[:MAX_COMPONENTS]),
            "mean": pca.mean_,
            "specimens": self.study.numbers_in_analysis[0],
        }

    def outline_groups(self, x: int, y: int, column: str, kind: str) -> dict[str, Array]:
        """Return the corners (k, 2) of the hull or ellipse of each group in two components.

        An ellipse holds 95 % of a normal distribution. Groups of fewer than three specimens, or on
        a line, have no outline.
        """
        if kind not in ("hull", "ellipse"):
            raise DefgpaError(f"An outline is a hull or an ellipse; got {kind!r}.")
        find_outline = _find_hull if kind == "hull" else _find_ellipse
        outlines = {}
        for group, members in self._group(column).items():
            outline = find_outline(self.pca.scores_[np.ix_(members, [x, y])])
            if outline is not None:
                outlines[group] = outline
        return outlines

    def draw_shape(self, scores: Mapping[int, float], magnification: float) -> Drawing:
        """Return the shape at scores of some components (from 0), drawn out from the mean.

        In 2-D with a deformation grid from the mean shape.
        """
        place = np.zeros((1, len(self.pca.components_)))
        for component, score in scores.items():
            if not 0 <= component < place.shape[1]:
                raise DefgpaError(f"There is no component {component + 1}.")
            place[0, component] = score * magnification
        return self._draw(self.pca.inverse_transform(place)[0])

    def draw_group(
        self, column: str, group: str, magnification: float, start: str | None = None
    ) -> Drawing:
        """Return the mean shape of a group, drawn out from that of another group or of all."""
        mean = self.pca.mean_ if start is None else self._find_group_mean(column, start)
        shape = self._find_group_mean(column, group)
        return self._draw(mean + magnification * (shape - mean), mean)

    def _find_group_mean(self, column: str, group: str) -> Array:
        members = self._group(column).get(group)
        if members is None:
            raise DefgpaError(f"There is no group {group!r} in the column {column!r}.")
        scores = self.pca.scores_[members].mean(axis=0, keepdims=True)
        return self.pca.inverse_transform(scores)[0]

    def _draw(self, shape: Array, mean: Array | None = None) -> Drawing:
        start = self.pca.mean_ if mean is None else mean
        drawing: Drawing = {"points": shape, "mean": start}
        if shape.shape[1] == 2:
            drawing["grid"] = bend_grid(start, shape)
        return drawing

    def warp_template(self, shape: Array) -> tuple[Array, Index] | None:
        """Return a mesh of a specimen brought to a shape by a spline: vertices and faces."""
        template = self._template
        if template is None:
            return None
        mesh = warp_mesh(template, fit_interpolating_spline(self.pca.mean_, shape))
        return mesh.vertices, mesh.faces

    @cached_property
    def _template(self) -> Mesh | None:
        """The mesh of the specimen nearest to the mean, brought to the mean shape."""
        shapes = self.study.shapes
        distances = np.linalg.norm(self.pca.scores_, axis=1)
        for i in np.argsort(distances):
            path = self.study.meshes.get(shapes.names[i])
            visible = shapes.visible[i]
            if path is not None and visible.sum() > shapes.n_dims + 1:
                mesh = read_mesh(path)
                if len(mesh.vertices) > _MAX_VERTICES:
                    continue
                spline = fit_interpolating_spline(
                    shapes.points[i, visible], self.pca.mean_[visible]
                )
                return warp_mesh(mesh, spline)
        return None

    def regress_on_size(
        self, n_permutations: int, seed: int, progress: Progress
    ) -> dict[str, object]:
        """Return the allometry: regression scores, and shapes predicted for the extreme sizes."""
        with collect_notes():
            result = self.fit_allometry(n_permutations, seed, progress)
        ends = [float(result.sizes.min()), float(result.sizes.max())]
        mean = result.anova.tangents.mean(axis=0)
        return {
            "sizes": result.sizes,
            "scores": result.scores,
            "line": result.predict_scores(ends),
            "ends": ends,
            "shapes": [self._draw(shape, mean) for shape in result.predict(ends)],
            "table": [row.__dict__ for row in result.anova.table],
            "specimens": self.study.numbers_in_analysis[0],
            "csv": result.to_csv(),
        }

    def fit_allometry(
        self, n_permutations: int, seed: int, progress: Progress | None = None
    ) -> Allometry:
        """Return the regression of shape on log size, computed once.

        The size is a column of that name, or else centroid size.
        """
        column = self.study.columns_in_analysis.get("size")
        sizes = None if column is None else np.asarray(column, dtype=np.float64)
        return self._compute_once(
            ("allometry", n_permutations, seed),
            lambda: allometry(self.alignment, sizes, n_permutations, seed, progress=progress),
        )

    def rank_outliers(self, column: str = "") -> list[dict[str, object]]:
        """Return the specimens ranked as outliers, within groups where a column is named."""
        groups = self.study.columns_in_analysis.get(column) if column else None
        with collect_notes():
            return outliers(self.alignment, groups).table()

    def test(
        self, formula: str, n_permutations: int, seed: int, pairwise: str, progress: Progress
    ) -> dict[str, object]:
        """Return the ANOVA table of a formula, pairwise comparisons, and its effects as shapes."""
        with collect_notes() as notes:
            model = self.fit_model(formula, n_permutations, seed, progress)
            result: dict[str, object] = {
                "formula": formula,
                "table": [row.__dict__ for row in model.table],
                "csv": model.to_csv(),
                "text": str(model),
            }
            if pairwise:
                pairs = self.compare_groups(model, pairwise, progress)
                result["pairwise"] = {
                    "groups": list(pairs.names),
                    "distances": pairs.distances,
                    "p": pairs.p,
                    "csv": pairs.to_csv(),
                }
            result["effects"] = self._list_effects(model)
        result["notes"] = notes
        return result

    def fit_model(
        self, formula: str, n_permutations: int, seed: int, progress: Progress | None = None
    ) -> ProcrustesAnova:
        """Return the Procrustes analysis of variance of a formula, computed once."""
        columns = self.study.columns_in_analysis
        return self._compute_once(
            ("model", formula, n_permutations, seed),
            lambda: procrustes_anova(
                formula, self.alignment, columns, n_permutations, seed, progress=progress
            ),
        )

    def compare_groups(
        self, model: ProcrustesAnova, column: str, progress: Progress | None = None
    ) -> PairwiseDistances:
        """Return the distances between the groups that a model tells apart, computed once."""
        return self._compute_once(
            ("pairs", model, column), lambda: model.pairwise(column, progress=progress)
        )

    def _list_effects(self, model: ProcrustesAnova) -> list[dict[str, object]]:
        """List, for each variable of a model, the shapes predicted at both ends of its range."""
        sizes = centroid_sizes(self.alignment).tolist()
        columns = {
            name: values
            for name, values in {"size": sizes, **self.study.columns_in_analysis}.items()
            if _has_column(model.formula, name)
        }
        typical = {name: _find_typical(values) for name, values in columns.items()}
        mean = model.tangents.mean(axis=0)
        effects: list[dict[str, object]] = []
        for name, values in columns.items():
            levels = sorted({value for value in values if value is not None})
            if _are_numbers(values) and f"C({name})" not in model.formula:
                levels = [levels[0], levels[-1]]
            data = {column: [value] * len(levels) for column, value in typical.items()}
            shapes = [self._draw(shape, mean) for shape in model.predict({**data, name: levels})]
            effects.append({"column": name, "levels": levels, "shapes": shapes})
        return effects

    def measure_repeatability(self, column: str) -> dict[str, object]:
        """Return how much of the variation is between individuals, not between replicates."""
        with collect_notes():
            result = self.fit_repeatability(column)
        return {
            "overall": result.overall,
            "per_landmark": result.per_landmark,
            "text": str(result),
            "csv": result.to_csv(),
        }

    def fit_repeatability(self, column: str) -> Repeatability:
        """Return the repeatability of replicates of the individuals in a column, computed once."""
        individuals = self._column(column)
        return self._compute_once(
            ("repeatability", column), lambda: repeatability(self.alignment, individuals)
        )

    def analyse_symmetry(
        self, individual: str, side: str, replicate: str, n_permutations: int, seed: int
    ) -> dict[str, object]:
        """Return the analysis of matching or object symmetry, as the columns allow it."""
        with collect_notes() as notes:
            result = self.fit_symmetry(individual, side, replicate, n_permutations, seed)
        return {"text": str(result), "notes": notes, "csv": result.indices_to_csv()}

    def fit_symmetry(
        self, individual: str, side: str, replicate: str, n_permutations: int, seed: int
    ) -> Symmetry:
        """Return the shares of directional and fluctuating asymmetry, computed once."""
        names = individual, side, replicate
        individuals, sides, replicates = (self._column(name) if name else None for name in names)
        return self._compute_once(
            ("symmetry", *names, n_permutations, seed),
            lambda: symmetry(
                self.alignment,
                individual=individuals,
                side=sides,
                replicate=replicates,
                n_permutations=n_permutations,
                seed=seed,
            ),
        )

    def _compute_once(self, key: tuple[object, ...], compute: Callable[[], _Result]) -> _Result:
        if key not in self._results:
            self._results[key] = compute()
        result: _Result = self._results[key]
        return result

    def _column(self, name: str) -> list[Cell]:
        columns = self.study.columns_in_analysis
        if name not in columns:
            raise DefgpaError(f"There is no column {name!r}; there is {', '.join(columns)}.")
        return columns[name]

    def _group(self, column: str) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for i, value in enumerate(self._column(column)):
            groups.setdefault("" if value is None else str(value), []).append(i)
        return groups


def _find_hull(points: Array) -> Array | None:
    try:
        return points[ConvexHull(points).vertices] if len(points) > 2 else None
    except QhullError:
        return None  # all on a line


def _find_ellipse(points: Array) -> Array | None:
    if len(points) < 3:
        return None
    variances, axes = np.linalg.eigh(np.cov(points, rowvar=False))
    angles = np.linspace(0.0, 2.0 * np.pi, ELLIPSE_POINTS, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    half_axes = ELLIPSE * np.sqrt(np.maximum(variances, 0.0))
    return np.asarray(points.mean(axis=0) + (circle * half_axes) @ axes.T)


def bend_grid(mean: Array, shape: Array) -> list[Array]:
    """Return the lines of a square grid around the mean shape, bent by the spline to a shape."""
    low, high = mean.min(axis=0), mean.max(axis=0)
    step = 1.24 * (high - low).max() / GRID_CELLS
    counts = np.ceil((high - low) / step).astype(int) + 2
    low = (low + high - counts * step) / 2.0
    spline = fit_interpolating_spline(mean, shape)
    lines = []
    for axis in (0, 1):
        along = low[axis] + step * np.linspace(0.0, counts[axis], GRID_POINTS)
        for value in low[1 - axis] + step * np.arange(counts[1 - axis] + 1):
            line = np.empty((GRID_POINTS, 2))
            line[:, axis], line[:, 1 - axis] = along, value
            lines.append(spline(line))
    return lines


def _are_numbers(values: Sequence[Cell]) -> bool:
    return all(isinstance(value, int | float | np.number) for value in values)


def _find_typical(values: Sequence[Cell]) -> Cell:
    """Return the mean of numbers, the most frequent of words."""
    if _are_numbers(values):
        return float(np.mean(np.asarray(values, dtype=float)))
    return max(sorted(set(values), key=str), key=list(values).count)


def _has_column(formula: str, column: str) -> bool:
    """Return whether the right side of a formula names a column."""
    right = formula.rpartition("~")[2]
    return re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.(])", right) is not None
