"""A picture is its image through the inverse of the warp, to a tolerance in pixels."""

import numpy as np
import pytest
from scipy import ndimage

import defgpa
from defgpa import FormatError, ShapeError
from defgpa.datasets import make_slices
from defgpa.images import (
    Frame,
    Picture,
    common_frame,
    cubic,
    intensity_deviation,
    linear,
    nearest,
    read_image,
    rows_down,
    rows_up,
    warp_image,
    write_picture,
)
from defgpa.images._frame import PixelWarp
from defgpa.images._inverse_map import InverseMap
from support import EXACT

SIZE = (200, 260)


def spline_alignment(seed=0, bend=6.0, points_per_axis=5, smoothing=1e-4, size=SIZE):
    """Six bent shapes of 60 landmarks all over an image, posed like the first."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0, 1, size=(60, 2)) * size[::-1]
    shapes = [
        base
        + bend * np.sin(base[:, ::-1] / 40 + rng.normal(size=2))
        + 0.3 * rng.normal(size=(60, 2))
        for _ in range(6)
    ]
    model = defgpa.ThinPlateSpline(points_per_axis=points_per_axis, smoothing=smoothing)
    return defgpa.DefGPA(model).fit(shapes).alignment_.posed_like(shapes[0])


def ramps(size=SIZE):
    """(rows, columns, 2): every pixel holds its own column and row, so pictures show sources."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    return np.stack([columns, rows], axis=-1).astype(np.float64)


class Shift:
    """The simplest warp of one's own: points moved by a vector."""

    def __init__(self, by, matrix=((1, 0), (0, 1))):
        self.by, self.matrix = np.asarray(by, dtype=float), np.asarray(matrix, dtype=float)

    def __call__(self, points):
        return np.asarray(points) @ self.matrix.T + self.by

    def jacobian(self, points):
        return np.broadcast_to(self.matrix, (len(points), 2, 2))


class Pleat:
    """x ↦ x + 30 sin(x / 20): turns back wherever cos(x / 20) < −2/3."""

    def __call__(self, points):
        x, y = np.asarray(points, dtype=float).T
        return np.column_stack([x + 30 * np.sin(x / 20), y])

    def jacobian(self, points):
        x, _ = np.asarray(points, dtype=float).T
        slope = 1 + 1.5 * np.cos(x / 20)
        return np.stack([[slope, 0 * x], [0 * x, 0 * x + 1]]).transpose(2, 0, 1)


# The inverse


