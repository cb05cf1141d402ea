"""Pictures of statistics: the artists hold the numbers they claim to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import defgpa
from defgpa import (
    DefgpaError,
    DefgpaWarning,
    EuclideanGPA,
    ShapeError,
    ShapePCA,
    Shapes,
    plot,
    statistics,
)
from defgpa.exports import build_component_meshes
from defgpa.meshes import Mesh
from defgpa.palette import look_of
from defgpa.plot._style import add_legend, label_points
from defgpa.plot._views import choose_magnification, choose_view
from defgpa.statistics import (
    allometry,
    landmark_differences,
    outliers,
    procrustes_anova,
    repeatability,
    symmetry,
)
from support import EXACT, smooth_family

MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])


def axes(dim=2):
    figure = Figure()
    return figure.add_subplot(projection="3d") if dim == 3 else figure.subplots()


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


def get_points(line):
    return np.column_stack(line.get_data())


def test_effects_are_those_of_the_table(model):
    drawn = plot.effects(model, axes())
    np.testing.assert_allclose(drawn.observed.get_xdata(), [model["kind"].f, model["site"].f])
    ends = [bar.get_x() + bar.get_width() for bar in drawn.chance]
    np.testing.assert_allclose(ends, np.quantile(model.ratios.permuted, 0.95, axis=0))
    assert "P = 0.01" in drawn.labels[0].get_text()
    # matplotlib's own would be formulas, which the commands switch off: names are none
    assert isinstance(drawn.observed.axes.xaxis.get_minor_formatter(), NullFormatter)


def test_the_label_of_a_small_effect_stays_inside_the_axes():
    """With many landmarks the permuted F are all about 1, and none is much smaller."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(40, 2)) + 0.02 * rng.normal(size=(40, 40, 2))
    anova = procrustes_anova("shape ~ z", x, {"z": rng.normal(size=40)}, 99)
    drawn = plot.effects(anova, Figure(figsize=(4, 3), layout="constrained").subplots())
    drawn.observed.axes.figure.draw_without_rendering()
    edge = drawn.observed.axes.get_window_extent().x0
    assert drawn.labels[0].get_window_extent().x0 > edge


def test_a_model_without_terms_has_no_effects_to_draw():
    with pytest.raises(ShapeError, match="no term"):
        plot.effects(procrustes_anova("shape ~ 1", moths(), n_permutations=1), axes())


def test_pairwise_distances_stand_below_the_diagonal(model):
    actual = model.pairwise("site")
    drawn = plot.pairwise(actual, axes())
    shown = np.ma.getdata(drawn.image.get_array())
    below = np.tri(3, k=-1, dtype=bool)
    np.testing.assert_allclose(shown[below], actual.distances[below])
    assert len(drawn.labels) == 3
    assert f"{actual.distances[1, 0]:.3g}" in drawn.labels[0].get_text()


def test_pairwise_distances_of_two_groups_fill_their_figure():
    groups = {"kind": ["a"] * 6 + ["b"] * 6}
    model = procrustes_anova("shape ~ kind", moths(), groups, n_permutations=9)
    plot.pairwise(model.pairwise("kind"))
    figure = plt.gcf()
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.6
    assert figure.get_figheight() < 2


