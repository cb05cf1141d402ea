"""Weakly linked shapes and landmarks are caught: by the pattern, or else by the spectrum."""

from dataclasses import replace

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Dense, Iterative, ShapeError, Shapes, ThinPlateSpline
from defgpa.diagnostics.checks import check_solution, group_shapes
from defgpa.diagnostics.findings import Problem
from defgpa.tuning import DEFAULT
from support import (
    EXACT,
    FAMILIES,
    PARITY,
    assert_same_shape,
    cheapest_axes,
    left_over,
    smooth_family,
    told_among_others,
    up_to_affine,
    warned_of,
)

DIMS = pytest.mark.parametrize("d", [2, 3])


def family(d, n=8, m=50, seed=0):
    return smooth_family(seed=seed, n=n, m=m, d=d)


def kinds_of(fitted, **changed):
    """Return the problems of a fit if some of its diagnostics were others."""
    diagnostics = replace(fitted.diagnostics, **changed)
    axes = fitted.reference / np.sqrt(fitted.eigenvalues)
    names, labels = fitted.shapes.names, fitted.shapes.landmarks
    return {
        finding.problem for finding in check_solution(diagnostics, axes, names, labels, DEFAULT)
    }


def two_groups(d, n_shared, n=8, m=50):
    """Two halves of the shapes that share ``common`` landmarks."""
    points = family(d, n, m)
    points[: n // 2, (m + n_shared) // 2 :] = np.nan
    points[n // 2 :, : (m - n_shared) // 2] = np.nan
    return points


class TestLoneLandmarks:
    """Seen in one shape only: left out of the solve, placed afterwards, named."""

    def lonely(self, d, lone=(4, 17)):
        points = family(d)
        for number, j in enumerate(lone):
            points[np.arange(8) != number, j] = np.nan
        return Shapes(points, landmarks=[f"mark {j}" for j in range(50)])

    @DIMS
    def test_lone_landmarks_are_named_placed_by_their_shape_and_not_counted(self, d):
        """One seen once fits perfectly by construction: its error would flatter."""
        shapes = self.lonely(d)
        with warned_of("one shape only", "'mark 4', 'mark 17'", "left out of the solve"):
            fitted = DefGPA().fit(shapes).alignment_
        assert fitted.lone_landmarks == ("mark 4", "mark 17")
        np.testing.assert_array_equal(fitted.shapes.views, shapes.views)
        for number, j in enumerate((4, 17)):
            placed = fitted.warps[number](shapes.points[number, [j]])[0]
            np.testing.assert_allclose(fitted.reference[j], placed, **EXACT)
        without = DefGPA().fit(shapes.without([4, 17])).alignment_
        linked = np.delete(np.arange(50), [4, 17])
        np.testing.assert_array_equal(fitted.reference[linked], without.reference)
        np.testing.assert_array_equal(fitted.eigenvalues, without.eigenvalues)
        np.testing.assert_allclose(fitted.rmse_reference, without.rmse_reference, **EXACT)
        np.testing.assert_allclose(fitted.rmse_datum, without.rmse_datum, **EXACT)
        assert fitted.n_counted == shapes.visible.sum() - 2

    @DIMS
    def test_the_place_of_a_lone_landmark_does_not_move_the_others(self, d):
        """The counter-example of a solve they would have a free direction in."""
        shapes = self.lonely(d)
        points = shapes.points.copy()
        points[0, 4] += 1e3
        with warned_of("one shape only"):
            reference = DefGPA().fit(shapes).reference_
        with warned_of("one shape only"):
            new_reference = DefGPA().fit(points).reference_
        linked = np.delete(np.arange(50), 4)
        np.testing.assert_array_equal(new_reference[linked], reference[linked])

    @DIMS
    def test_a_landmark_visible_in_two_shapes_is_not_lone(self, d):
        points = family(d)
        points[2:, 4] = np.nan
        assert DefGPA().fit(points).alignment_.lone_landmarks == ()

    @DIMS
    def test_without_common_landmarks_there_is_nothing_to_align(self, d):
        for n_shared in range(d + 1):
            points = family(d, n=2)
            points[0, :25] = points[1, 25 + n_shared :] = np.nan
            with pytest.raises(ShapeError, match=rf"{n_shared} landmarks.*more than one.*{d + 1}"):
                DefGPA().fit(points)


class TestGroups:
    """Shapes that nothing holds together."""

    @DIMS
    @pytest.mark.parametrize("n_shared", [0, 1, "d"])
    def test_groups_with_too_few_common_landmarks_are_listed(self, d, n_shared):
        points = two_groups(d, d if n_shared == "d" else n_shared)
        shapes = Shapes(points, names=[f"bone {i}" for i in range(8)])
        with pytest.raises(ShapeError) as caught:
            DefGPA().fit(shapes)
        for words in (
            "2 groups",
            f"fewer than {d + 1} landmarks",
            "'bone 0', 'bone 1', 'bone 2', 'bone 3'",
            "'bone 4', 'bone 5', 'bone 6', 'bone 7'",
        ):
            assert words in str(caught.value)

    @DIMS
    @pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)])
    def test_a_few_more_common_landmarks_hold_them_together(self, d, warp):
        fitted = DefGPA(warp).fit(two_groups(d, d + 5)).alignment_
        assert fitted.findings == ()
        assert fitted.diagnostics.gap > 0.5

    @DIMS
    def test_copies_of_one_shape_are_put_together_across_the_groups(self, d):
        points = two_groups(d, d + 1)
        base = family(d)[0]
        complete = np.where(np.isnan(points), np.nan, base)
        with warned_of("directions are free"):  # nearly: d + 1 landmarks are a weak link
            fitted = DefGPA(Affine()).fit(complete).alignment_
        direct = DefGPA(Affine()).fit(np.stack([base] * 8)).alignment_
        assert fitted.rmse_reference < 1e-9
        assert_same_shape(fitted.reference, direct.reference, rtol=1e-6)

    def test_three_groups_are_listed_largest_first(self):
        points = family(2, n=7, m=60)
        for members, low in (((0, 1), 0), ((2, 3), 20), ((4, 5, 6), 40)):
            for i in members:
                points[i, :low] = points[i, low + 20 :] = np.nan
        with pytest.raises(ShapeError) as caught:
            DefGPA().fit(points)
        message = str(caught.value)
        assert "3 groups" in message
        assert message.index("shape_5") < message.index("shape_1") < message.index("shape_3")

    @DIMS
    def test_a_shape_with_too_few_landmarks_is_named(self, d):
        points = family(d)
        points[3, d:] = np.nan
        with pytest.raises(ShapeError) as caught:
            DefGPA().fit(Shapes(points, names=[f"bone {i}" for i in range(8)]))
        for words in ("'bone 3'", f"{d} visible landmarks", f"at least {d + 1}", "Drop"):
            assert words in str(caught.value)

    @DIMS
    def test_landmarks_that_no_other_shape_sees_do_not_count(self, d):
        points = family(d)
        points[3, d:20] = np.nan
        points[np.arange(8) != 3, 20:] = np.nan  # plenty of landmarks, but nobody else's
        with pytest.raises(ShapeError) as caught:
            DefGPA().fit(points)
        assert "'shape_4'" in str(caught.value)
        assert f"{d} visible landmarks that another shape sees" in str(caught.value)

    def test_fewer_landmarks_than_a_warp_needs(self):
        with pytest.raises(ShapeError, match="at least 4"):
            DefGPA().fit(family(3, m=3))