@pytest.mark.parametrize("tolerance", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_pixel_comes_from_where_the_warp_says_within_the_tolerance(seed, tolerance):
    a = spline_alignment(seed)
    warp = PixelWarp(a.warps[1], rows_down(ramps()), Frame((-20.0, -20.0), (240, 300)))
    sources = InverseMap(warp, tolerance).map_rows(slice(0, 240))
    shown = ((sources > -0.5) & (sources < np.array([260, 200])[:, None, None] - 0.5)).all(axis=0)
    rows, columns = np.nonzero(shown)
    errors = np.linalg.norm(warp(sources[:, shown].T) - np.column_stack([columns, rows]), axis=1)
    assert len(errors) > 30_000
    assert errors.max() < tolerance


def test_a_looser_tolerance_is_made_use_of():
    """The counter-example: without the check, tiles are too coarse for a fine tolerance."""
    warp = PixelWarp(spline_alignment().warps[1], rows_down(ramps()), Frame((0, 0), SIZE))
    loose, fine = (InverseMap(warp, t).map_rows(slice(0, 200)) for t in (0.5, 1e-7))
    assert 1e-4 < np.nanmax(np.abs(loose - fine)) < 0.5


def test_a_landmark_lands_within_a_twentieth_of_a_pixel_of_its_warped_position():
    a = spline_alignment()
    frame = common_frame([ramps()] * 6, a.warps)
    for warp, landmarks in zip(a.warps, a.shapes, strict=True):
        picture = warp_image(ramps(), warp, frame)
        inner = ((landmarks > 2) & (landmarks < np.array([257, 197]))).all(axis=1)
        column, row = frame.pixels(warp(landmarks[inner])).T
        source = [
            ndimage.map_coordinates(picture.pixels[..., k], [row, column], order=1) for k in (0, 1)
        ]
        missed = warp(np.transpose(source)) - warp(landmarks[inner])
        assert np.linalg.norm(missed, axis=1).max() < 0.05


def test_a_pixel_is_shown_exactly_where_its_source_lies_in_the_image():
    warp = spline_alignment(seed=3, smoothing=1e-2).warps[2]
    frame = Frame((-30.0, -25.0), (60, 80), (4.0, 4.0))
    mask = warp_image(ramps(), warp, frame).mask
    pixels = np.stack(np.meshgrid(np.arange(80), np.arange(60)), axis=-1).reshape(-1, 2)
    sources = warp.exact_inverse()(frame.points(pixels))
    within = ((sources >= -0.5) & (sources < [259.5, 199.5])).all(axis=1).reshape(60, 80)
    assert 0.3 < within.mean() < 0.9
    np.testing.assert_array_equal(mask, within)


def test_where_the_warp_folds_nothing_is_shown_twice():
    """Between the turning points three sources have one image; the turned one is not shown."""
    picture = warp_image(ramps((40, 120)), Pleat(), Frame((0.0, 0.0), (40, 109)))
    x = picture.pixels[..., 0][picture.mask]
    assert (1 + 1.5 * np.cos(x / 20) > 0).all()
    np.testing.assert_allclose(
        (x + 30 * np.sin(x / 20)), np.nonzero(picture.mask)[1], rtol=0, atol=0.05
    )
    assert picture.mask.mean() > 0.95  # all have an upright source; a sliver is lost at the turns


def test_a_warp_that_runs_away_gives_a_frame_of_bounded_size():
    inner = spline_alignment(seed=5, bend=12.0, smoothing=1e-9, size=(80, 100))
    frame = common_frame([np.zeros((400, 500))], inner.warps[:1])
    assert frame.shape[0] < 900
    assert frame.shape[1] < 1100


# Pixels


def test_the_identity_gives_the_image_back():
    image = np.random.default_rng(0).integers(0, 256, size=(70, 90, 3), dtype=np.uint8)
    picture = warp_image(image, Shift([0, 0]))
    np.testing.assert_array_equal(picture.pixels, image)
    assert picture.mask.all()
    np.testing.assert_allclose(picture.origin, [0, 0], **EXACT)


def test_a_mirrored_image_is_shown_mirrored():
    image = np.random.default_rng(0).integers(0, 256, size=(30, 40), dtype=np.uint8)
    picture = warp_image(image, Shift([39.0, 0.0], [[-1, 0], [0, 1]]))
    np.testing.assert_array_equal(picture.pixels, image[:, ::-1])


@pytest.mark.parametrize("channels", [(), (1,), (3,), (4,)])
@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "int16", "int32", "bool", "float32", "float64"]
)
def test_dtype_and_channels_are_kept(dtype, channels):
    values = np.random.default_rng(0).uniform(0, 200, size=(20, 30, *channels))
    image = (values > 100) if dtype == "bool" else values.astype(dtype)
    picture = warp_image(image, Shift([2.5, 0.0]), Frame((0.0, 0.0), (20, 30)))
    assert picture.pixels.dtype == image.dtype
    assert picture.pixels.shape == image.shape
    between = 0.5 * (image[:, :-3].astype(float) + image[:, 1:-2])
    tolerance = 0.5 if image.dtype.kind in "iub" else 1e-4
    np.testing.assert_allclose(picture.pixels[:, 3:].astype(float), between, rtol=0, atol=tolerance)


def test_outside_is_masked_and_zero():
    picture = warp_image(np.full((10, 10), 9), Shift([5, 0]), Frame((0.0, 0.0), (10, 20)))
    shown = np.zeros((10, 20), dtype=bool)
    shown[:, 5:15] = True
    np.testing.assert_array_equal(picture.mask, shown)
    np.testing.assert_array_equal(picture.pixels, 9 * shown)


def test_labels_stay_labels_with_nearest_sampling():
    labels = np.random.default_rng(0).choice([3, 50, 200], size=SIZE)
    warp = spline_alignment().warps[1]
    assert set(np.unique(warp_image(labels, warp, sampling=nearest).pixels)) == {0, 3, 50, 200}
    assert len(np.unique(warp_image(labels, warp, sampling=linear).pixels)) > 4