def test_groups_with_one_beginning_and_end_have_names_that_differ_beside_distances():
    names = [f"Quercus {kind} subsp. of Fontainebleau" for kind in ("robur", "petraea")]
    model = procrustes_anova("shape ~ k", moths(), {"k": np.repeat(names, 6)}, n_permutations=9)
    ax = axes()
    plot.pairwise(model.pairwise("k"), ax)
    ticks = [tick.get_text() for tick in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    assert sorted(" ".join(tick.split()) for tick in ticks) == sorted(names)


def test_an_effect_below_the_axis_has_its_figure_at_the_edge():
    x = moths()
    twins = np.concatenate([x, x + 1e-4 * np.random.default_rng(0).normal(size=x.shape)])
    model = procrustes_anova("shape ~ k", twins, {"k": ["a"] * 12 + ["b"] * 12}, n_permutations=99)
    ax = axes()
    (label,) = plot.effects(model, ax).labels
    assert label.get_text().startswith("F = ")
    assert label.xy[0] >= ax.get_xlim()[0]


def test_sizes_in_a_narrow_range_fill_the_axis():
    x = moths()
    x = x / np.linalg.norm(x - x.mean(axis=1, keepdims=True), axis=(1, 2), keepdims=True)
    x = x * (1 + 1e-3 * np.linspace(0, 1, len(x)))[:, None, None]
    drawn = plot.allometry(allometry(x, n_permutations=9), axes())
    sizes = drawn.scores[0].get_xdata()
    low, high = drawn.line.axes.get_xlim()
    assert np.ptp(sizes) > 0.8 * (high - low)


def test_the_axis_of_allometry_names_the_size_that_was_used():
    for sizes, label in ((None, "centroid size (mm)"), (np.arange(1.0, 13.0), "size (mm)")):
        drawn = plot.allometry(allometry(moths(), sizes, 9), axes(), unit="mm")
        assert drawn.line.axes.get_xlabel() == label


@pytest.mark.parametrize("dim", [2, 3])
def test_allometry_draws_scores_the_line_and_both_ends(dim):
    actual = allometry(moths(dim=dim), n_permutations=9)
    drawn = plot.allometry(
        actual, axes(), groups=["a"] * 6 + ["b"] * 6, links=[(0, 1), (2, 3)], magnify=1.0
    )
    assert len(drawn.scores) == 2
    np.testing.assert_allclose(
        get_points(drawn.scores[1]), np.column_stack([actual.sizes, actual.scores])[6:]
    )
    ends = get_points(drawn.line)[[0, -1]]
    np.testing.assert_allclose(ends[:, 0], [actual.sizes.min(), actual.sizes.max()])
    np.testing.assert_allclose(ends[:, 1], actual.predict_scores(ends[:, 0]), **EXACT)
    mean = actual.anova.tangents.mean(axis=0)
    expected = actual.predict([actual.sizes.min(), actual.sizes.max()])
    view = choose_view(mean, expected - mean)
    for end, shape, word in zip(drawn.ends, expected, ("smallest", "largest"), strict=True):
        links = end.collections[-1].get_segments()
        np.testing.assert_allclose(links, view(shape)[[[0, 1], [2, 3]]], **EXACT)
        assert end.get_title() == f"expected of the {word}"
    magnified = plot.allometry(actual, axes(), magnify=3.0).ends[0].get_title()
    assert magnified == "expected of the smallest, change\xa0×\xa03"


def test_landmarks_that_differ_are_full_and_named():
    actual = landmark_differences(moths(), np.repeat(["a", "b"], 6), 199)
    drawn = plot.landmark_differences(actual, axes(), magnify=3.0, links=[(0, 1)])
    sure = actual.significant()
    assert sure[4]
    np.testing.assert_allclose(get_points(drawn.mean), actual.mean[sure])
    np.testing.assert_allclose(drawn.arrows.U, 3 * actual.difference[:, 0])
    assert [label.get_text() for label in drawn.labels] == [
        label for label, is_sure in zip(actual.landmarks, sure, strict=True) if is_sure
    ]


@pytest.mark.parametrize("dim", [2, 3])
def test_asymmetry_is_drawn_as_arrows_and_circles(dim):
    actual = symmetry(moths(dim=dim), [(2, 3), (4, 5), (6, 7)], n_permutations=9)
    drawn = plot.symmetry(actual, axes(), magnify=2.0)
    view = choose_view(actual.mean, actual.directional)
    np.testing.assert_allclose(drawn.arrows.U, 2 * view(actual.directional)[:, 0], **EXACT)
    radii = np.sqrt((actual.fluctuating**2).sum(axis=2).mean(axis=0))
    np.testing.assert_allclose(drawn.circles.get_widths(), 4 * radii, **EXACT)
    np.testing.assert_allclose(get_points(drawn.mean), view(actual.mean), **EXACT)


def test_measurement_error_is_drawn_as_circles():
    actual = repeatability(moths(), np.repeat(np.arange(6), 2))
    drawn = plot.repeatability(actual, axes(), magnify=5.0)
    np.testing.assert_allclose(drawn.circles.get_widths(), 10 * actual.error, **EXACT)
    np.testing.assert_allclose(drawn.circles.get_array(), actual.per_landmark)
    assert len(drawn.labels) == 8


def test_of_many_landmarks_those_with_the_largest_errors_are_labelled():
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(6), 2)
    specimens = rng.normal(size=(90, 2)) + 0.02 * rng.normal(size=(6, 90, 2))
    noise = 0.005 * rng.normal(size=(12, 90, 2))
    noise[:, 17] *= 10
    actual = repeatability(specimens[who] + noise, who)
    texts = [label.get_text() for label in plot.repeatability(actual, axes()).labels]
    worst = np.argsort(-actual.error)[:15]
    assert "18" in texts
    assert set(texts) <= {actual.landmarks[j] for j in worst}


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
    drawn = plot.sliding(shapes, slid, "shape_3", axes(dim))
    data = drawn.after._verts3d if dim == 3 else drawn.after.get_data()
    slid_landmarks = [1, 2, 3, 5, 6, 7]
    np.testing.assert_allclose(np.column_stack(data), slid.points[2, slid_landmarks])
    data = drawn.before._verts3d if dim == 3 else drawn.before.get_data()
    np.testing.assert_allclose(np.column_stack(data), shapes.points[2, slid_landmarks])
    with pytest.raises(ShapeError, match="not the same"):
        plot.sliding(shapes.take([0, 1]), slid, 0)


