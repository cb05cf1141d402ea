"""Plots draw what they say: the artists hold the numbers of the alignment."""

import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial.distance import cdist

import defgpa
from defgpa import ShapeError, Shapes, plot
from defgpa.datasets import load_wings
from defgpa.images import Frame, Picture, intensity_deviation
from defgpa.plot import _style
from support import EXACT, make_smoothing_path, smooth_family, triangulated_grid


def flat():
    """2-D axes that belong to no window."""
    return Figure(layout="constrained").subplots()


def solid():
    """3-D axes that belong to no window."""
    return Figure(layout="constrained").add_subplot(projection="3d")


def many_landmarks(**family):
    """Aligned rigidly, which is soon done."""
    return defgpa.EuclideanGPA().fit(Shapes(smooth_family(**family))).alignment_


def aligned_family(**family):
    shapes = Shapes(smooth_family(**family))
    return defgpa.DefGPA(defgpa.ThinPlateSpline(3)).fit(shapes).alignment_


@pytest.fixture(scope="module")
def plane():
    return aligned_family(seed=2, m=40, d=2, missing=0.1)


@pytest.fixture(scope="module")
def space():
    return aligned_family(seed=3, m=50, d=3, missing=0.1)


def drawn_points(line):
    return np.column_stack(getattr(line, "_verts3d", None) or line.get_data())


def limits(ax):
    return np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])


def seen(points):
    return points.reshape(-1, points.shape[-1])[~np.isnan(points[..., 0]).ravel()]


# The reference with shapes over it


def test_the_warped_shapes_lie_over_the_reference(plane):
    ax = flat()
    artists = plot.overlay(plane, ax)
    np.testing.assert_array_equal(drawn_points(artists.reference), plane.reference)
    np.testing.assert_array_equal(drawn_points(artists.shapes), seen(plane.aligned))
    assert artists.reference.get_zorder() >= artists.shapes.get_zorder()
    assert ax.lines.index(artists.reference) > ax.lines.index(artists.shapes)


def test_predictions_are_shown_in_the_place_of_warped_shapes(plane):
    predicted = plane.aligned + 0.25
    artists = plot.predictions(SimpleNamespace(alignment=plane, predicted=predicted), flat())
    np.testing.assert_array_equal(drawn_points(artists.shapes), seen(predicted))
    assert artists.shapes.get_label() == "predicted shapes"


def test_in_space_the_error_is_the_size_and_the_colour_of_the_marker(space):
    artists = plot.overlay(space, solid(), unit="mm")
    errors = np.sqrt(np.nanmean(space.residuals**2, axis=0))
    colours, areas = np.asarray(artists.reference.get_array()), artists.reference.get_sizes()
    np.testing.assert_allclose(np.sort(colours), np.sort(errors), **EXACT)
    assert (np.diff(areas[np.argsort(colours)]) > 0).all()
    label = artists.colorbar.ax.get_ylabel()
    assert label.replace("\n", " ") == "RMS error of the warped shapes (mm)"
    places = np.column_stack(artists.reference._offsets3d)
    worst = np.argmax(colours)
    np.testing.assert_allclose(places[worst], space.reference[np.argmax(errors)], **EXACT)


def test_lines_between_landmarks_come_from_the_shapes():
    wings = load_wings()
    a = defgpa.DefGPA().fit(wings).alignment_
    artists = plot.overlay(a, flat())
    edges = np.array(wings.metadata["links"])
    np.testing.assert_allclose(artists.links.get_segments(), a.reference[edges], **EXACT)


def test_without_such_lines_none_are_drawn(plane):
    assert plot.overlay(plane, flat()).links is None


def test_a_wireframe_of_chains_is_drawn_link_by_link(plane):
    chained = plane.shapes.with_metadata(links=[(0, 1, 2), (5, 3)])
    drawn = plot.overlay(replace(plane, shapes=chained), flat()).links
    links = np.array([(0, 1), (1, 2), (5, 3)])
    np.testing.assert_allclose(drawn.get_segments(), plane.reference[links], **EXACT)