def test_cubic_sampling_is_closer_to_a_smooth_image_than_linear():
    rows, columns = np.mgrid[:60, :80]

    def smooth(column, row):
        return np.sin(column / 3) * np.cos(row / 4)

    image, frame = smooth(columns, rows), Frame((10.0, 10.0), (30, 50))
    truth = smooth(columns[:30, :50] + 9.6, rows[:30, :50] + 9.7)
    errors = [
        np.abs(warp_image(image, Shift([0.4, 0.3]), frame, sampling=way).pixels - truth).max()
        for way in (linear, cubic)
    ]
    assert errors[1] < 0.1 * errors[0]


def test_an_image_of_one_row_or_one_pixel_can_be_warped():
    assert warp_image(np.full((1, 9), 4), Shift([0, 0])).pixels.tolist() == [[4] * 9]
    assert warp_image(np.full((1, 1), 4), Shift([0, 0])).pixels.tolist() == [[4]]


def test_bands_do_not_change_the_picture():
    """More than a million pixels are worked on in bands; these parts are less."""
    warp = spline_alignment().warps[1]
    fine = Frame(warp_image(ramps(), warp).frame.origin, (1035, 1335), (0.2, 0.2))
    banded = warp_image(ramps(), warp, fine)
    for rows, frame in fine.bands(512):
        alone = warp_image(ramps(), warp, frame)
        np.testing.assert_array_equal(banded.mask[rows], alone.mask)
        np.testing.assert_allclose(banded.pixels[rows], alone.pixels, rtol=0, atol=0.004)


# Frames


def test_frames_take_pixels_to_points_and_back():
    frame = Frame((3.0, -2.0), (10, 20), (0.5, -0.25))
    pixels = np.random.default_rng(0).uniform(0, 20, size=(7, 2))
    np.testing.assert_allclose(frame.pixels(frame.points(pixels)), pixels, **EXACT)
    np.testing.assert_allclose(frame.extent, [2.75, 12.75, -4.375, -1.875], **EXACT)


def test_rows_up_is_the_same_picture_for_landmarks_with_y_upwards():
    """tpsDig counts y from the lower edge: row r of an image of H rows is y = H − r."""
    image = np.random.default_rng(0).uniform(size=SIZE)
    flip = np.array([1.0, -1.0])
    down = spline_alignment(seed=4)
    up = defgpa.DefGPA(defgpa.ThinPlateSpline(5, smoothing=1e-4)).fit(
        [shape * flip + [0, SIZE[0]] for shape in down.shapes]
    )
    up = up.alignment_.posed_like(down.shapes[0] * flip + [0, SIZE[0]])
    plain = warp_image(image, down.warps[0], tolerance=1e-5)
    flipped = warp_image(image, up.warps[0], placement=rows_up, tolerance=1e-5)
    assert flipped.frame.step == (1.0, -1.0)
    inner = (slice(20, 180), slice(20, 240))
    np.testing.assert_allclose(
        _at(flipped, down.warps[0], flip)[inner], plain.pixels[20:180, 20:240], rtol=0, atol=1e-3
    )


def _at(flipped, warp, flip):
    """The picture with y upwards, read on the raster of the picture with y downwards."""
    plain = common_frame([np.zeros(SIZE)], [warp])
    pixels = np.stack(np.meshgrid(*map(np.arange, plain.shape[::-1])), axis=-1).reshape(-1, 2)
    column, row = flipped.frame.pixels(plain.points(pixels) * flip + [0, SIZE[0]]).T
    return ndimage.map_coordinates(flipped.pixels, [row, column], order=1).reshape(plain.shape)


def test_the_common_frame_holds_every_warped_image_and_no_empty_margin():
    a = spline_alignment(seed=6, smoothing=1e-2)
    frame = common_frame([ramps()] * 6, a.warps)
    masks = np.stack([warp_image(ramps(), warp, frame).mask for warp in a.warps])
    for warp in a.warps:
        border = np.array([[-0.5, -0.5], [259.5, -0.5], [-0.5, 199.5], [259.5, 199.5], [130, -0.5]])
        pixels = frame.pixels(warp(border))
        assert (pixels > -0.6).all()
        assert (pixels < np.array(frame.shape[::-1]) - 0.4).all()
    shown = masks.any(axis=0)
    for edge in (shown[:3], shown[-3:], shown[:, :3], shown[:, -3:]):
        assert edge.any()


