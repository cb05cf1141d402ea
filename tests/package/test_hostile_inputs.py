"""Forty hostile inputs × every public function: results, or errors and warnings of ours.

    python tests/package/test_hostile_inputs.py --sets 500 --seed 1

draws others at random, and prints what came of them that is not ours.
"""

import argparse
import inspect
import sys
import tempfile
import time
import warnings
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import defgpa
from defgpa import plot, statistics
from defgpa.edits import Edit
from defgpa.errors import DefgpaError, DefgpaWarning

pytest.importorskip("matplotlib")
from matplotlib import pyplot


def _draw(n=6, m=6, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)) + 0.1 * rng.normal(size=(n, m, d))


def _hide(points, share):
    points[np.random.default_rng(1).uniform(size=points.shape[:2]) < share] = np.nan
    return points


def _put(points, where, value):
    points[where] = value
    return points


INPUTS = {
    "pure noise": lambda: np.random.default_rng(24).normal(size=(6, 10, 2)),
    "two shapes": lambda: _draw(n=2),
    "one shape": lambda: _draw(n=1),
    "a triangle each": lambda: _draw(m=3),
    "d + 1 landmarks in space": lambda: _draw(m=4, d=3),
    "two landmarks": lambda: _draw(m=2),
    "one landmark": lambda: _draw(m=1),
    "60 % missing": lambda: _hide(_draw(n=7, m=8), 0.6),
    "95 % missing": lambda: _hide(_draw(n=8, m=10), 0.95),
    "all missing": lambda: np.full((4, 5, 2), np.nan),
    "a shape that is missing": lambda: _put(_draw(), 2, np.nan),
    "a landmark that is missing": lambda: _put(_draw(), (slice(None), 2), np.nan),
    "a landmark seen once": lambda: _put(_draw(), (slice(1, None), 2), np.nan),
    "a shape that shows one landmark": lambda: draw_input(31001),
    "a deformation to one point": lambda: draw_input(40038),
    "no distances at all": lambda: draw_input(40111),
    "no covariance between modules": lambda: draw_input(40227),
    "landmarks that stray by 1e17": lambda: draw_input(31537),
    "a mean on a line of space": lambda: draw_input(31543),
    "equal shapes": lambda: np.repeat(_draw(n=1), 5, axis=0),
    "two shapes by turns": lambda: np.tile(_draw(n=2), (3, 1, 1)),
    "equal landmarks": lambda: np.ones((5, 6, 2)),
    "two landmarks at one place": lambda: _put(_draw(), (slice(None), 1), _draw()[:, 0]),
    "on a line": lambda: _draw() * [1.0, 0.0],
    "in a plane of space": lambda: _draw(d=3) * [1.0, 1.0, 0.0],
    "all zero": lambda: np.zeros((4, 5, 3)),
    "1e150": lambda: _draw() * 1e150,
    "1e160": lambda: _draw() * 1e160,
    "1e300": lambda: _draw() * 1e300,
    "1e-150": lambda: _draw() * 1e-150,
    "1e-300": lambda: _draw() * 1e-300,
    "1e20": lambda: _draw() * 1e20,
    "1e-20": lambda: _draw() * 1e-20,
    "far away": lambda: _draw() + 1e15,
    "sizes of all orders": lambda: _draw() * np.logspace(-12, 12, 6)[:, None, None],
    "infinite": lambda: _put(_draw(), (1, 1, 0), np.inf),
    "half missing": lambda: _put(_draw(), (1, 1, 0), np.nan),
    "mirrored by halves": lambda: _draw() * np.where(np.arange(6) % 2, 1, -1)[:, None, None],
    "whole numbers": lambda: np.rint(10 * _draw()).astype(int),
    "complex": lambda: _draw() + 1j,
    "dates": lambda: np.zeros((3, 4, 2), dtype="M8[s]"),
    "texts": lambda: np.full((3, 4, 2), "a"),
    "ragged": lambda: [[[0.0, 1.0]], [[0.0, 1.0], [2.0, 3.0]]],
    "one number": lambda: 3.0,
    "nothing": lambda: None,
    "an empty list": lambda: [],
    "an object": object,
    "a table of numbers": lambda: np.ones((4, 5)),
    "four axes": lambda: np.ones((2, 3, 4, 2)),
}