def test_scales_are_equal_in_the_plane_and_in_space(plane, space):
    ax = flat()
    plot.overlay(plane, ax)
    assert ax.get_aspect() == 1.0
    ax = solid()
    plot.overlay(space, ax)
    lengths = np.ptp(limits(ax), axis=1)
    box = ax._box_aspect
    np.testing.assert_allclose(box / box[0], lengths / lengths[0], **EXACT)


@pytest.mark.parametrize("sides", [(1, 1, 1), (6, 1, 1), (1, 1, 12), (4, 3, 0.2), (0.2, 3, 4)])
def test_elongated_and_flat_shapes_in_space_fill_their_figure(sides):
    points = np.random.default_rng(5).uniform(-0.5, 0.5, (4, 60, 3)) * sides
    points = points[0] + 0.02 * (points - points[0])
    alignment = defgpa.EuclideanGPA().fit(points).alignment_
    ax = Figure((6.4, 5.4), layout="constrained").add_subplot(projection="defgpa")
    plot.overlay(alignment, ax)
    figure = ax.get_figure()
    figure.draw_without_rendering()
    flat = np.column_stack(proj3d.proj_transform(*alignment.reference.T, ax.get_proj())[:2])
    places = ax.transData.transform(flat) / figure.bbox.size
    assert places.min() > 0
    assert places.max() < 1
    shares = {1: (0.39, 0.49), 6: (0.53, 0.37), 12: (0.54, 0.22), 4: (0.42, 0.48)}
    assert (np.ptp(places, axis=0) > shares[max(sides)]).all()  # beside the bar of colours


@pytest.mark.parametrize("unit", [None, "mm"])
def test_names_of_axes_in_space_stand_inside_the_figure(unit):
    turns, heights = np.pi * (1 + 5**0.5) * np.arange(200), np.linspace(-0.99, 0.99, 200)
    widths = np.sqrt(1 - heights**2)
    egg = np.column_stack([90 * widths * np.cos(turns), 60 * widths * np.sin(turns), 70 * heights])
    points = egg + np.random.default_rng(7).normal(size=(4, 200, 3))
    alignment = defgpa.EuclideanGPA().fit(points).alignment_
    plot.displacements(alignment, 0, unit=unit)
    (ax,) = plt.gcf().axes
    ax.figure.draw_without_rendering()
    labels = [axis.label for axis in (ax.xaxis, ax.yaxis, ax.zaxis) if axis.label.get_text()]
    assert len(labels) >= 2  # of three: none where a side is seen end-on
    for label in labels:
        assert ax.figure.bbox.contains(*label.get_window_extent().min)
        assert ax.figure.bbox.contains(*label.get_window_extent().max)


def test_axes_say_what_they_measure(plane):
    ax = flat()
    plot.overlay(plane, ax, unit="mm")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (mm)", "y (mm)")
    ax = flat()
    plot.overlay(plane, ax)
    assert ax.get_xlabel() == "x"


def test_what_was_observed_and_the_reference_differ_in_colour_and_in_marker(plane):
    artists = plot.overlay(plane, flat())
    looks = [(line.get_color(), line.get_marker()) for line in (artists.shapes, artists.reference)]
    assert looks == [(_style.OBSERVED, "o"), (_style.REFERENCE, "+")]


def test_shapes_in_space_on_flat_axes_are_refused_with_the_remedy(space):
    with pytest.raises(ShapeError, match="projection"):
        plot.overlay(space, flat())


def test_more_points_than_can_be_read_are_thinned_and_counted():
    a = many_landmarks(seed=2, n=6, m=20_000, d=2, missing=0.01)
    artists = plot.overlay(a, flat())
    total, drawn = len(seen(a.aligned)), len(drawn_points(artists.shapes))
    assert drawn <= 60_000 < total
    assert artists.shapes.get_label() == f"warped shapes ({drawn:,} of {total:,} drawn)"


# Grids and arrows