class TestLinking:
    """Two groups are one if what they see together shares enough."""

    def groups(self, *seen, least=3, m=20):
        visible = np.zeros((len(seen), m), dtype=bool)
        for row, landmarks in zip(visible, seen, strict=True):
            row[list(landmarks)] = True
        groups = group_shapes(visible, lambda shared: shared.sum(axis=1) >= least)
        return [group.tolist() for group in groups]

    def test_a_chain_is_one_group(self):
        assert self.groups(range(5), range(2, 8), range(5, 11), range(8, 14)) == [[0, 1, 2, 3]]

    def test_the_order_of_a_chain_does_not_matter(self):
        chain = [range(8, 14), range(5), range(5, 11), range(2, 8)]
        assert self.groups(*chain) == [[0, 1, 2, 3]]

    def test_two_together_may_hold_a_third_that_neither_holds_alone(self):
        pair = [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]]
        third = [0, 6, 5, 9]
        assert self.groups(*pair, third) == [[0, 1, 2]]
        assert self.groups(pair[0], third) == [[0], [1]]

    def test_two_groups_may_hold_together_as_wholes(self):
        left = [[0, 1, 2, 3, 10], [1, 2, 3, 11]]
        right = [[5, 6, 7, 10], [5, 6, 7, 11, 0]]
        assert self.groups(*left, *right) == [[0, 1, 2, 3]]

    def test_two_common_landmarks_are_not_enough(self):
        assert self.groups(range(5), range(3, 8)) == [[0], [1]]
        assert self.groups(range(5), range(3, 8), least=2) == [[0, 1]]