SPOILERS = (  # of points (n, m, d), by a generator of random numbers
    lambda points, rng: points * 10.0 ** rng.integers(-300, 300),
    lambda points, rng: points * 10.0 ** rng.uniform(-9, 9, size=(len(points), 1, 1)),
    lambda points, rng: points * 10.0 ** rng.uniform(-20, 1, size=points.shape[2]),
    lambda points, rng: points + 10.0 ** rng.uniform(0, 18),
    lambda points, rng: _hide_at_random(points, rng, rng.uniform()),
    lambda points, rng: _hide_at_random(points, rng, rng.uniform(size=points.shape[1])),
    lambda points, rng: _hide_at_random(points, rng, rng.uniform(size=(len(points), 1))),
    lambda points, rng: points[rng.integers(len(points), size=len(points))],
    lambda points, rng: points[:, rng.integers(points.shape[1], size=points.shape[1])],
    lambda points, rng: points * rng.choice([-1.0, 1.0], size=(len(points), 1, 1)),
    lambda points, rng: points * rng.choice([0.0, 1.0], size=(len(points), 1, points.shape[2])),
    lambda points, rng: np.rint(points * rng.integers(1, 4)),
    lambda points, rng: points + rng.standard_cauchy(size=points.shape),
    lambda points, rng: np.sort(points, axis=int(rng.integers(3))),
    lambda points, rng: points.astype(np.float32),
    lambda points, rng: np.where(rng.uniform(size=points.shape) < 0.01, np.inf, points),
    lambda points, rng: np.where(rng.uniform(size=points.shape) < 0.01, 1e308, points),
    lambda points, rng: np.where(rng.uniform(size=points.shape) < 0.01, np.nan, points),
)


def _hide_at_random(points, rng, share):
    return np.where((rng.uniform(size=points.shape[:2]) < share)[..., None], np.nan, points)


def draw_input(seed):
    """Draw shapes, few or more, that are spoiled in one to three ways."""
    rng = np.random.default_rng([seed, 31])
    n, m, d = rng.integers(1, 12), rng.integers(1, 14), rng.integers(2, 4)
    points = rng.normal(size=(m, d)) + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=(n, m, d))
    with np.errstate(all="ignore"):
        for spoiler in rng.permutation(len(SPOILERS))[: rng.integers(1, 4)]:
            points = SPOILERS[spoiler](points, rng)
    return points