def test_arrows_are_magnified_by_a_round_number():
    mean = np.array([[0, 0], [10, 0], [10, 1.0]])
    # 23.7 would be 0.15 of the geometric mean of width and height
    assert choose_magnification(np.array([0.01, 0.02]), mean, None) == 20.0
    assert choose_magnification(np.array([0.01]), mean, 7.0) == 7.0
    assert choose_magnification(np.zeros(3), mean, None) == 1.0


def test_a_solid_shape_is_seen_along_its_shortest_axis():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.1]
    visible = choose_view(mean)(mean)
    assert np.abs(np.corrcoef(visible[:, 0], mean[:, 1])[0, 1]) > 0.99
    assert visible[:, 1].std() > 0.5


@pytest.mark.parametrize("change", [0.0, 1.0])
def test_a_single_landmark_in_space_is_seen_somehow(change):
    view = choose_view(np.ones((1, 3)), np.full((1, 3), change))
    np.testing.assert_allclose(view.axes.T @ view.axes, np.eye(3), atol=1e-12)


def aligned(points):
    return EuclideanGPA(scaling=True).fit(points).alignment_


@pytest.fixture(scope="module", params=[2, 3], ids=["2-D", "3-D"])
def alignment(request):
    return aligned(smooth_family(seed=60, n=12, m=20, d=request.param))


def test_every_specimen_is_a_dot_of_its_group(alignment):
    pca = ShapePCA().fit(alignment)
    groups = ["b", "a", "b"] * 4
    drawn = plot.components(pca, axes(), groups=groups, which=(2, 3))
    assert [dots.get_label() for dots in drawn.dots] == ["a", "b"]
    mine = np.array([group == "a" for group in groups])
    np.testing.assert_array_equal(np.transpose(drawn.dots[0].get_data()), pca.scores_[mine, 1:3])
    assert len(drawn.outlines) == 2
    share = 100 * pca.explained_variance_ratio_[1]
    assert drawn.dots[0].axes.get_xlabel() == f"PC2 ({share:.1f} % of the variance)"