def test_half_the_pixel_size_gives_twice_the_pixels():
    a = spline_alignment()
    full, half = (common_frame([ramps()] * 6, a.warps, pixel_size=s) for s in (1.0, 0.5))
    assert np.abs(np.array(half.shape) - 2 * np.array(full.shape)).max() <= 2
    assert half.pixel_size == 0.5


def test_an_absurd_pixel_size_is_refused_with_the_remedy():
    a = spline_alignment()
    with pytest.raises(ShapeError, match="pixel_size"):
        common_frame([ramps()] * 6, a.warps, pixel_size=1e-5)
    with pytest.raises(ShapeError, match="must be positive"):
        common_frame([ramps()] * 6, a.warps, pixel_size=-1.0)


def test_one_image_per_warp_is_asked_for():
    with pytest.raises(ShapeError, match="one image per warp, 2; got 1"):
        common_frame([ramps()], [Shift([0, 0])] * 2)


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros((4, 4), dtype=complex), np.zeros((0, 3))])
def test_what_is_no_image_is_refused(wrong):
    with pytest.raises(ShapeError, match="An image must be"):
        warp_image(wrong, Shift([0, 0]))


def test_a_tolerance_must_be_positive():
    with pytest.raises(ShapeError, match="tolerance"):
        warp_image(np.zeros((4, 4)), Shift([0, 0]), tolerance=0.0)


@pytest.mark.parametrize("frame", [None, Frame((0.0, 0.0), (4, 4))])
def test_a_flat_warp_has_nothing_to_show(frame):
    with pytest.raises(ShapeError, match="flattens"):
        warp_image(np.zeros((4, 4)), Shift([0, 0], [[1, 1], [1, 1]]), frame)


# Agreement of images


