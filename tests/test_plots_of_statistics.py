"""Plots of shape space: the artists hold the data they claim to show."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from defgpa import DefgpaWarning, EuclideanGPA, ShapeError, ShapePCA, plot
from defgpa.exports import component_meshes
from defgpa.meshes import Mesh
from defgpa.statistics import outliers
from support import EXACT, smooth_family


def aligned(points):
    return EuclideanGPA(scaling=True).fit(points).alignment_


@pytest.fixture(scope="module", params=[2, 3], ids=["2-D", "3-D"])
def alignment(request):
    return aligned(smooth_family(seed=60, n=12, m=20, d=request.param))


def axes(dim=2):
    figure = Figure()
    return figure.add_subplot(projection="3d") if dim == 3 else figure.subplots()


def test_every_specimen_is_a_dot_of_its_group(alignment):
    pca = ShapePCA().fit(alignment)
    groups = ["b", "a", "b"] * 4
    drawn = plot.components(pca, axes(), groups=groups, which=(2, 3))
    assert [dots.get_label() for dots in drawn.dots] == ["b", "a"]
    mine = np.array([group == "a" for group in groups])
    np.testing.assert_array_equal(np.transpose(drawn.dots[1].get_data()), pca.scores_[mine, 1:3])
    assert len(drawn.outlines) == 2
    share = 100 * pca.explained_variance_ratio_[1]
    assert drawn.dots[0].axes.get_xlabel() == f"PC2 ({share:.1f} %)"


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
    drawn = plot.components(pca, axes())
    low = pca.scores_[:, 0].min() / np.sqrt(pca.explained_variance_[0])
    assert drawn.ends[0].get_title() == f"PC1 {low:+.1f} SD"
    high = pca.scores_[:, 1].max() / np.sqrt(pca.explained_variance_[1])
    assert drawn.ends[3].get_title() == f"PC2 {high:+.1f} SD"


def test_the_landmarks_of_an_end_are_drawn_where_the_component_puts_them():
    pca = ShapePCA().fit(aligned(smooth_family(seed=61, n=12, m=20)))
    end = plot.components(pca, axes(), links=[(0, 1), (1, 2)]).ends[1]
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
    drawn = plot.scree(pca, axes(), most=4)
    shares = 100 * pca.explained_variance_ratio_[:4]
    np.testing.assert_allclose([bar.get_height() for bar in drawn.bars], shares)
    np.testing.assert_allclose(drawn.total.get_ydata(), np.cumsum(shares))


def test_the_farthest_come_first_and_odd_ones_are_named():
    points = smooth_family(seed=63, n=15, m=20, bend=0.05)
    points[6, [0, 1]] = points[6, [1, 0]]
    with pytest.warns(DefgpaWarning, match="exchanged"):
        found = outliers(aligned(points))
    drawn = plot.ranked_distances(found, axes())
    assert [text.get_text() for text in drawn.names] == ["shape_7"]
    np.testing.assert_array_equal(drawn.odd.get_ydata(), [found.distances[6]])
    np.testing.assert_array_equal(
        np.concatenate([drawn.odd.get_ydata(), drawn.usual.get_ydata()]),
        np.sort(found.distances)[::-1],
    )
    np.testing.assert_array_equal(drawn.fence.get_ydata(), found.fences[found.ranked])


def test_ellipses_are_so_many_standard_deviations_from_the_mean(alignment):
    dim = alignment.shapes.dim
    drawn = plot.landmark_ellipses(alignment, axes(dim), deviations=3.0)
    cloud = alignment.superimposed[:, 4]
    precision = np.linalg.inv(np.cov(cloud.T))
    per = dim * (dim - 1) // 2
    segments = drawn.ellipses._segments3d if dim == 3 else drawn.ellipses.get_segments()
    assert len(segments) == 20 * per
    ring = np.asarray(segments[4 * per]) - cloud.mean(axis=0)
    lengths = np.einsum("pa,ab,pb->p", ring, precision, ring)
    np.testing.assert_allclose(lengths, 9.0, rtol=1e-6)


def test_a_landmark_seen_once_has_no_spread():
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
        for mesh in component_meshes(a, components=[1], deviations=(0.0, 2.0)).values()
    )
    drawn = plot.displacement_heat(start, end, axes(3))
    moved = np.linalg.norm(end.vertices - start.vertices, axis=1)
    np.testing.assert_allclose(drawn.surface.get_array(), [moved[:3].mean(), moved[3:6].mean()])
    with pytest.raises(ShapeError, match="same vertices"):
        plot.displacement_heat(start, Mesh(end.vertices[:5], [[0, 1, 2]]), axes(3))