def test_hulls_hold_their_group_and_ellipses_most_of_it(alignment):
    pca = ShapePCA().fit(alignment)
    for outline in ("hull", "ellipse"):
        drawn = plot.components(pca, axes(), groups=["a"] * 12, outline=outline)
        corners = drawn.outlines[0].get_xy()
        assert len(corners) < 14 or outline == "ellipse"
        middle = pca.scores_[:, :2].mean(axis=0)
        if outline == "ellipse":
            white = np.linalg.cholesky(np.linalg.inv(np.cov(pca.scores_[:, :2].T)))
            lengths = np.linalg.norm((corners - middle) @ white, axis=1)
            np.testing.assert_allclose(lengths**2, 5.991, rtol=1e-6)
        else:
            assert {tuple(corner) for corner in corners} <= {tuple(s) for s in pca.scores_[:, :2]}


def test_the_ends_are_the_observed_ones(alignment):
    pca = ShapePCA().fit(alignment)
    drawn = plot.components(pca, axes(), magnify=1.0)
    low = pca.scores_[:, 0].min() / np.sqrt(pca.explained_variance_[0])
    assert drawn.ends[0].get_title() == f"PC1 {low:+.1f} SD"
    high = pca.scores_[:, 1].max() / np.sqrt(pca.explained_variance_[1])
    assert drawn.ends[3].get_title() == f"PC2 {high:+.1f} SD"


def test_the_landmarks_of_an_end_are_drawn_where_the_component_puts_them():
    pca = ShapePCA().fit(aligned(smooth_family(seed=61, n=12, m=20)))
    end = plot.components(pca, axes(), magnify=1.0, links=[(0, 1), (1, 2)]).ends[1]
    expected = pca.mean_ + pca.scores_[:, 0].max() * pca.components_[0]
    landmarks = next(line for line in end.lines if line.get_label() == "landmarks")
    np.testing.assert_allclose(np.transpose(landmarks.get_data()), expected, atol=1e-8)
    links = end.collections[-1].get_segments()
    np.testing.assert_allclose(links[1], expected[[1, 2]], **EXACT)


def test_a_new_figure_has_room_for_the_ends(alignment):
    from matplotlib import pyplot

    drawn = plot.components(ShapePCA().fit(alignment))
    figure = drawn.ends[0].figure
    for end in drawn.ends:
        place = end.get_position(original=True)
        box = end.get_axes_locator()(end, None) if end.get_axes_locator() else place
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= 1
        assert box.y1 <= 1
    pyplot.close(figure)


def test_groups_and_outlines_that_cannot_be_are_refused(alignment):
    pca = ShapePCA().fit(alignment)
    with pytest.raises(ShapeError, match="12 in all; got 2"):
        plot.components(pca, axes(), groups=["a", "b"])
    with pytest.raises(ValueError, match=r"'hull' or 'ellipse'.*'box'"):
        plot.components(pca, axes(), outline="box")


def test_groups_of_one_or_on_a_line_have_no_area():
    pca = ShapePCA().fit(aligned(smooth_family(seed=62, n=5, m=20)))
    drawn = plot.components(pca, axes(), groups=["a", "a", "a", "a", "b"])
    assert len(drawn.outlines) == 1


def test_bars_are_the_shares_and_the_line_their_sum(alignment):
    pca = ShapePCA().fit(alignment)
    drawn = plot.scree(pca, axes(), max_components=4)
    shares = 100 * pca.explained_variance_ratio_[:4]
    np.testing.assert_allclose([bar.get_height() for bar in drawn.bars], shares)
    np.testing.assert_allclose(drawn.total.get_ydata(), np.cumsum(shares))


def test_the_farthest_come_first_and_odd_ones_are_named():
    points = smooth_family(seed=63, n=15, m=20, bend=0.05)
    points[6, [0, 1]] = points[6, [1, 0]]
    with pytest.warns(DefgpaWarning, match="exchanged"):
        actual = outliers(aligned(points))
    drawn = plot.outliers(actual, axes())
    assert [text.get_text() for text in drawn.names] == ["shape_7"]
    np.testing.assert_array_equal(drawn.odd.get_ydata(), [actual.distances[6]])
    np.testing.assert_array_equal(drawn.dots[0].get_ydata(), np.sort(actual.distances)[::-1])
    np.testing.assert_array_equal(drawn.limit.get_ydata(), actual.limits[actual.order])