def test_a_grid_is_square_before_the_warp_and_covers_the_landmarks(plane):
    landmarks = seen(plane.shapes[0])
    artists = plot.deformation_grid(lambda points: points, landmarks, flat(), cells=10)
    lines = np.array(artists.lines.get_segments())
    level = np.abs(np.ptp(lines[..., 1], axis=1)) < 1e-9
    across, along = lines[~level], lines[level]
    steps = np.concatenate([np.diff(np.sort(across[:, 0, 0])), np.diff(np.sort(along[:, 0, 1]))])
    np.testing.assert_allclose(steps, steps[0], **EXACT)
    low, high = lines.reshape(-1, 2).min(axis=0), lines.reshape(-1, 2).max(axis=0)
    assert (low < landmarks.min(axis=0) + steps[0] / 2).all()
    assert (high > landmarks.max(axis=0) - steps[0] / 2).all()
    assert max(len(across), len(along)) == 11
    assert artists.foldovers is None


def test_the_lines_and_landmarks_go_through_the_warp(plane):
    warp, shape = plane.warps[1], plane.shapes[1]
    straight = plot.deformation_grid(lambda points: points, shape, flat()).lines.get_segments()
    artists = plot.deformation_grid(warp, shape, flat())
    for bent, line in zip(artists.lines.get_segments(), straight, strict=True):
        np.testing.assert_allclose(bent, warp(line), **EXACT)
    np.testing.assert_allclose(drawn_points(artists.landmarks), warp(seen(shape)), **EXACT)


def test_pieces_of_the_grid_where_the_warp_folds_are_marked():
    class Pleat:
        def __call__(self, points):
            return points * [1, 1] + np.column_stack([1.5 * np.sin(points[:, 0]), 0 * points[:, 0]])

        def foldovers(self, points):
            return 1 + 1.5 * np.cos(points[:, 0]) < 0

    corners = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 4.0], [6.0, 4.0]])
    ax = flat()
    folds = plot.deformation_grid(Pleat(), corners, ax).foldovers
    x = np.array(folds.get_segments())[..., 0]
    turn = np.arccos(-2 / 3)
    assert (x <= turn + 1.5 * np.sin(turn) + 1e-9).all()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["the warp folds"]


def test_in_space_the_grid_is_a_slice(space):
    landmarks, normal = seen(space.shapes[2]), np.array([1.0, 2.0, -1.0])
    artists = plot.deformation_grid(lambda points: points, landmarks, solid(), normal=normal)
    lines = np.array(artists.lines._segments3d)
    np.testing.assert_allclose((lines - landmarks.mean(axis=0)) @ normal, 0, atol=1e-9)
    principal = plot.deformation_grid(lambda points: points, landmarks, solid()).lines._segments3d
    thinnest = np.linalg.svd(landmarks - landmarks.mean(axis=0))[2][2]
    np.testing.assert_allclose(
        (np.array(principal) - landmarks.mean(axis=0)) @ thinnest, 0, atol=1e-9
    )


def test_a_slice_needs_a_direction(space):
    with pytest.raises(ShapeError, match="normal"):
        plot.deformation_grid(space.warps[0], space.shapes[0], solid(), normal=[0, 0, 0])


@pytest.mark.parametrize("magnify", [1.0, 3.0])
def test_arrows_lead_from_the_reference_to_the_shape_laid_on_it(plane, magnify):
    artists = plot.displacements(plane, "shape_2", flat(), magnify=magnify)
    shape = plane.shapes["shape_2"]
    laid = plane.superimposed[1]
    visible = ~np.isnan(shape[:, 0])
    np.testing.assert_allclose(artists.arrows.XY, plane.reference[visible], **EXACT)
    vectors = np.column_stack([artists.arrows.U, artists.arrows.V])
    np.testing.assert_allclose(vectors, magnify * (laid - plane.reference)[visible], **EXACT)
    assert ("magnified × 3" in artists.arrows.get_label()) == (magnify == 3.0)


def test_arrow_heads_lie_within_the_axes(plane):
    ax = flat()
    arrows = plot.displacements(plane, 0, ax, magnify=10.0).arrows
    heads = arrows.XY + np.column_stack([arrows.U, arrows.V])
    assert (heads.min(axis=0) >= [ax.get_xlim()[0], ax.get_ylim()[0]]).all()
    assert (heads.max(axis=0) <= [ax.get_xlim()[1], ax.get_ylim()[1]]).all()