def translated(shifts):
    """Copies of one image moved by whole pixels, and the alignment of landmarks in them."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 50, size=(20, 2))
    a = defgpa.DefGPA(defgpa.Affine()).fit([base + shift for shift in shifts]).alignment_
    return rng, a


def test_deviation_and_median_are_those_of_the_shapes_that_cover_a_pixel():
    rng, a = translated([[0, 0], [3, 0], [0, 5]])
    images = list(rng.uniform(size=(3, 40, 50)))
    spread = intensity_deviation(images, a)
    left, top = (-spread.origin).round().astype(int)
    # image 1 covers columns −3 … 46 of the first, image 2 rows −5 … 34
    first, second, third = images[0][:35, :47], images[1][:35, 3:], images[2][5:, :47]
    window = (slice(top, top + 35), slice(left, left + 47))
    stack = np.stack([first, second, third])
    np.testing.assert_allclose(spread.deviation[window], stack.std(axis=0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(spread.median[window], np.median(stack, axis=0), atol=1e-6)
    pair = np.stack([images[0][35:, :47], images[1][35:, 3:]])
    below = (slice(top + 35, top + 40), slice(left, left + 47))
    np.testing.assert_allclose(spread.deviation[below], pair.std(axis=0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(spread.median[below], pair.mean(axis=0), atol=1e-6)
    alone = (slice(top + 35, top + 40), slice(left + 47, left + 50))
    assert np.isnan(spread.deviation[alone]).all()
    np.testing.assert_allclose(spread.median[alone], images[0][35:, 47:], atol=1e-6)


def test_coverage_counts_the_shapes_and_the_mean_is_over_what_all_cover():
    rng, a = translated([[0, 0], [3, 0], [0, 5]])
    spread = intensity_deviation(list(rng.uniform(size=(3, 40, 50))), a)
    assert spread.coverage.shape == spread.frame.shape == (45, 53)
    assert (spread.coverage == 3).sum() == 35 * 47
    assert spread.coverage.sum() == 3 * 40 * 50
    np.testing.assert_allclose(spread.mean, spread.deviation[spread.coverage == 3].mean(), **EXACT)


def test_channels_deviate_each_on_its_own():
    rng, a = translated([[0, 0], [3, 0], [0, 5]])
    images = rng.integers(0, 256, size=(3, 40, 50, 3), dtype=np.uint8)
    images[..., 1] = 77
    spread = intensity_deviation(list(images), a)
    assert spread.median.dtype == np.uint8
    assert (spread.deviation[spread.common][:, 1] == 0).all()
    assert (spread.deviation[spread.common][:, 0] > 0).mean() > 0.9


def test_pictures_take_the_pose_of_the_first_image():
    turned = [shape @ [[0, 1], [-1, 0]] + [SIZE[0], 0] for shape in spline_alignment().shapes]
    a = defgpa.DefGPA(defgpa.ThinPlateSpline(5)).fit(turned).alignment_
    spread = intensity_deviation([ramps(SIZE[::-1])] * 6, a)
    assert spread.frame.shape[0] > spread.frame.shape[1]
    np.testing.assert_allclose(spread.alignment.reference, turned[0], rtol=0, atol=15)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(a.reference, turned[0], rtol=0, atol=15)


def test_a_given_frame_is_one_of_the_alignment_as_it_is():
    a = spline_alignment()
    frame = Frame((50.0, 40.0), (30, 60), (2.0, 2.0))
    spread = intensity_deviation([ramps()] * 6, a, frame)
    assert spread.alignment is a
    assert spread.coverage.shape == (30, 60)
    assert (spread.origin == [50, 40]).all()


def test_bands_do_not_change_the_deviation():
    a = spline_alignment()
    images = list(np.random.default_rng(0).uniform(size=(6, *SIZE)))
    complete = intensity_deviation(images, a, tolerance=1e-4)
    banded = intensity_deviation(images, a, tolerance=1e-4, memory_budget=1)
    np.testing.assert_array_equal(banded.coverage, complete.coverage)
    np.testing.assert_allclose(banded.deviation, complete.deviation, rtol=0, atol=1e-3)


def test_images_that_share_nothing_have_no_mean():
    rng, a = translated([[0, 0], [100, 0]])
    spread = intensity_deviation(list(rng.uniform(size=(2, 40, 50))), a)
    assert spread.coverage.max() == 1
    with pytest.raises(ShapeError, match="No pixel is covered by all"):
        _ = spread.mean


def test_images_that_differ_in_kind_are_named():
    _, a = translated([[0, 0], [3, 0]])
    with pytest.raises(ShapeError, match=r"'shape_2' 3 channels of float64"):
        intensity_deviation([np.zeros((5, 5)), np.zeros((5, 5, 3))], a)
    with pytest.raises(ShapeError, match="one image per shape, 2; got 1"):
        intensity_deviation([np.zeros((5, 5))], a)


def test_pictures_of_slices_agree_better_the_more_the_warp_can_bend():
    slices = make_slices(11)
    which = [0, 5, 10]  # of one stain
    shapes, images = slices.shapes.take(which), [slices.images[k] for k in which]
    models = [defgpa.EuclideanGPA(), defgpa.DefGPA(defgpa.Affine()), defgpa.DefGPA()]
    rigid, affine, spline = (
        intensity_deviation(images, model.fit(shapes).alignment_).mean for model in models
    )
    assert 0 < spline < 0.75 * affine < 0.75 * rigid


# Files


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
def test_a_written_picture_is_transparent_where_it_is_masked(tmp_path, channels):
    pixels = np.random.default_rng(0).integers(1, 256, size=(6, 8, *channels), dtype=np.uint8)
    mask = np.arange(48).reshape(6, 8) % 3 > 0
    write_picture(Picture(pixels, mask, rows_down(pixels)), tmp_path / "picture.png")
    back = read_image(tmp_path / "picture.png")
    opacity = pixels[..., 3] if channels == (4,) else 255
    np.testing.assert_array_equal(back[..., -1], np.where(mask, opacity, 0))
    colours = pixels.reshape(6, 8, -1)[..., :3]
    np.testing.assert_array_equal(back[..., :-1], colours)


def test_a_picture_that_a_file_cannot_hold_is_refused(tmp_path):
    grey = np.zeros((4, 4), dtype=np.uint8)
    mask = grey == 0
    with pytest.raises(FormatError, match=r"'\.jpg' cannot hold"):
        write_picture(Picture(grey, mask, rows_down(grey)), tmp_path / "picture.jpg")
    with pytest.raises(ShapeError, match="8 bits per channel can be written; got float64"):
        write_picture(Picture(grey * 1.0, mask, rows_down(grey)), tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def test_a_missing_or_broken_image_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"no image file .*nothing\.png"):
        read_image(tmp_path / "nothing.png")
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(FormatError, match=r"broken\.png cannot be read"):
        read_image(tmp_path / "broken.png")
