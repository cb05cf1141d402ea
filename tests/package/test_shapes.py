"""Shapes: what is accepted, what is refused, and in which words."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from defgpa import DefGPA, DefgpaError, ShapeError, Shapes
from defgpa.geometry import measure_geometry
from defgpa.shapes import as_shapes
from support import smooth_family

FULL = smooth_family(seed=0, n=4, m=30)
PARTIAL = smooth_family(seed=1, n=5, m=30, d=3, missing=0.2)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 1.0, size=FULL.shape[:2])


def with_entry(where, value, points=FULL):
    points = points.copy()
    points[where] = value
    return points


class TestWhatIsAccepted:
    def test_an_array_with_nan(self):
        shapes = Shapes(PARTIAL)
        assert (shapes.n_shapes, shapes.n_landmarks, shapes.n_dims) == PARTIAL.shape
        np.testing.assert_array_equal(shapes.points, PARTIAL)
        np.testing.assert_array_equal(shapes.visible, ~np.isnan(PARTIAL[..., 0]))
        np.testing.assert_array_equal(shapes.views, shapes.visible.sum(axis=0))

    @pytest.mark.parametrize(
        ("points", "expected"),
        [
            (list(PARTIAL), PARTIAL),
            (tuple(PARTIAL), PARTIAL),
            (FULL.tolist(), FULL),
            (np.ma.masked_array(FULL), FULL),
        ],
        ids=["list", "tuple", "nested lists", "masked array without a mask"],
    )
    def test_any_container_of_numbers(self, points, expected):
        assert Shapes(points) == Shapes(expected)

    def test_none_for_a_coordinate_that_is_not_there(self):
        nested = FULL.tolist()
        nested[1][2] = [None, None]
        assert not Shapes(nested).visible[1, 2]

    def test_a_masked_array(self):
        masked = np.ma.masked_array(FULL, mask=np.zeros(FULL.shape, dtype=bool))
        masked[1, 4] = np.ma.masked
        shapes = Shapes(masked)
        assert not shapes.visible[1, 4]
        assert shapes.visible.sum() == FULL.shape[0] * FULL.shape[1] - 1

    def test_a_list_of_masked_arrays(self):
        parts = [
            np.ma.masked_array(shape, mask=np.zeros(shape.shape, dtype=bool)) for shape in FULL
        ]
        parts[2][7] = np.ma.masked
        assert np.argwhere(~Shapes(parts).visible).tolist() == [[2, 7]]

    @pytest.mark.parametrize("kind", [bool, int, float])
    def test_points_plus_visible(self, kind):
        visible = np.ones(FULL.shape[:2], dtype=bool)
        visible[0, 3] = visible[2, 5] = False
        shapes = Shapes(FULL, visible=visible.astype(kind))
        np.testing.assert_array_equal(shapes.visible, visible)
        assert np.isnan(shapes.points[0, 3]).all()

    def test_visible_hides_but_cannot_show(self):
        """A landmark without coordinates was not seen, whatever is said of it."""
        shapes = Shapes(PARTIAL, visible=np.ones(PARTIAL.shape[:2], dtype=bool))
        np.testing.assert_array_equal(shapes.visible, ~np.isnan(PARTIAL[..., 0]))

    def test_what_is_hidden_may_be_anything(self):
        points = FULL.copy()
        points[1, 2] = [np.inf, np.nan]
        visible = np.ones(FULL.shape[:2], dtype=bool)
        visible[1, 2] = False
        assert np.isnan(Shapes(points, visible=visible).points[1, 2]).all()

    @pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8, np.float64])
    def test_any_real_numbers_become_float64(self, kind):
        points = np.arange(24).reshape(2, 6, 2).astype(kind)
        assert Shapes(points).points.dtype == np.float64

    def test_shapes_of_shapes(self):
        named = Shapes(FULL, names=list("abcd"))
        assert as_shapes(named) is named
        assert Shapes(named).points is not named.points

    def test_names_and_labels(self):
        names, labels = [f"skull {i}" for i in range(4)], [f"p{j}" for j in range(30)]
        shapes = Shapes(FULL, names=names, landmarks=labels)
        assert shapes.names == tuple(names)
        assert shapes.landmarks == tuple(labels)
        np.testing.assert_array_equal(shapes["skull 2"], FULL[2])
        np.testing.assert_array_equal(shapes[-1], FULL[3])

    def test_default_names_count_from_one(self):
        shapes = Shapes(FULL)
        assert shapes.names == ("shape_1", "shape_2", "shape_3", "shape_4")
        assert shapes.landmarks[:3] == ("1", "2", "3")

    def test_faces_and_metadata(self):
        shapes = Shapes(FULL, faces=[[0, 1, 2]], metadata={"images": list("abcd"), "space": "LPS"})
        np.testing.assert_array_equal(shapes.faces, [[0, 1, 2]])
        assert shapes.metadata == {"images": ("a", "b", "c", "d"), "space": "LPS"}

    @pytest.mark.parametrize("links", [np.array([[0, 1], [1, 40]]), [[0, 1], 7, ("a", 2)], 5, None])
    def test_links_of_any_kind_are_pairs_of_landmarks(self, links):
        shapes = Shapes(FULL, metadata={"links": links})
        assert shapes.links == ([(0, 1)] if np.iterable(links) else [])

    def test_repr_counts_shapes_landmarks_and_missing(self):
        assert repr(Shapes(FULL)) == "Shapes(4 shapes, 30 landmarks, 2-D, none missing)"
        one_hole = with_entry((1, 3), np.nan)
        expected = "Shapes(4 shapes, 30 landmarks, 2-D, 1 of 120 missing)"
        assert repr(Shapes(one_hole)) == expected


class TestTheyDoNotChange:
    def test_arrays_cannot_be_written(self):
        shapes = Shapes(PARTIAL, faces=[[0, 1, 2]])
        for array in (shapes.points, shapes.visible, shapes.views, shapes.faces):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_attributes_cannot_be_set(self):
        with pytest.raises(AttributeError, match="do not change"):
            Shapes(FULL).points = FULL

    def test_metadata_cannot_be_set(self):
        with pytest.raises(TypeError):
            Shapes(FULL, metadata={"space": "LPS"}).metadata["space"] = "RAS"

    def test_a_later_change_of_the_given_array_does_not_change_shapes(self):
        points = FULL.copy()
        shapes = Shapes(points)
        points[:] = 0
        np.testing.assert_array_equal(shapes.points, FULL)

    @pytest.mark.parametrize(
        "copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
    )
    def test_copies_are_equal_and_as_fixed(self, copied):
        shapes = Shapes(PARTIAL, names=list("abcde"), faces=[[0, 1, 2]], metadata={"space": "LPS"})
        again = copied(shapes)
        assert again == shapes
        assert again.metadata == shapes.metadata
        np.testing.assert_array_equal(again.faces, shapes.faces)
        with pytest.raises(ValueError, match="read-only"):
            again.points[0] = 0


class TestParts:
    def test_some_of_the_shapes(self):
        shapes = Shapes(PARTIAL, names=list("abcde"), metadata={"groups": list("xyxyx")})
        piece = shapes.take([3, 0])
        np.testing.assert_array_equal(piece.points, PARTIAL[[3, 0]])
        assert piece.names == ("d", "a")
        assert piece.metadata["groups"] == ("y", "x")

    def test_without_some_landmarks(self):
        shapes = Shapes(PARTIAL, faces=[[0, 1, 2], [3, 4, 5]])
        piece = shapes.without([1, 7])
        np.testing.assert_array_equal(piece.points, np.delete(PARTIAL, [1, 7], axis=1))
        assert "2" not in piece.landmarks
        np.testing.assert_array_equal(piece.faces, [[2, 3, 4]])

    def test_a_shape_taken_twice_is_refused(self):
        with pytest.raises(ShapeError, match="'shape_2' occurs more than once"):
            Shapes(FULL).take([1, 1])

    def test_leaving_out_every_landmark_is_refused(self):
        with pytest.raises(ShapeError, match="There are no landmarks"):
            Shapes(FULL).without(range(30))

    def test_parts_are_as_immutable_as_shapes_made_from_their_points(self):
        shapes = Shapes(PARTIAL, weights=np.ones((5, 30)), faces=[[0, 1, 2]])
        for piece in (shapes.take([3, 0]), shapes.without([7])):
            again = Shapes.specimens(piece.points, weights=piece.weights)
            assert (piece.n_shapes, piece.n_landmarks) == (again.n_shapes, again.n_landmarks)
            for array in (piece.points, piece.weights, piece.faces):
                assert not array.flags.writeable
                assert array.flags.c_contiguous

    def test_other_points_for_the_same_names(self):
        shapes = Shapes(FULL, names=list("abcd"))
        assert shapes.with_points(2 * FULL).names == shapes.names

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(arrays(bool, (5, 9)))
    def test_any_mask_comes_back(self, mask):
        shapes = Shapes.specimens(np.ones((5, 9, 3)), visible=mask)
        np.testing.assert_array_equal(shapes.visible, mask)
        np.testing.assert_array_equal(shapes.views, mask.sum(axis=0))

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 29), unique=True, max_size=29))
    def test_landmarks_left_out_are_gone_and_the_others_are_not(self, gone):
        piece = Shapes(FULL).without(gone)
        assert set(piece.landmarks).isdisjoint(str(j + 1) for j in gone)
        assert piece.n_landmarks == 30 - len(gone)


class NotNumbers:
    """Something that is no array at all."""


BAD = {
    "nothing": (None, {}, ["array (shapes, landmarks, coordinates)", "0 dimensions"]),
    "an empty list": ([], {}, ["no shapes"]),
    "no landmarks": (np.zeros((3, 0, 2)), {}, ["There are no landmarks", "(3, 0, 2)"]),
    "one shape alone": (FULL[:1], {}, ["At least 2 shapes", "got 1"]),
    "two dimensions": (FULL[0], {}, ["2 dimensions", "(30, 2)"]),
    "four dimensions": (FULL[None], {}, ["4 dimensions", "(1, 4, 30, 2)"]),
    "d = 1": (FULL[..., :1], {}, ["2 or 3 coordinates", "got 1"]),
    "d = 4": (np.zeros((3, 9, 4)), {}, ["2 or 3 coordinates", "got 4"]),
    "strings": ([[["a", "b"]] * 5] * 3, {}, ["must be numbers", "read_shapes"]),
    "a path": ("wings.tps", {}, ["must be numbers", "read_shapes"]),
    "complex numbers": (FULL + 1j, {}, ["real numbers", "complex"]),
    "objects": ([[[NotNumbers()] * 2] * 5] * 3, {}, ["must be numbers"]),
    "a dictionary": ({"a": FULL[0]}, {}, ["must be numbers"]),
    "ragged shapes": (
        [FULL[0], FULL[1][:-1]],
        {},
        ["same landmarks", "shape number 1", "(29, 2)", "(30, 2)", "NaN"],
    ),
    "ragged rows": ([[[1.0, 2.0], [3.0]], FULL[0]], {}, ["Shape number 0", "different lengths"]),
    "half missing": (
        with_entry((1, 3, 1), np.nan),
        {},
        ["'4'", "'shape_2'", "half missing", "NaN for all"],
    ),
    "infinite": (with_entry((2, 5, 0), np.inf), {}, ["'6'", "'shape_3'", "infinite", "inf"]),
    "minus infinite": (with_entry((2, 5), -np.inf), {}, ["'6'", "'shape_3'", "infinite"]),
    "a landmark missing everywhere": (
        with_entry((slice(None), 7), np.nan),
        {},
        ["'8'", "missing in all shapes", "Drop such landmarks"],
    ),
    "a shape without landmarks": (
        with_entry(2, np.nan),
        {},
        ["All landmarks of shape 'shape_3' are missing. Drop"],
    ),
    "weights of another size": (FULL, {"weights": np.ones((4, 29))}, ["(4, 30)", "(4, 29)"]),
    "one row of weights": (FULL, {"weights": np.ones(30)}, ["per shape and landmark", "(30,)"]),
    "negative weight": (
        FULL,
        {"weights": with_entry((1, 3), -0.5, WEIGHTS)},
        ["weight of landmark '4' of shape 'shape_2' is -0.5", "Use 0"],
    ),
    "NaN as weight": (
        FULL,
        {"weights": with_entry((1, 3), np.nan, WEIGHTS)},
        ["'4'", "'shape_2'", "is nan", "finite"],
    ),
    "infinite weight": (
        FULL,
        {"weights": with_entry((1, 3), np.inf, WEIGHTS)},
        ["'4'", "'shape_2'", "is inf", "finite"],
    ),
    "words as weights": (
        FULL,
        {"weights": [[1.0] * 30] * 3 + [[1.0] * 29 + ["good"]]},
        ["one number per shape", "landmark '30' of shape 'shape_4' has 'good'. Use 0"],
    ),
    "the name of a column as weights": (
        FULL,
        {"weights": "likelihood"},
        ["one number per shape and landmark, (4, 30); got 'likelihood'."],
    ),
    "rows of weights of unequal length": (
        FULL,
        {"weights": [[1.0] * 30] * 3 + [[1.0] * 29]},
        ["(4, 30); shape 'shape_4' has 29."],
    ),
    "weights by landmark": (FULL, {"weights": np.ones((30, 4))}, ["(30, 4). Transpose them."]),
    "a shape of weight 0": (
        FULL,
        {"weights": with_entry(2, 0.0, WEIGHTS)},
        ["All landmarks of shape 'shape_3' are missing or have weight 0. Drop"],
    ),
    "a landmark of weight 0": (
        FULL,
        {"weights": with_entry((slice(None), 7), 0.0, WEIGHTS)},
        ["Landmark '8' is missing or has weight 0 in all shapes. Drop"],
    ),
    "too few names": (FULL, {"names": ["a", "b"]}, ["one name per shape", "4", "got 2"]),
    "names twice": (FULL, {"names": list("abca")}, ["unique", "'a'"]),
    "one string of names": (FULL, {"names": "abcd"}, ["list of strings"]),
    "a number as names": (FULL, {"names": 4}, ["list of strings", "4"]),
    "too many labels": (
        FULL,
        {"landmarks": [str(j) for j in range(31)]},
        ["one label per landmark", "30", "got 31"],
    ),
    "labels twice": (FULL, {"landmarks": ["x"] * 30}, ["unique", "'x'"]),
    "visible of another size": (FULL, {"visible": np.ones((4, 29))}, ["'visible'", "(4, 29)"]),
    "visible that is no mask": (FULL, {"visible": np.full((4, 30), 2)}, ["'visible'", "true or"]),
    "faces of four corners": (FULL, {"faces": [[0, 1, 2, 3]]}, ["'faces'", "(k, 3)"]),
    "faces beyond the landmarks": (FULL, {"faces": [[0, 1, 30]]}, ["0 to 29", "30"]),
    "faces below zero": (FULL, {"faces": [[-1, 0, 1]]}, ["0 to 29", "-1"]),
    "faces between landmarks": (FULL, {"faces": [[0.5, 0, 1]]}, ["'faces'", "landmark numbers"]),
    "metadata that does not fit": (
        FULL,
        {"metadata": {"images": ["a"]}},
        ["'images'", "one entry per shape", "got 1"],
    ),
    "one group for all shapes": (
        FULL,
        {"metadata": {"groups": 5}},
        ["'groups' must have one entry per shape, 4; got 5"],
    ),
    "metadata that is no mapping": (FULL, {"metadata": ["a"]}, ["mapping", "got ['a']"]),
    "ragged faces": (FULL, {"faces": [[0, 1], [2]]}, ["'faces'", "different lengths"]),
    "a ragged mask": (FULL, {"visible": [[1], [1, 0]]}, ["'visible'", "different lengths"]),
    "an array without axes as names": (FULL, {"names": np.array(3)}, ["list of strings"]),
}


@pytest.mark.parametrize(("points", "options", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_sentence(points, options, words):
    with pytest.raises(ShapeError) as caught:
        Shapes(points, **options)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert len(message) < 400
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("points", "words"),
    [(points, words) for points, options, words in BAD.values() if not options],
    ids=[name for name, (_, options, _) in BAD.items() if not options],
)
def test_fit_refuses_bad_arrays_in_the_words_of_shapes(points, words):
    with pytest.raises(DefgpaError) as caught:
        DefGPA().fit(points)
    assert all(word in str(caught.value) for word in words)


def test_a_shape_that_is_not_there_is_asked_for_in_vain():
    shapes = Shapes(FULL, names=list("abcd"))
    with pytest.raises(ShapeError, match=r"no shape called 'e'.*'a', 'b', 'c', 'd'"):
        shapes["e"]
    with pytest.raises(ShapeError, match="no shape number 4; they are numbered 0 to 3"):
        shapes[4]
    with pytest.raises(ShapeError, match="Got True among them"):
        shapes[True, 0]
    for find in (shapes.index, shapes.drop, shapes.mirror, shapes.take, shapes.__getitem__):
        for wanted in (1.5, None, [None], [[0, 1]], [4], ["e"], [False], object()):
            with pytest.raises(ShapeError):
                find(wanted)


class TestSpecimens:
    """What one file holds, or new specimens: they need not make a set that can be aligned."""

    def test_one_shape_is_enough(self):
        assert len(Shapes.specimens(FULL[:1])) == 1

    def test_a_shape_may_be_all_missing(self):
        assert Shapes.specimens(with_entry(2, np.nan)).visible[2].sum() == 0

    def test_a_landmark_may_be_missing_in_all_specimens(self):
        assert Shapes.specimens(with_entry((slice(None), 7), np.nan)).views[7] == 0

    def test_half_a_landmark_is_refused_of_specimens(self):
        with pytest.raises(ShapeError, match="half missing"):
            Shapes.specimens(with_entry((1, 3, 1), np.nan))

    def test_a_fit_refuses_one_specimen(self):
        with pytest.raises(ShapeError, match="At least 2 shapes"):
            DefGPA().fit(Shapes.specimens(FULL[:1]))


class TestWeights:
    """How much each landmark counts; none at all equals a missing landmark."""

    def test_visible_landmarks_count_one_without_weights(self):
        shapes = Shapes(PARTIAL)
        assert not shapes.has_weights
        np.testing.assert_array_equal(shapes.weights, shapes.visible)

    def test_given_weights_are_kept_as_they_are(self):
        shapes = Shapes(FULL, weights=WEIGHTS)
        assert shapes.has_weights
        np.testing.assert_array_equal(shapes.weights, WEIGHTS)
        assert repr(shapes) == "Shapes(4 shapes, 30 landmarks, 2-D, none missing, weighted)"

    def test_weights_cannot_be_written_nor_changed_from_outside(self):
        weights = WEIGHTS.copy()
        shapes = Shapes(FULL, weights=weights)
        weights[:] = 9.0
        np.testing.assert_array_equal(shapes.weights, WEIGHTS)
        for array in (shapes.weights, shapes.relative_weights, Shapes(FULL).weights):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_a_missing_landmark_has_weight_0_whatever_was_given(self):
        weights = np.ones(PARTIAL.shape[:2])
        weights[np.isnan(PARTIAL[..., 0])] = np.nan
        np.testing.assert_array_equal(
            Shapes(PARTIAL, weights=weights).weights, ~np.isnan(PARTIAL[..., 0])
        )

    def test_a_landmark_of_weight_0_is_missing(self):
        shapes = Shapes(FULL, weights=with_entry((1, 4), 0.0, np.ones((4, 30))))
        missing = Shapes(with_entry((1, 4), np.nan))
        assert shapes == missing
        assert not shapes.visible[1, 4]
        assert np.isnan(shapes.points[1, 4]).all()
        np.testing.assert_array_equal(shapes.views, missing.views)

    def test_the_point_of_a_landmark_of_weight_0_may_be_anything(self):
        points = with_entry((1, 2), [np.inf, np.nan])
        assert not Shapes(points, weights=with_entry((1, 2), 0.0, WEIGHTS)).visible[1, 2]

    @pytest.mark.parametrize("constant", [1.0, 0.3, 7e200])
    def test_equal_weights_are_relatively_one(self, constant):
        shapes = Shapes(PARTIAL, weights=np.full(PARTIAL.shape[:2], constant))
        np.testing.assert_array_equal(shapes.relative_weights, shapes.visible)

    def test_a_common_factor_has_no_effect_on_relative_weights(self):
        relative = Shapes(FULL, weights=WEIGHTS).relative_weights
        np.testing.assert_allclose(relative, WEIGHTS / WEIGHTS.mean(), rtol=1e-14)
        scaled = Shapes(FULL, weights=3e305 * WEIGHTS).relative_weights
        np.testing.assert_allclose(scaled, relative, rtol=1e-14)

    @pytest.mark.parametrize(
        "copied",
        [
            copy.copy,
            copy.deepcopy,
            lambda shapes: pickle.loads(pickle.dumps(shapes)),
            Shapes,
            lambda shapes: shapes.with_points(2.0 * FULL),
            lambda shapes: shapes.with_metadata(space="LPS"),
            lambda shapes: shapes.mirror(["shape_2"]),
            lambda shapes: shapes[:],
        ],
    )
    def test_copies_keep_the_weights(self, copied):
        again = copied(Shapes(FULL, weights=WEIGHTS))
        assert again.has_weights
        np.testing.assert_array_equal(again.weights, WEIGHTS)

    def test_parts_have_their_weights(self):
        shapes = Shapes(FULL, weights=WEIGHTS)
        np.testing.assert_array_equal(shapes.take([3, 0]).weights, WEIGHTS[[3, 0]])
        np.testing.assert_array_equal(shapes.drop(["shape_2"]).weights, WEIGHTS[[0, 2, 3]])
        weights = np.delete(WEIGHTS, [1, 7], axis=1)
        np.testing.assert_array_equal(shapes.without([1, 7]).weights, weights)

    def test_a_landmark_that_gets_coordinates_gets_the_mean_weight(self):
        weights = with_entry((1, 4), 0.0, WEIGHTS)
        filled = Shapes(FULL, weights=weights).with_points(FULL)
        assert filled.visible.all()
        assert filled.weights[1, 4] == pytest.approx(weights.sum() / 119)
        np.testing.assert_array_equal(filled.weights[2:], WEIGHTS[2:])

    def test_weights_are_replaced_and_removed(self):
        shapes = Shapes(FULL, names=list("abcd"))
        assert shapes.with_weights(WEIGHTS).names == shapes.names
        assert shapes.with_weights(WEIGHTS) == Shapes(FULL, names=list("abcd"), weights=WEIGHTS)
        assert shapes.with_weights(WEIGHTS).with_weights(None) == shapes

    def test_shapes_of_other_weights_differ(self):
        assert Shapes(FULL, weights=WEIGHTS) != Shapes(FULL)
        assert Shapes(FULL, weights=np.ones((4, 30))) == Shapes(FULL)


class TestGeometry:
    """Centres, sizes and axes take the weights."""

    def test_a_weight_of_two_counts_a_landmark_twice(self):
        weights = np.ones((4, 30))
        weights[:, :10] = 2.0
        weighted = measure_geometry(FULL, np.ones((4, 30), dtype=bool), weights)
        repeated = np.concatenate([FULL, FULL[:, :10]], axis=1)
        expected = measure_geometry(repeated, np.ones((4, 40), dtype=bool))
        assert_same_geometry(weighted, expected)
        np.testing.assert_array_equal(weighted.mass, 40.0)
        np.testing.assert_array_equal(weighted.count, 30.0)

    def test_a_weight_of_0_equals_a_missing_landmark(self):
        rng = np.random.default_rng(3)
        visible = rng.random((4, 30)) > 0.3
        weights = np.where(visible, rng.uniform(0.5, 2.0, size=(4, 30)), 0.0)
        points = np.where(visible[..., None], FULL, np.nan)
        partial = measure_geometry(points, visible, weights)
        complete = measure_geometry(FULL, np.ones((4, 30), dtype=bool), weights)
        assert_same_geometry(partial, complete)
        np.testing.assert_array_equal(partial.centred[~visible], 0.0)
        assert_same_geometry(
            partial[1:3], measure_geometry(points[1:3], visible[1:3], weights[1:3])
        )

    def test_equal_weights_are_left_out(self):
        visible = ~np.isnan(PARTIAL[..., 0])
        geometry = measure_geometry(PARTIAL, visible, 0.25 * visible)
        assert geometry.weights is None
        np.testing.assert_array_equal(geometry.mass, visible.sum(axis=1))


def assert_same_geometry(geometry, expected):
    for name in ("mass", "centre", "size", "scatter", "extents"):
        np.testing.assert_allclose(getattr(geometry, name), getattr(expected, name), rtol=1e-11)


def test_many_culprits_are_not_all_listed():
    points = FULL.copy()
    points[:, :20] = np.nan
    with pytest.raises(ShapeError, match="and 14 more"):
        Shapes(points)


def test_equality_is_of_points_names_and_labels():
    assert Shapes(PARTIAL) == Shapes(PARTIAL.copy())
    assert Shapes(FULL) != Shapes(FULL + 1)
    assert Shapes(FULL) != Shapes(FULL, names=list("abcd"))
    assert Shapes(FULL) != FULL.tolist()


def test_a_slice_a_list_or_a_mask_is_shapes_and_a_number_or_a_name_is_points():
    shapes = Shapes(FULL, names=["a", "b", "c", "d"], metadata={"groups": list("pqrs")})
    assert shapes[1:3].names == ("b", "c")
    assert shapes[1:3].metadata["groups"] == ("q", "r")
    assert shapes[::-1].names == ("d", "c", "b", "a")
    assert shapes[[3, 1]].names == ("d", "b")
    assert shapes[np.arange(4) > 2].names == shapes.drop([True, True, True, False]).names == ("d",)
    assert shapes[["b", 0]].names == ("b", "a")
    np.testing.assert_array_equal(shapes[-1], FULL[3])
    np.testing.assert_array_equal(shapes[np.int64(2)], shapes["c"])
    with pytest.raises(ShapeError, match="There are no shapes"):
        shapes[4:]


def test_shapes_are_dropped_and_mirrored_by_name():
    shapes = Shapes(FULL, names=["a", "b", "c", "d"], metadata={"groups": list("pqrs")})
    assert shapes.drop([]) == shapes
    assert shapes.drop(["d", "b", "d"]).names == ("a", "c")
    assert shapes.drop(["d", "b"]).metadata["groups"] == ("p", "r")
    turned = shapes.mirror(["b", "b"])
    np.testing.assert_array_equal(turned["b"], FULL[1] * [-1, 1])
    np.testing.assert_array_equal(turned["a"], FULL[0])
    for change in (shapes.drop, shapes.mirror):
        with pytest.raises(ShapeError, match="no shape called 'z'"):
            change(["z"])


def test_more_is_known_of_the_same_shapes():
    shapes = Shapes(FULL, metadata={"space": "LPS"})
    more = shapes.with_metadata(groups=list("pqrs"))
    assert more == shapes
    assert dict(more.metadata) == {"space": "LPS", "groups": ("p", "q", "r", "s")}
    assert dict(more.with_metadata(space=None).metadata) == {"groups": ("p", "q", "r", "s")}


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        (["p1"], r"There is no landmark called 'p1'\. The nearest are: 'q1'"),
        (
            ["zzz\x1b[2J"],
            r"There is no landmark called 'zzz\\x1b\[2J'\. There are: 'root', 'tip', 'q1'\.",
        ),
        ("root", "Give a list of landmarks, by number from 0 or by name. Got 'root' instead"),
        (None, "Give a list of landmarks"),
        ([3], "There is no landmark number 3; they are numbered 0 to 2"),
        ([-4], "There is no landmark number -4"),
        ([1.5], "must be numbers from 0, or names. Got 1.5 among them"),
        ([True], "A mask has one entry per landmark, 3; got 1"),
        ([True, 0], "Got True among them"),
        ([None], "Got None among them"),
        ([[0, 1]], r"Got \[0, 1\] among them"),
        ([float("nan")], "Got nan among them"),
        ([10**40], "There is no landmark number 1000"),
        (["x" * 5000], "There is no landmark"),
    ],
)
def test_a_landmark_that_is_not_there_is_named_with_the_nearest(landmarks, message):
    points = np.random.default_rng(0).normal(size=(2, 3, 2))
    shapes = Shapes(points, landmarks=["root", "tip", "q1"], names=["a", "b"])
    with pytest.raises(ShapeError, match=message) as error:
        shapes.without(landmarks)
    assert len(str(error.value)) < 300
    assert shapes.without(["tip", 2, np.int64(-1)]).landmarks == ("root",)
    assert shapes.take(["b", 0]).names == ("b", "a")
    with pytest.raises(ShapeError, match="There is no shape called 'c'"):
        shapes.take(["c"])