def test_arrows_in_space_are_thinned_to_what_can_be_read():
    a = many_landmarks(seed=3, n=6, m=900, d=3, missing=0.1)
    artists = plot.displacements(a, 1, solid())
    total = int(a.shapes.visible[1].sum())
    assert f"of {total} drawn" in artists.arrows.get_label()
    assert len(artists.arrows._segments3d) <= 3 * 600  # a shaft and two barbs each


# Figures along the smoothing


PATH = make_smoothing_path(
    np.array([1e-4, 1e-3, 1e-2]),
    np.array([3.0, 2.0, 2.5]),
    np.array([1.0, 1.5, 2.0]),
    np.array([1.4, 1.6, 2.0]),
)


def test_the_smoothing_path_shows_three_errors_and_the_chosen_value():
    ax = flat()
    artists = plot.smoothing_path(PATH, ax, unit="pixels")
    np.testing.assert_array_equal(artists.cve.get_xdata(), PATH.values)
    np.testing.assert_array_equal(artists.cve.get_ydata(), PATH.cve)
    np.testing.assert_array_equal(artists.rmse_reference.get_ydata(), PATH.rmse_reference)
    np.testing.assert_array_equal(artists.rmse_datum.get_ydata(), PATH.rmse_datum)
    assert list(artists.chosen.get_xdata()) == [1e-3, 1e-3]
    assert artists.label.get_text() == "chosen: 0.001"
    assert artists.minimum is None
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert ax.get_ylabel() == "error (pixels)"


def test_smoothing_path_marks_both_the_minimum_and_what_the_rule_chose():
    stiffer = replace(PATH, standard_error=np.full(3, 0.6), sound=np.full(3, True))
    ax = flat()
    artists = plot.smoothing_path(stiffer, ax)
    assert artists.label.get_text() == "chosen: 0.01"
    np.testing.assert_array_equal(drawn_points(artists.minimum), [[1e-3, 2.0]])
    assert ax.get_title(loc="left") == "one-standard-error rule: costs 25 % in CVE"


def test_errors_of_several_decades_are_shown_on_decades():
    ax = flat()
    wild = make_smoothing_path(
        PATH.values, PATH.cve, PATH.rmse_reference, np.array([2.0, 1e6, np.nan])
    )
    plot.smoothing_path(wild, ax)
    assert ax.get_yscale() == "log"


def test_lines_differ_in_marker_and_style_not_only_in_colour():
    artists = plot.smoothing_path(PATH, flat())
    lines = (artists.cve, artists.rmse_reference, artists.rmse_datum)
    assert len({line.get_marker() for line in lines}) == 3
    assert len({line.get_linestyle() for line in lines}) == 3


# Tables


def test_the_residual_map_holds_the_residuals_and_rings_the_worst(plane):
    ax = flat()
    artists = plot.residual_map(plane, ax, unit="mm")
    shown = artists.image.get_array()
    np.testing.assert_array_equal(shown.filled(np.nan), plane.residuals)
    i, j = np.argwhere(plane.residuals == np.nanmax(plane.residuals))[0]
    assert (artists.worst.get_xdata()[0], artists.worst.get_ydata()[0]) == (j, i)
    title = ax.get_title(loc="left")
    assert plane.shapes.names[i] in title
    assert f"landmark {plane.shapes.landmarks[j]} of" in title
    label = artists.colorbar.ax.get_ylabel()
    assert label == "distance from the reference (mm)\ngrey: missing"


def test_missing_landmarks_are_grey_in_the_residual_map(plane):
    image = plot.residual_map(plane, flat()).image
    assert tuple(image.get_cmap().get_bad()) == to_rgba(_style.MISSING)
    np.testing.assert_array_equal(image.get_array().mask, ~plane.shapes.visible)