def test_outliers_are_ringed_in_the_colour_and_marker_of_their_group():
    points = smooth_family(seed=63, n=15, m=20, bend=0.05)
    groups = ["b"] * 7 + ["a"] * 8
    drawn = plot.outliers(outliers(aligned(points), groups=groups), axes())
    scatter = plot.components(aligned(points), axes(), groups=groups)
    looks = [
        [(d.get_color(), d.get_marker()) for d in artists.dots] for artists in (drawn, scatter)
    ]
    assert looks[0] == looks[1]
    assert [len(dots.get_xdata()) for dots in drawn.dots] in ([7, 8], [8, 7])


def test_the_limit_is_in_the_picture_where_no_specimen_reaches_it():
    actual = outliers(aligned(smooth_family(seed=64, n=12, m=20, bend=0.05)))
    assert not actual.flagged.any()
    drawn = plot.outliers(actual, axes())
    assert actual.limits.max() < drawn.limit.axes.get_ylim()[1]


def test_ellipses_are_so_many_standard_deviations_from_the_mean(alignment):
    dim = alignment.shapes.n_dims
    drawn = plot.landmark_ellipses(alignment, axes(dim), deviations=3.0)
    cloud = alignment.superimposed[:, 4]
    precision = np.linalg.inv(np.cov(cloud.T))
    per = dim * (dim - 1) // 2
    segments = drawn.ellipses._segments3d if dim == 3 else drawn.ellipses.get_segments()
    assert len(segments) == 20 * per
    ring = np.asarray(segments[4 * per]) - cloud.mean(axis=0)
    lengths = np.einsum("pa,ab,pb->p", ring, precision, ring)
    np.testing.assert_allclose(lengths, 9.0, rtol=1e-6)


def test_a_landmark_visible_in_one_shape_has_no_spread():
    points = smooth_family(seed=64, n=6, m=20)
    points[1:, 3] = np.nan
    with pytest.warns(Warning, match="one shape only"):
        a = aligned(points)
    drawn = plot.landmark_ellipses(a, axes())
    assert np.ptp(drawn.ellipses.get_segments()[3], axis=0).max() < 1e-12


def test_heat_is_how_far_the_corners_of_a_face_moved():
    a = aligned(smooth_family(seed=65, n=6, m=12, d=3))
    faces = [[0, 1, 2], [3, 4, 5]]
    start, end = (
        Mesh(mesh.vertices, faces)
        for mesh in build_component_meshes(a, components=[1], deviations=(0.0, 2.0)).values()
    )
    drawn = plot.displacement_heat(start, end, axes(3))
    moved = np.linalg.norm(end.vertices - start.vertices, axis=1)
    np.testing.assert_allclose(drawn.surface.get_array(), [moved[:3].mean(), moved[3:6].mean()])
    with pytest.raises(ShapeError, match="same vertices"):
        plot.displacement_heat(start, Mesh(end.vertices[:5], [[0, 1, 2]]), axes(3))


def test_groups_keep_their_look_whichever_specimen_comes_first(alignment):
    pca = ShapePCA().fit(alignment)
    orders = (["b", "a", "c"] * 4, ["c", "b", "a"] * 4)
    looks = [
        {dots.get_label(): (dots.get_color(), dots.get_marker()) for dots in drawn.dots}
        for drawn in (plot.components(pca, axes(), groups=groups) for groups in orders)
    ]
    assert looks[0] == looks[1]
    assert looks[0]["b"] == look_of(1)
    actual = allometry(moths(), n_permutations=9)
    scores = plot.allometry(actual, axes(), groups=["c", "b", "a"] * 4).scores
    assert {s.get_label(): (s.get_color(), s.get_marker()) for s in scores} == looks[0]


