"""Pictures of tests draw the numbers of the tests."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import defgpa
from defgpa import ShapeError, Shapes, plot
from defgpa.plot._flat import magnifier, view_of
from defgpa.statistics import (
    allometry,
    landmark_differences,
    procrustes_anova,
    repeatability,
    symmetry,
)
from support import EXACT

MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])


def flat():
    return Figure(layout="constrained").subplots()


def moths(n=12, dim=2):
    rng = np.random.default_rng(0)
    base = np.column_stack([MOTH, 0.2 * MOTH[:, 1] ** 2])[:, :dim]
    x = base + 0.05 * rng.normal(size=(n, 8, dim))
    x[n // 2 :, 4] += 0.5
    return x * np.linspace(1, 2, n)[:, None, None]


@pytest.fixture(scope="module")
def model():
    data = {"kind": np.repeat(["a", "b"], 6), "site": list("xyz") * 4}
    return procrustes_anova("shape ~ kind + site", moths(), data, 99)


def points_of(line):
    return np.column_stack(line.get_data())


def test_effects_are_those_of_the_table(model):
    drawn = plot.effects(model, flat())
    np.testing.assert_allclose(drawn.observed.get_xdata(), [model["kind"].f, model["site"].f])
    ends = [bar.get_x() + bar.get_width() for bar in drawn.chance]
    np.testing.assert_allclose(ends, np.quantile(model.ratios.permuted, 0.95, axis=0))
    assert "P = 0.01" in drawn.labels[0].get_text()


def test_a_model_without_terms_has_no_effects_to_draw():
    with pytest.raises(ShapeError, match="no term"):
        plot.effects(procrustes_anova("shape ~ 1", moths(), n_permutations=1), flat())


def test_pairwise_distances_stand_below_the_diagonal(model):
    found = model.pairwise("site")
    drawn = plot.pairwise(found, flat())
    shown = np.ma.getdata(drawn.image.get_array())
    below = np.tri(3, k=-1, dtype=bool)
    np.testing.assert_allclose(shown[below], found.distances[below])
    assert len(drawn.labels) == 3
    assert f"{found.distances[1, 0]:.3g}" in drawn.labels[0].get_text()


@pytest.mark.parametrize("dim", [2, 3])
def test_allometry_draws_scores_the_line_and_both_ends(dim):
    found = allometry(moths(dim=dim), n_permutations=9)
    ax = flat()
    drawn = plot.allometry(found, ax, groups=["a"] * 6 + ["b"] * 6, links=[(0, 1), (2, 3)])
    assert len(drawn.scores) == 2
    np.testing.assert_allclose(
        points_of(drawn.scores[1]), np.column_stack([found.sizes, found.scores])[6:]
    )
    ends = points_of(drawn.line)[[0, -1]]
    np.testing.assert_allclose(ends[:, 0], [found.sizes.min(), found.sizes.max()])
    np.testing.assert_allclose(ends[:, 1], found.predicted_scores(ends[:, 0]), **EXACT)
    view = view_of(found.anova.tangents.mean(axis=0))
    np.testing.assert_allclose(
        points_of(drawn.smallest), view(found.predict(found.sizes.min())[0]), **EXACT
    )
    np.testing.assert_allclose(
        points_of(drawn.largest), view(found.predict(found.sizes.max())[0]), **EXACT
    )


def test_landmarks_that_differ_are_full_and_named():
    found = landmark_differences(moths(), np.repeat(["a", "b"], 6), 199)
    drawn = plot.landmark_differences(found, flat(), magnify=3.0, links=[(0, 1)])
    sure = found.significant()
    assert sure[4]
    np.testing.assert_allclose(points_of(drawn.mean), found.mean[sure])
    np.testing.assert_allclose(drawn.arrows.U, 3 * found.difference[:, 0])
    assert [label.get_text() for label in drawn.labels] == [
        label for label, own in zip(found.landmarks, sure, strict=True) if own
    ]


@pytest.mark.parametrize("dim", [2, 3])
def test_asymmetry_is_drawn_as_arrows_and_circles(dim):
    found = symmetry(moths(dim=dim), [(2, 3), (4, 5), (6, 7)], n_permutations=9)
    drawn = plot.symmetry(found, flat(), magnify=2.0)
    view = view_of(found.mean)
    np.testing.assert_allclose(drawn.arrows.U, 2 * view(found.directional)[:, 0], **EXACT)
    radii = np.sqrt((found.fluctuating**2).sum(axis=2).mean(axis=0))
    np.testing.assert_allclose(drawn.circles.get_widths(), 4 * radii, **EXACT)
    np.testing.assert_allclose(points_of(drawn.mean), view(found.mean), **EXACT)


def test_measurement_error_is_drawn_as_circles():
    found = repeatability(moths(), np.repeat(np.arange(6), 2))
    drawn = plot.repeatability(found, flat(), magnify=5.0)
    np.testing.assert_allclose(drawn.circles.get_widths(), 10 * found.error, **EXACT)
    np.testing.assert_allclose(drawn.circles.get_array(), found.per_landmark)
    assert len(drawn.labels) == 8


@pytest.mark.parametrize("dim", [2, 3])
def test_sliding_draws_before_and_after(dim):
    rng = np.random.default_rng(1)
    t = np.linspace(0, np.pi, 9) + 0.1 * rng.uniform(-1, 1, (5, 9))
    arcs = np.stack([np.cos(t), np.sin(t), 0.3 * np.sin(2 * t)][:dim], axis=2)
    spots = np.tile(rng.normal(size=(3, dim)), (5, 1, 1))
    shapes = Shapes(np.concatenate([arcs, spots], axis=1))
    holes = shapes.points.copy()
    holes[2, 4] = np.nan
    shapes = shapes.with_points(holes)
    slid = defgpa.slide(shapes, [range(9)], max_rounds=2)
    figure = Figure()
    ax = figure.add_subplot(projection="3d") if dim == 3 else figure.subplots()
    drawn = plot.sliding(shapes, slid, "shape_3", ax)
    data = drawn.after._verts3d if dim == 3 else drawn.after.get_data()
    own = [1, 2, 3, 5, 6, 7]
    np.testing.assert_allclose(np.column_stack(data), slid.points[2, own])
    data = drawn.before._verts3d if dim == 3 else drawn.before.get_data()
    np.testing.assert_allclose(np.column_stack(data), shapes.points[2, own])
    with pytest.raises(ShapeError, match="not the same"):
        plot.sliding(shapes.take([0, 1]), slid, 0)


def test_arrows_are_magnified_to_be_seen_by_a_round_number():
    mean = np.array([[0, 0], [10, 0], [10, 1.0]])
    assert magnifier(np.array([0.01, 0.02]), mean, None) == 50.0  # 75 would be 0.15 of the extent
    assert magnifier(np.array([0.01]), mean, 7.0) == 7.0
    assert magnifier(np.zeros(3), mean, None) == 1.0


def test_a_solid_shape_is_seen_along_its_shortest_axis():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.1]
    seen = view_of(mean)(mean)
    assert np.abs(np.corrcoef(seen[:, 0], mean[:, 1])[0, 1]) > 0.99
    assert seen[:, 1].std() > 0.5