def test_every_shape_and_landmark_is_named_where_there_is_room():
    points = np.random.default_rng(0).normal(size=(4, 6, 2))
    shapes = Shapes(points, names=["ann", "bob", "cyd", "dan"], landmarks=list("pqrstu"))
    ax = flat()
    plot.missing_map(shapes, ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["ann", "bob", "cyd", "dan"]
    assert [text.get_text() for text in ax.get_xticklabels()] == list("pqrstu")
    np.testing.assert_allclose(ax.get_xticks(), np.arange(6), **EXACT)


def test_with_many_shapes_only_so_many_names_are_written():
    shapes = Shapes(np.random.default_rng(0).normal(size=(300, 155, 2)))
    ax = flat()
    plot.missing_map(shapes, ax)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert 5 <= len(names) <= 40
    rows = ax.get_yticks().round().astype(int)
    assert names == [shapes.names[i] for i in rows]


def test_with_more_landmarks_than_columns_a_cell_holds_the_largest():
    a, ax = many_landmarks(seed=2, n=6, m=1_600, d=2, missing=0.1), flat()
    shown = plot.residual_map(a, ax).image.get_array().filled(np.nan)
    assert shown.shape == (6, 534)
    np.testing.assert_array_equal(shown[:, 0], np.fmax.reduce(a.residuals[:, :3], axis=1))
    np.testing.assert_array_equal(shown[:, 533], a.residuals[:, 1599])
    assert ax.get_xlabel() == "landmark (3 to a cell)"


def test_the_missing_map_is_one_where_a_landmark_is_missing(plane):
    ax = flat()
    image = plot.missing_map(plane.shapes, ax).image
    np.testing.assert_array_equal(np.asarray(image.get_array()), ~plane.shapes.visible)
    share = 1 - plane.shapes.visible.mean()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"visible ({100 - 100 * share:.1f} %)", f"missing ({100 * share:.1f} %)"]


def test_the_share_of_missing_landmarks_is_right_for_an_incomplete_last_cell():
    points = np.random.default_rng(0).normal(size=(3, 1_201, 2))
    points[0, 1], points[1, 1_200] = np.nan, np.nan
    shown = np.asarray(plot.missing_map(Shapes.specimens(points), flat()).image.get_array())
    expected = np.zeros((3, 401))
    expected[0, 0], expected[1, 400] = 1 / 3, 1.0
    np.testing.assert_allclose(shown, expected, **EXACT)


def test_long_names_are_broken_into_lines_before_they_are_shortened():
    assert _style.break_name("Upper Palaeolithic hunter-gatherers") == (
        "Upper Palaeolithic\nhunter-gatherers"
    )
    lines = _style.break_name(" ".join(["Quercus"] * 9)).split("\n")
    assert len(lines) == 2
    assert lines[1].startswith("Quercus")
    assert "…" in lines[1]
    assert max(map(len, lines)) <= 22


def test_a_new_figure_grows_with_the_rows_of_its_legend():
    points = np.random.default_rng(0).normal(size=(12, 5, 2))
    pca = defgpa.ShapePCA().fit(points)
    heights = []
    for word in ("", "of a name that leaves no room for a second column beside it"):
        plot.components(pca, groups=[f"{k % 6} {word}" for k in range(12)])
        heights.append(plt.gcf().get_figheight())
    assert heights[1] - heights[0] == pytest.approx(4 * _style.LEGEND_ROW)
    figure = Figure((5, 5))
    plot.components(pca, figure.subplots(), groups=[f"{k} {word}" for k in range(12)])
    assert figure.get_figheight() == 5


def test_long_names_are_shortened_but_told_apart():
    assert _style.shorten("short") == "short"
    long = [_style.shorten(f"Cercopithecus_mitis_female_{k}") for k in (101, 102)]
    assert long[0] != long[1]
    assert max(map(len, long)) <= 22


# The spectrum


def test_the_spectrum_parts_the_axes_of_the_reference_from_the_rest(space):
    artists = plot.spectrum(space, flat())
    values = space.diagnostics.spectrum
    np.testing.assert_array_equal(artists.axes.get_ydata(), values[:3])
    np.testing.assert_array_equal(artists.rest.get_ydata(), values[3:])
    span = artists.gap.get_bbox() if hasattr(artists.gap, "get_bbox") else artists.gap.get_extents()
    np.testing.assert_allclose([span.y0, span.y1], values[2:4], **EXACT)
    assert f"{space.diagnostics.gap:.2g}" in artists.label.get_text()