def test_five_thousand_specimens_are_all_drawn():
    points = np.random.default_rng(0).normal(size=(5_000, 6, 2)) * 0.05 + MOTH[:6]
    pca = ShapePCA().fit(points)
    drawn = plot.components(pca, axes(), groups=["a", "b"] * 2_500)
    assert sum(len(dots.get_xdata()) for dots in drawn.dots) == 5_000


def test_specimens_that_are_largely_estimated_are_hollow():
    points = smooth_family(seed=60, n=12, m=20)
    points[3, :8] = np.nan
    points[5, 0] = np.nan
    ax = axes()
    drawn = plot.components(aligned(points), ax)
    hollow = next(line for line in ax.lines if line.get_label() == "_estimated")
    assert len(hollow.get_xdata()) == 1
    assert len(drawn.dots[0].get_xdata()) == 11
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["hollow: 33 % or more estimated"]


def test_components_of_an_alignment_are_computed_with_its_groups(alignment):
    grouped = replace(alignment, shapes=alignment.shapes.with_metadata(groups=("a", "b") * 6))
    assert len(plot.components(grouped, axes()).dots) == 2


@pytest.mark.parametrize("which", [(1, 99), (0, 1), (1,), (1.5, 2)])
def test_components_that_are_not_there_are_refused(alignment, which):
    with pytest.raises(ShapeError, match="two components from 1 to"):
        plot.components(ShapePCA().fit(alignment), axes(), which=which)


def test_two_shapes_have_too_few_components_to_draw():
    pca = ShapePCA().fit(smooth_family(seed=60, n=2, m=20))
    with pytest.raises(ShapeError, match="at least 3 shapes"):
        plot.components(pca, axes())


def test_components_before_the_fit_are_refused_with_the_remedy():
    with pytest.raises(DefgpaError, match="fit"):
        plot.components(ShapePCA(), axes())


def test_elongated_shapes_are_drawn_whole_at_the_ends():
    rng = np.random.default_rng(3)
    base = np.column_stack([np.linspace(0, 16, 20), np.sin(np.linspace(0, 6, 20))])
    pca = ShapePCA().fit(base + 0.05 * rng.normal(size=(12, 20, 2)))
    figure = Figure(layout="constrained")
    drawn = plot.components(pca, figure.subplots())
    figure.draw_without_rendering()
    for end in drawn.ends:
        landmarks = get_points(next(line for line in end.lines if line.get_label() == "landmarks"))
        (left, right), (bottom, top) = end.get_xlim(), end.get_ylim()
        assert (landmarks >= [left, bottom]).all()
        assert (landmarks <= [right, top]).all()
        place = end.get_position()
        assert place.x0 >= 0
        assert place.y0 >= 0
        assert place.x1 <= 1
        assert place.y1 <= 1


def test_changes_of_solid_shapes_are_seen_from_where_they_show():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=(40, 3)) * [5.0, 2.0, 1.9]
    changes = np.zeros((1, 40, 3))
    changes[..., 2] = 0.1 * mean[:, 0]
    view = choose_view(mean, changes)
    assert np.linalg.norm(view(changes)) > 0.99 * np.linalg.norm(changes)
    assert np.linalg.det(view.axes) > 0