class TestWhatOnlyTheSpectrumShows:
    @DIMS
    def test_splines_that_interpolate_leave_any_reference_possible(self, d):
        """As many control points as landmarks and no smoothing: every reference costs nothing."""
        points = family(d, n=4, m=5**d if d == 2 else 27)
        with told_among_others("gap is nearly zero"):
            fitted = DefGPA(ThinPlateSpline(5 if d == 2 else 3, theta=0.0)).fit(points).alignment_
        assert fitted.rmse_reference < 1e-6
        assert fitted.diagnostics.gap < 1e-3

    @pytest.mark.parametrize(("gap", "worrying"), [(9e-4, True), (1.1e-3, False)])
    def test_a_gap_of_a_thousandth_is_where_worry_begins(self, gap, worrying):
        fitted = DefGPA().fit(family(2)).alignment_
        spectrum = np.array([0.1, 0.2, 0.2 / (1 - gap)])
        problems = kinds_of(fitted, spectrum=spectrum, gap=gap)
        assert (Problem.NARROW_GAP in problems) == worrying

    def test_a_flat_reference_has_no_gap_to_its_missing_axis(self):
        """Copies of one flat shape in space: beyond its two axes everything costs the same."""
        flat = np.zeros((3, 40, 3))
        flat[..., :2] = family(2, m=40)[0]
        with warned_of("lie in a plane"):
            fitted = DefGPA(Affine()).fit(flat).alignment_
        assert fitted.diagnostics.gap > 0.99

    def hinged(self, noise=0.0):
        """Two halves of one shape that share six landmarks, all on a line."""
        rng = np.random.default_rng(0)
        base = rng.normal(size=(50, 2)) * [2, 1]
        base[22:28] = np.outer(np.linspace(-1, 1, 6), [1.0, 0.5])
        points = base + noise * rng.normal(size=(8, 50, 2))
        points[:4, 28:] = points[4:, :22] = np.nan
        return points, base

    @pytest.mark.parametrize("noise", [1e-3, 1e-2, 5e-2])
    @pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline()], ids=["affine", "spline"])
    @pytest.mark.parametrize("solver", [Dense(), Iterative()], ids=["dense", "iterative"])
    def test_noise_on_the_line_does_not_hide_the_hinge(self, noise, warp, solver):
        """Both the d-th and the next eigenvalue are noise, and their gap is wide in numbers."""
        points, base = self.hinged(noise)
        with told_among_others("hinge"):
            fitted = DefGPA(warp, proportions=[4.0, 1.0], solver=solver).fit(points).alignment_
        assert fitted.diagnostics.gap > 0.2
        assert fitted.diagnostics.cohesion < 0.1
        error = np.linalg.norm(up_to_affine(fitted.reference, base) - base)
        assert error > 0.1 * np.linalg.norm(base)  # which is why it must be said

    @pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)], ids=["affine", "spline"])
    def test_four_common_landmarks_in_space_are_a_hinge_too(self, warp):
        with told_among_others("hinge"):
            DefGPA(warp, proportions="prior").fit(two_groups(3, 4, m=60))
        with warned_of("4 directions are free where 3 are usual"):
            new_reference = DefGPA(warp).fit(two_groups(3, 4, m=60)).reference_
        reference = DefGPA(warp).fit(family(3, m=60)).reference_
        assert left_over(new_reference, reference) < 0.01  # which rigidity has settled

    @pytest.mark.parametrize("name", ["2d-partial", "3d-partial"])
    @pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)], ids=["affine", "spline"])
    def test_cohesion_is_the_least_share_of_an_axis_that_shapes_see(self, name, warp):
        shapes = Shapes(smooth_family(**FAMILIES[name]))
        fitted = DefGPA(warp).fit(shapes).alignment_
        columns, _ = np.linalg.qr(cheapest_axes(shapes, warp)[1][:, : shapes.n_dims + 1])
        visible = [
            columns[is_visible] - columns[is_visible].mean(axis=0) for is_visible in shapes.visible
        ]
        squares = np.sum([np.linalg.svd(is_visible)[1] ** 2 for is_visible in visible], axis=0)
        np.testing.assert_allclose(
            fitted.diagnostics.cohesion, squares[-1] / squares.mean(), **PARITY
        )
        assert fitted.diagnostics.cohesion > 0.3

    def test_cohesion_of_full_shapes_is_one(self):
        assert DefGPA().fit(family(3)).alignment_.diagnostics.cohesion == 1

    @pytest.mark.parametrize(
        ("cohesion", "gap", "worrying"),
        [(0.09, 0.7, True), (0.11, 0.7, False), (0.09, 0.8, False), (0.0, 0.5, True)],
    )
    def test_a_hinge_worries_where_it_moves_at_little_cost(self, cohesion, gap, worrying):
        fitted = DefGPA().fit(family(2)).alignment_
        problems = kinds_of(fitted, cohesion=cohesion, gap=gap)
        assert (Problem.HINGE in problems) == worrying

    def test_common_landmarks_on_a_line_do_not_hold_two_groups_together(self):
        """The pattern is content with six common landmarks; the spectrum is not."""
        with told_among_others("gap is nearly zero"):
            DefGPA(Affine(), proportions=[4.0, 1.0]).fit(self.hinged()[0])

    def test_the_prior_is_refused_where_common_landmarks_lie_on_a_line(self):
        with pytest.raises(ShapeError, match=r"'shape_1'.*collinear.*proportions="):
            DefGPA(Affine(), proportions="prior").fit(self.hinged()[0])

    def test_an_axis_that_a_few_landmarks_carry_is_reported(self):
        """Two shapes see three landmarks far away; splines that bend freely put them anywhere."""
        points = family(2, m=60)
        points[2:, :3] = np.nan
        points[:2, :3] += 20 * np.random.default_rng(0).normal(size=(2, 3, 2))
        findings = DefGPA(ThinPlateSpline(5, theta=0.0)).align(points).findings
        (carried,) = [finding for finding in findings if finding.problem is Problem.CARRIED_BY_FEW]
        assert carried.landmarks[:2] == ("2", "3")

    def test_an_axis_that_rigidity_passes_by_need_not_be_carried_by_all(self):
        """Of six axes that cost about the same the fourth is bent by few landmarks alone."""
        points = smooth_family(seed=7, n=5, m=90)
        soft = DefGPA(ThinPlateSpline(7, smoothing=1e-8)).align(points)
        assert soft.diagnostics.n_agreed_axes >= 2
        assert Problem.CARRIED_BY_FEW not in {finding.problem for finding in soft.findings}

    @DIMS
    def test_well_linked_shapes_are_not_reported(self, d):
        points = smooth_family(seed=1, n=8, m=50, d=d, missing=0.3)
        assert DefGPA().fit(points).alignment_.findings == ()