def test_a_rigid_alignment_has_no_spectrum(plane):
    a = defgpa.EuclideanGPA().fit(plane.shapes).alignment_
    with pytest.raises(ShapeError, match="no spectrum"):
        plot.spectrum(a, flat())


# Generated shapes, before and after


def test_generated_landmarks_are_the_reference_through_the_inverse_warp(plane):
    artists = plot.back_projection(plane, 3, flat(), unit="mm")
    visible = plane.shapes.visible[3]
    made = plane.warps[3].inverse()(plane.reference[visible])
    np.testing.assert_allclose(drawn_points(artists.observed), plane.shapes[3][visible], **EXACT)
    np.testing.assert_allclose(drawn_points(artists.generated), made, **EXACT)
    pairs = np.array(artists.errors.get_segments())
    np.testing.assert_allclose(pairs[:, 1] - pairs[:, 0], made - plane.shapes[3][visible], **EXACT)
    error = np.sqrt(np.mean(((made - plane.shapes[3][visible]) ** 2).sum(axis=1)))
    assert artists.generated.get_label() == f"reference, projected back; RMSE {error:.3g} mm"


def test_the_shape_that_is_generated_worst_is_shown_by_default(space):
    worst = int(np.nanargmax(np.sqrt(np.nanmean(space.datum_residuals**2, axis=1))))
    artists = plot.back_projection(space, ax=solid())
    assert artists.observed.get_label() == f"{space.shapes.names[worst]}, observed"


def test_a_generated_shape_in_space_is_turned_to_its_principal_axes(space):
    visible = space.shapes.visible[3]
    made = space.warps[3].inverse()(space.reference[visible])
    axes = solid()
    artists = plot.back_projection(space, 3, axes, unit="mm")
    observed, generated = drawn_points(artists.observed), drawn_points(artists.generated)
    moments = observed.T @ observed
    np.testing.assert_allclose(moments - np.diag(np.diag(moments)), 0.0, atol=1e-9 * moments.max())
    assert np.all(np.diff(np.diag(moments)) < 0)  # the longest axis first
    # turned together: all distances stay
    np.testing.assert_allclose(
        cdist(observed, generated), cdist(space.shapes[3][visible], made), **EXACT
    )
    assert axes.get_xlabel() == "axis 1 (mm)"


@pytest.mark.parametrize("before", ["superimposed", "measured"])
def test_shapes_are_drawn_before_and_after_their_warps(plane, before):
    artists = plot.before_and_after(plane, Figure().subplots(1, 2), before=before)
    first = plane.superimposed if before == "superimposed" else plane.shapes.points
    for cloud, points in ((artists.before, first), (artists.after, plane.aligned)):
        drawn, expected = np.asarray(cloud.get_offsets()), seen(points)
        np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0), **EXACT)


def test_before_and_after_have_the_same_scale(plane, space):
    figure = Figure()
    pair = figure.subplots(1, 2)
    plot.before_and_after(plane, pair, before="measured")
    spans = [(np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())) for ax in pair]
    np.testing.assert_allclose(spans[0], spans[1], **EXACT)
    assert spans[0][0] > np.ptp(seen(plane.shapes.points)[:, 0])  # and all is in the picture
    figure = Figure()
    pair = [figure.add_subplot(1, 2, k, projection="3d") for k in (1, 2)]
    plot.before_and_after(space, pair)
    np.testing.assert_allclose(*(np.ptp(limits(ax), axis=1) for ax in pair), **EXACT)


def test_before_can_only_be_superimposed_or_measured(plane):
    with pytest.raises(ValueError, match=r"'measured'.*'raw'"):
        plot.before_and_after(plane, before="raw")


def test_every_shape_keeps_its_colour(plane):
    artists = plot.before_and_after(plane, Figure().subplots(1, 2))
    n_seen = plane.shapes.visible.sum(axis=1)
    for cloud in (artists.before, artists.after):
        shape = np.asarray(cloud.get_array())
        np.testing.assert_array_equal(np.bincount(shape.astype(int)), n_seen)
        first = np.asarray(cloud.get_offsets())[shape == 0]
        points = plane.superimposed[0] if cloud is artists.before else plane.aligned[0]
        np.testing.assert_allclose(np.sort(first, axis=0), np.sort(seen(points), axis=0), **EXACT)