def test_labels_do_not_lie_over_each_other():
    ax = axes()
    points = np.array([[0.5, 0.5], [0.51, 0.5], [0.52, 0.5], [0.5, 0.51], [0.1, 0.1]])
    ax.set(xlim=(0, 1), ylim=(0, 1))
    labels = label_points(ax, points, [f"landmark {k}" for k in range(5)])
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) >= 3
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_a_legend_is_no_wider_than_its_figure():
    figure = Figure(figsize=(5, 4), layout="constrained")
    actual = symmetry(moths(), [(2, 3), (4, 5), (6, 7)], n_permutations=9)
    ax = figure.subplots()
    plot.symmetry(actual, ax)
    figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_links_may_be_an_iterator(alignment):
    pca = ShapePCA().fit(alignment)
    ends = plot.components(pca, axes(), links=iter([(0, 1)])).ends
    assert len({len(end.collections) for end in ends}) == 1


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_between_group_scores_are_those_of_specimens_left_out(labels):
    x = moths()
    classification = statistics.classify(x, list(labels) * (12 // len(labels)), 2, n_permutations=2)
    ax = axes()
    drawn = plot.between_groups(classification, ax).specimens
    for group, dots in enumerate(drawn):
        scores = classification.between_scores_left_out[classification.true == group]
        np.testing.assert_allclose(dots.get_ydata(), scores[:, 1 if len(labels) > 2 else 0])
    assert "left out" in ax.get_ylabel()


def test_effect_sizes_are_drawn_with_their_chance():
    tests = [statistics.integration(moths(12 + s), "aaaabbbb", 19) for s in (1, 2)]
    sizes = statistics.compare_effect_sizes(tests, ["wild", "reared"])
    ax = axes()
    drawn = plot.effect_sizes(sizes, ax)
    np.testing.assert_allclose(drawn.observed.get_xdata(), sizes.deviations)
    ends = np.array([line[:, 0] for line in drawn.spreads.get_segments()])
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * sizes.spreads)
    np.testing.assert_allclose(sizes.deviations / sizes.spreads, sizes.effect_sizes)
    assert ax.get_xlabel().startswith("r-PLS above chance")


def test_panels_of_allometry_are_as_wide_as_each_other_beside_a_wide_legend():
    groups = [f"a rather long name of group {k % 4}" for k in range(24)]
    result = statistics.group_allometry(moths(24), groups, n_permutations=2)
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    panels = plot.group_allometry(result, figure.subplots()).panels
    figure.draw_without_rendering()
    widths = [panel.get_position().width for panel in panels]
    assert min(widths) > 0.15
    assert max(widths) < 1.3 * min(widths)


LONG_GROUPS = [f"population number {k % 6}" for k in range(24)]


def test_allometry_keeps_its_width_beside_many_groups():
    result = statistics.allometry(moths(24), n_permutations=2)
    plot.allometry(result, groups=LONG_GROUPS)
    figure = plt.gcf()
    figure.draw_without_rendering()
    scatter, *ends = figure.axes
    assert scatter.get_position().width > 0.4
    for end in ends:
        assert end.title.get_window_extent().x1 <= figure.bbox.x1
    assert scatter.get_legend().get_title().get_text().startswith("R² = ")


def test_a_legend_has_as_many_columns_as_fit_beside_one_long_label():
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    for label in [*"abcdefg", "one label far longer than the names"]:
        ax.plot([0, 1], [0, 1], label=label)
    legend = add_legend(ax)
    figure.draw_without_rendering()
    assert legend.get_window_extent().height < 5 * 20 * figure.dpi / 72
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_distances_of_many_groups_stay_in_their_cells():
    groups = {"g": [f"group {k % 9}" for k in range(36)]}
    anova = statistics.procrustes_anova("shape ~ g", moths(36), groups, n_permutations=2)
    labels = plot.pairwise(anova.pairwise("g")).labels
    figure = plt.gcf()
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in labels]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert labels[0].axes.get_position().height > 0.6  # of the figure


def test_labels_of_points_do_not_cover_the_numbers_beside_the_axes():
    ax = Figure(figsize=(4, 3)).subplots()
    points = np.array([[0.0, 0.5], [0.02, 0.5], [1.0, 0.5]])
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for label in label_points(ax, points, ["a long name", "another name", "the last name"]):
        box = label.get_window_extent()
        assert ax.bbox.x0 <= box.x0
        assert box.x1 <= ax.bbox.x1


@pytest.mark.parametrize("spread", [0.05, 0.5, 2.0], ids=["narrow", "wide", "decades"])
def test_sizes_beside_allometry_do_not_overlap(spread):
    scale = np.exp(spread * np.linspace(-2.0, 2.0, 12))[:, None, None]
    plot.allometry(statistics.allometry(1000 * scale * moths(12), n_permutations=2))
    figure = plt.gcf()
    figure.draw_without_rendering()
    labels = [label for label in figure.axes[0].get_xticklabels() if label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) >= 2
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