class Made:
    """What functions are called with, made of one hostile input when it is asked for."""

    def __init__(self, points, folder):
        self.points, self.folder, self._results = points, folder, {}

    def result(self, module, name):
        """Return what a call gives, which is made once."""
        if (module, name) not in self._results:
            self._results[module, name] = CALLS[module][name](self)
        return self._results[module, name]

    @cached_property
    def shapes(self):
        return defgpa.Shapes.specimens(self.points)

    @cached_property
    def alignment(self):
        return defgpa.DefGPA(defgpa.ThinPlateSpline(3)).fit(self.shapes).alignment_

    @cached_property
    def rigid(self):
        return defgpa.EuclideanGPA(scaling=True).fit(self.points).alignment_

    @cached_property
    def groups(self):
        return [f"g{k % 2}" for k in range(len(self.shapes))]

    @cached_property
    def sample(self):
        return statistics.build_sample(self.points)

    @property
    def fold_size(self):
        return max(1, self.shapes.n_landmarks // 3)

    @cached_property
    def individual(self):
        return [f"i{k // 2}" for k in range(len(self.shapes))]

    @cached_property
    def partition(self):
        return [f"p{k % 2}" for k in range(self.shapes.n_landmarks)]

    @cached_property
    def tree(self):
        if len(self.shapes) < 3:
            return "(shape_1:1,shape_2:2);"
        first, *others = self.shapes.names
        return f"({first}:1,({','.join(f'{name}:1' for name in others)}):1);"

    @cached_property
    def image(self):
        return np.add.outer(np.arange(20.0), np.arange(30.0))

    @cached_property
    def picture(self):
        return defgpa.warp_image(self.image, self.alignment.warps[0])

    @cached_property
    def mesh(self):
        faces = [[0, 1, 2]] if self.shapes.n_landmarks > 2 else []
        return defgpa.meshes.Mesh(self.shapes.points[0], np.array(faces).reshape(-1, 3))

    def fit(self, estimator):
        return estimator.fit(self.points).transform(self.points)

    def statistic(self, name, **arguments):
        """Call a statistic with the input itself and, of the others it needs, the usual ones."""
        function = getattr(statistics, name)
        parameters = inspect.signature(function).parameters
        usual = {
            "n_permutations": 9,
            "tree": self.tree if "tree" in parameters and name != "procrustes_anova" else None,
            "species": list(self.shapes.names) if name == "average_species" else None,
            "subject": self.individual,
            "individual": None if name == "symmetry" else self.individual,
            "replicate": None if name == "symmetry" else self.groups,
            "stages": self.individual,
            "groups": self.groups,
            "partition": self.partition,
        }
        arguments = {
            **{
                key: value
                for key, value in usual.items()
                if key in parameters and value is not None
            },
            **arguments,
        }
        takes_sample = next(iter(parameters)) == "x"  # what is missing is completed once
        return function(self.sample if takes_sample else self.points, **arguments)

    def test(self, formula):
        data = {"g": self.groups}
        return statistics.procrustes_anova(formula, self.sample, data, n_permutations=9)


SPLINE = defgpa.DefGPA(defgpa.ThinPlateSpline(3))
CALLS = {
    defgpa: {
        "Shapes": lambda made: defgpa.Shapes(made.points),
        "AffineGPA": lambda made: made.fit(defgpa.AffineGPA()),
        "DefGPA": lambda made: made.fit(SPLINE),
        "Iterative": lambda made: made.fit(
            defgpa.DefGPA(defgpa.ThinPlateSpline(3), solver=defgpa.Iterative())
        ),
        "ElasticGPA": lambda made: made.fit(defgpa.ElasticGPA(defgpa.ThinPlateSpline(3))),
        "EuclideanGPA": lambda made: made.fit(defgpa.EuclideanGPA()),
        "FreeForm": lambda made: made.fit(defgpa.DefGPA(defgpa.FreeForm(4))),
        "Polynomial": lambda made: made.fit(defgpa.DefGPA(defgpa.Polynomial())),
        "RadialBasis": lambda made: made.fit(defgpa.DefGPA(defgpa.RadialBasis(points_per_axis=3))),
        "Robust": lambda made: (
            made.fit(defgpa.DefGPA(robust=True)),
            made.fit(defgpa.EuclideanGPA(robust=True)),
        ),
        "ShapePCA": lambda made: defgpa.ShapePCA().fit(made.rigid).transform(made.shapes),
        "apply_edits": lambda made: defgpa.apply_edits(
            made.shapes, [Edit("swap", made.shapes.names[0], ("1", "2"))]
        ),
        "check_warp": lambda made: defgpa.check_warp(defgpa.ThinPlateSpline(3), made.points),
        "common_frame": lambda made: defgpa.common_frame(
            [made.image] * len(made.shapes), made.alignment.warps
        ),
        "compare": lambda made: defgpa.compare(
            made.points, [defgpa.EuclideanGPA(), SPLINE], fold_size=made.fold_size
        ),
        "complete": lambda made: defgpa.complete(made.points),
        "cross_validate": lambda made: defgpa.cross_validate(
            SPLINE, made.points, fold_size=made.fold_size
        ),
        "export": lambda made: defgpa.export(made.alignment, made.folder / "export", "r"),
        "intensity_deviation": lambda made: defgpa.intensity_deviation(
            [made.image] * len(made.shapes), made.alignment
        ),
        "save": lambda made: defgpa.save(made.alignment, made.folder / "a.npz"),
        "select_smoothing": lambda made: defgpa.select_smoothing(
            SPLINE, made.points, grid=[1e-3, 1e-1], fold_size=made.fold_size
        ),
        "slide": lambda made: defgpa.slide(made.points, curves=[[0, 1, 2]]),
        "warp_image": lambda made: made.picture,
        "warp_mesh": lambda made: defgpa.warp_mesh(made.mesh, made.alignment.warps[0]),
        "warp_points": lambda made: defgpa.warp_points(made.points, made.rigid.warps[0]),
        "read_shapes": lambda made: defgpa.read_shapes(made.points),
        "load": lambda made: defgpa.load(made.points),
        "write_shapes": lambda made: defgpa.write_shapes(made.shapes, made.folder / "a.tps"),
    },
    statistics: {
        "build_sample": lambda made: made.sample,
        "ShapePCA": lambda made: defgpa.ShapePCA().fit(made.points),
        "compare_effect_sizes": lambda made: statistics.compare_effect_sizes(
            [made.result(statistics, "modularity")] * 2
        ),
        "compare_models": lambda made: statistics.compare_models(
            made.test("shape ~ 1"), made.result(statistics, "procrustes_anova")
        ),
        "partition_by_links": lambda made: statistics.partition_by_links(made.shapes),
        "procrustes_anova": lambda made: made.test("shape ~ g"),
        "read_partitions": lambda made: statistics.read_partitions(made.points, ["1", "2"]),
        "read_tree": lambda made: statistics.read_tree(made.tree),
        "specimens": lambda made: statistics.specimens(made.rigid, made.groups),
    },
    plot: {
        "between_groups": lambda made: plot.between_groups(made.result(statistics, "classify")),
        "effect_sizes": lambda made: plot.effect_sizes(
            made.result(statistics, "compare_effect_sizes")
        ),
        "allometry": lambda made: plot.allometry(made.result(statistics, "allometry")),
        "back_projection": lambda made: plot.back_projection(made.alignment),
        "before_and_after": lambda made: plot.before_and_after(made.alignment),
        "canonical_variates": lambda made: plot.canonical_variates(
            made.result(statistics, "classify")
        ),
        "components": lambda made: plot.components(made.rigid),
        "components beyond the last": lambda made: plot.components(made.rigid, which=(1, 9)),
        "covariation": lambda made: plot.covariation(made.result(statistics, "two_block_pls")),
        "deformation_grid": lambda made: plot.deformation_grid(
            made.alignment.warps[0], made.shapes.points[0]
        ),
        "deviation": lambda made: plot.deviation(made.result(defgpa, "intensity_deviation")),
        "disparity": lambda made: plot.disparity(made.result(statistics, "disparity")),
        "displacement_heat": lambda made: plot.displacement_heat(
            made.mesh, made.result(defgpa, "warp_mesh")
        ),
        "displacements": lambda made: plot.displacements(made.alignment, 0),
        "effects": lambda made: plot.effects(made.result(statistics, "procrustes_anova")),
        "group_allometry": lambda made: plot.group_allometry(
            made.result(statistics, "group_allometry")
        ),
        "trajectories": lambda made: plot.trajectories(made.result(statistics, "trajectories")),
        "landmark_differences": lambda made: plot.landmark_differences(
            made.result(statistics, "landmark_differences")
        ),
        "landmark_ellipses": lambda made: plot.landmark_ellipses(made.rigid),
        "missing_map": lambda made: plot.missing_map(made.shapes),
        "outliers": lambda made: plot.outliers(made.result(statistics, "outliers")),
        "overlay": lambda made: plot.overlay(made.alignment),
        "pairwise": lambda made: plot.pairwise(
            made.result(statistics, "procrustes_anova").pairwise("g")
        ),
        "permuted": lambda made: plot.permuted(made.result(statistics, "integration")),
        "photograph": lambda made: plot.photograph(made.shapes, 0),
        "phylomorphospace": lambda made: plot.phylomorphospace(
            made.result(statistics, "phylogenetic_components")
        ),
        "picture": lambda made: plot.picture(made.picture),
        "picture_with_landmarks": lambda made: plot.picture_with_landmarks(
            made.picture, made.alignment, 0
        ),
        "predictions": lambda made: plot.predictions(made.result(defgpa, "cross_validate")),
        "repeatability": lambda made: plot.repeatability(made.result(statistics, "repeatability")),
        "residual_map": lambda made: plot.residual_map(made.alignment),
        "scree": lambda made: plot.scree(defgpa.ShapePCA().fit(made.rigid)),
        "sliding": lambda made: plot.sliding(made.shapes, made.result(defgpa, "slide"), 0),
        "smoothing_path": lambda made: plot.smoothing_path(made.result(defgpa, "select_smoothing")),
        "spectrum": lambda made: plot.spectrum(made.alignment),
        "symmetry": lambda made: plot.symmetry(made.result(statistics, "symmetry")),
    },
}
for _name in statistics.__all__:
    if inspect.isfunction(getattr(statistics, _name)):
        CALLS[statistics].setdefault(_name, lambda made, name=_name: made.statistic(name))


def list_faults(points, folder):
    """Return what else than results and errors of ours comes of all functions for one input."""
    made, faults = Made(points, folder), []
    for module, calls in CALLS.items():
        for function in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    made.result(module, function)
                except DefgpaError:
                    pass
                except Exception as error:
                    if not _names_parameter(error):
                        faults.append((function, type(error).__name__, str(error)))
            pyplot.close("all")
            leaks = [each for each in caught if not issubclass(each.category, DefgpaWarning)]
            faults += [(function, each.category.__name__, str(each.message)) for each in leaks]
    return faults


def _names_parameter(error):
    """Whether an error says in our words, as scikit-learn has them, that a parameter is wrong."""
    return isinstance(error, (TypeError, ValueError)) and str(error).startswith("The '")


@pytest.mark.parametrize("name", INPUTS)
def test_nothing_but_results_and_errors_of_ours_comes_of_hostile_input(name, tmp_path):
    assert list_faults(INPUTS[name](), tmp_path) == []


@pytest.mark.parametrize("seed", [0, 2])
def test_nothing_else_comes_of_input_at_random(seed, tmp_path):
    assert list_faults(draw_input(seed), tmp_path) == []


def test_specimens_that_cannot_be_computed_with_are_refused_by_name():
    specimens = defgpa.Shapes.specimens(_draw() * 1e100)
    refused = pytest.raises(defgpa.ShapeError, match="'shape_1' reach")
    for use in (defgpa.compare, lambda x: defgpa.select_smoothing(SPLINE, x), SPLINE.fit):
        with refused:
            use(specimens)


def test_every_public_function_is_called_with_hostile_input():
    public = {
        f"{module.__name__}.{name}"
        for module in CALLS
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) or name.endswith("GPA")
    }
    called = {f"{module.__name__}.{name}" for module, calls in CALLS.items() for name in calls}
    # the last two take no shapes: a class of one's own, and the sweep of an elastic fit
    assert public - called == {"defgpa.register_saved", "defgpa.plot.dial_surface"}


def main():
    """Call all functions with sets at random; return 1 where something came that is not ours."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n_faults, longest = 0, 0.0
    for seed in range(options.seed, options.seed + options.sets):
        begin = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            faults = list_faults(draw_input(seed), Path(folder))
        longest = max(longest, time.process_time() - begin)
        kinds = {fault[1:]: fault[0] for fault in reversed(faults)}  # with the first function
        n_faults += len(kinds)
        for kind, function in kinds.items():
            sys.stdout.write(f"seed {seed}: {function}: {': '.join(kind)}\n")
        sys.stdout.flush()
    n_calls = options.sets * sum(map(len, CALLS.values()))
    sys.stdout.write(f"{options.sets} sets, {n_calls} calls, {n_faults} faults, ")
    sys.stdout.write(f"{longest:.0f} s for a set at most\n")
    return min(n_faults, 1)


if __name__ == "__main__":
    sys.exit(main())