# Meshes


@pytest.fixture(scope="module")
def mesh_set():
    """Ten bent sheets of 10,000 vertices with triangles."""
    x, y, faces = triangulated_grid(100)
    points = [
        np.column_stack([x, y, 0.2 * np.sin(x + 0.1 * k) + 0.05 * x * y + 0.01 * k * y])
        for k in range(10)
    ]
    return defgpa.EuclideanGPA().fit(Shapes(points, faces=faces)).alignment_


def test_meshes_are_drawn_as_decimated_surfaces_that_say_so(mesh_set):
    ax = solid()
    surface = plot.overlay(mesh_set, ax).reference
    assert isinstance(surface, Poly3DCollection)
    note = f"surface drawn with {_style.MAX_SURFACE_VERTICES:,} of 10,000 vertices"
    assert re.sub(r"[\d,]+ of", "2,500 of", ax.texts[0].get_text()) == note
    ax = solid()
    plot.displacements(mesh_set, 0, ax)
    assert any(isinstance(drawn, Poly3DCollection) for drawn in ax.collections)
    before = plot.before_and_after(mesh_set).before
    assert isinstance(before, Poly3DCollection)


def test_components_of_meshes_show_surfaces_at_their_ends(mesh_set):
    ax = flat()
    ends = plot.components(mesh_set, ax).ends
    assert all(isinstance(end.collections[0], PolyCollection) for end in ends)
    assert "of 10,000 vertices" in ax.texts[0].get_text()


def test_a_small_mesh_is_drawn_with_all_its_vertices():
    x = smooth_family(seed=3, n=5, m=30, d=3)
    a = defgpa.EuclideanGPA().fit(Shapes(x, faces=[[0, 1, 2], [1, 2, 3]])).alignment_
    ax = solid()
    assert len(plot.overlay(a, ax).reference.get_array()) == 2
    assert not ax.texts


def test_before_and_after_need_two_axes(plane):
    with pytest.raises(ShapeError, match="two axes; got 1"):
        plot.before_and_after(plane, [flat()])


# Pictures


def test_a_picture_lies_in_the_coordinates_of_the_reference():
    pixels = np.random.default_rng(0).integers(0, 256, size=(3, 4, 3), dtype=np.uint8)
    mask = np.arange(12).reshape(3, 4) > 4
    ax = flat()
    image = plot.picture(Picture(pixels, mask, Frame((10, 20), (3, 4), (2, 2))), ax).image
    assert list(image.get_extent()) == [9, 17, 25, 19]
    shown = image.get_array()
    np.testing.assert_allclose(shown[..., :3], pixels / 255, **EXACT)
    np.testing.assert_array_equal(shown[..., 3], mask)
    assert ax.get_ylim() == (25, 19)  # y points down, as in the image


def test_a_grey_picture_is_masked_not_black():
    grey = np.arange(12, dtype=np.uint16).reshape(3, 4)
    shown = plot.picture(Picture(grey, grey > 4, Frame((0, 0), (3, 4))), flat()).image.get_array()
    np.testing.assert_array_equal(shown.mask, grey <= 4)


def test_landmarks_lie_over_their_warped_image(plane):
    picture = Picture(
        np.zeros((30, 40)), np.ones((30, 40), dtype=bool), Frame((-20, -15), (30, 40))
    )
    artists = plot.picture_with_landmarks(picture, plane, "shape_1", flat())
    np.testing.assert_array_equal(drawn_points(artists.landmarks), seen(plane.aligned[0]))
    np.testing.assert_array_equal(drawn_points(artists.reference), plane.reference)


def test_the_deviation_is_shown_where_two_shapes_cover_a_pixel(rng):
    base = rng.uniform(0, 40, size=(20, 2))
    shifts = np.array([[0, 0], [3, 0], [0, 5]])
    a = defgpa.DefGPA(defgpa.Affine()).fit(base + shifts[:, None]).alignment_
    spread = intensity_deviation(list(rng.uniform(size=(3, 40, 50, 3))), a)
    ax = flat()
    image = plot.deviation(spread, ax).image
    shown = image.get_array()
    np.testing.assert_allclose(
        shown.filled(np.nan), spread.deviation.mean(axis=2), rtol=1e-9, equal_nan=True
    )
    assert f"{spread.mean:.3g}" in ax.get_title()
    values = shown.compressed()  # few bright pixels do not darken the others
    np.testing.assert_allclose(image.get_clim(), [0.0, np.percentile(values, 99.5)], rtol=1e-9)


# Manners


def every_plot(plane, space):
    """Each plot once, on axes of its own, in the plane and in space."""
    picture = Picture(
        np.zeros((30, 40)), np.ones((30, 40), dtype=bool), Frame((-20, -15), (30, 40))
    )
    yield lambda: plot.overlay(plane)
    yield lambda: plot.overlay(space)
    yield lambda: plot.deformation_grid(plane.warps[0], plane.shapes[0])
    yield lambda: plot.deformation_grid(space.warps[0], space.shapes[0])
    yield lambda: plot.displacements(plane, 0)
    yield lambda: plot.displacements(space, 0)
    yield lambda: plot.smoothing_path(PATH)
    yield lambda: plot.residual_map(plane)
    yield lambda: plot.missing_map(plane.shapes)
    yield lambda: plot.spectrum(plane)
    yield lambda: plot.back_projection(plane)
    yield lambda: plot.back_projection(space)
    yield lambda: plot.before_and_after(plane)
    yield lambda: plot.before_and_after(space)
    yield lambda: plot.picture(picture)


def test_without_axes_a_plot_makes_its_own_figure_and_shows_nothing(plane, space, monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda *_: pytest.fail("a plot was shown"))
    for draw in every_plot(plane, space):
        before = set(pyplot.get_fignums())
        draw()
        (new,) = set(pyplot.get_fignums()) - before
        pyplot.figure(new).canvas.draw()  # and it can be drawn without a warning
        pyplot.close(new)


def test_plots_are_the_same_every_time(plane, space, tmp_path):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    for k, draw in enumerate(every_plot(plane, space)):
        if k not in (0, 3, 12):
            continue
        files = []
        for attempt in (1, 2):
            draw()
            path = tmp_path / f"{k}_{attempt}.png"
            pyplot.gcf().savefig(path)
            pyplot.close()
            files.append(path.read_bytes())
        assert files[0] == files[1]


def test_nothing_but_the_plots_loads_matplotlib():
    code = (
        "import sys, defgpa, defgpa.images, defgpa.meshes; defgpa.warp_image; "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import defgpa.plot\nexcept Exception as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "defgpa[plot]"' in done.stdout


# Photographs


@pytest.fixture
def photographed(tmp_path):
    """Two shapes digitised on photographs 200 pixels high, in millimetres; one image is lost."""
    from PIL import Image

    Image.new("RGB", (300, 200), (90, 120, 60)).save(tmp_path / "wing_1.jpg")
    metadata = {
        "images": ["D:\\scans\\wing_1.jpg", "wing_2.jpg"],
        "sources": [str(tmp_path / "wings.tps")] * 2,
        "scales": [0.1, 0.1],
    }
    points = 0.1 * np.array([[[10, 20], [290, 30], [150, 190]]] * 2)
    return Shapes(points, metadata=metadata)


def test_landmarks_lie_on_their_photograph(photographed):
    artists = plot.photograph(photographed, 0, flat(), names=True)
    assert artists.image.get_array().shape == (200, 300, 3)
    expected = [[10, 180], [290, 170], [150, 10]]  # y is counted from the bottom in a TPS file
    np.testing.assert_allclose(drawn_points(artists.landmarks), expected, **EXACT)
    assert [label.get_text() for label in artists.labels] == ["1", "2", "3"]
    assert all(label.get_path_effects() for label in artists.labels)  # read on pale pictures, too


def test_a_photograph_that_is_not_there_is_named(photographed):
    with pytest.raises(ShapeError, match="no photograph of 'shape_2'"):
        plot.photograph(photographed, "shape_2", flat())
