"""What a robust fit rejects is explained: exchanged, shifted together, reversed, misplaced."""

import numpy as np
import pytest

import defgpa
from defgpa import DefGPA, complete
from defgpa.datasets import smooth_family
from defgpa.diagnostics.suspects import explain_rejection
from defgpa.statistics.sample import build_sample


@pytest.fixture(params=[2, 3], ids=["2-D", "3-D"])
def points(request):
    family = smooth_family(20, 30, request.param, bend=0.05, noise=0.01, seed=4)
    return np.array(family.shapes.points)


def explain(points):
    suspects = explain_rejection(DefGPA(robust=True).align(points))
    return {(suspect.shape, suspect.reason, suspect.landmarks) for suspect in suspects}


def test_exchanged_pairs_are_recognised(points):
    points[3, [4, 20]] = points[3, [20, 4]]
    points[3, [7, 9]] = points[3, [9, 7]]
    expected = {("shape_4", "exchanged", ("5", "21")), ("shape_4", "exchanged", ("8", "10"))}
    assert explain(points) == expected


def test_misplaced_landmark_is_shown_with_where_the_others_have_it(points):
    right = points[5, 11].copy()
    points[5, 11] += 0.9
    (suspect,) = explain_rejection(DefGPA(robust=True).align(points))
    assert (suspect.shape, suspect.reason, suspect.landmarks) == ("shape_6", "misplaced", ("12",))
    np.testing.assert_array_equal(suspect.points[0], points[5, 11])
    assert np.linalg.norm(suspect.expected[0] - right) < 0.1


def test_block_of_neighbours_that_moved_is_one_suspect(points):
    near = np.sort(np.argsort(np.linalg.norm(points[8] - points[8, 2], axis=1))[:3])
    points[8, near] += 0.6 * np.eye(points.shape[2])[0]
    assert explain(points) == {("shape_9", "shifted", tuple(str(j + 1) for j in near))}


def test_shape_in_reverse_order_is_recognised(points):
    points[2] = points[2, ::-1]
    assert explain(points) == {("shape_3", "reversed", ())}


def test_shape_of_another_kind_is_far(points):
    points[2] = np.random.default_rng(0).normal(size=points[2].shape)
    assert explain(points) == {("shape_3", "far", ())}


def test_least_squares_have_no_suspects(points):
    assert explain_rejection(DefGPA().align(points)) == ()


def test_rejected_landmarks_are_analysed_as_measured_or_completed(points):
    right = points[5, 11].copy()
    clean = build_sample(DefGPA().align(points)).tangents.var(axis=0).sum()
    points[5, 11] += 0.9
    alignment = DefGPA(robust=True).align(points)
    done = complete(alignment)
    assert done.estimated.sum() == 1
    assert done.estimated[5, 11]
    assert np.linalg.norm(done.shapes.points[5, 11] - right) < 0.1
    completed = build_sample(alignment, rejected="completed").tangents.var(axis=0).sum()
    assert completed == pytest.approx(clean, rel=0.05)
    assert build_sample(alignment).tangents.var(axis=0).sum() > 1.2 * clean
    assert np.linalg.norm(alignment.superimposed[5, 11] - alignment.reference[11]) > 0.5


def test_effect_and_breakdown_are_reported(points):
    points[5, 11] += 0.9
    (finding,) = DefGPA(robust=True).align(points).findings
    assert 0.0 < finding.values["change"] < 0.2
    assert "1 landmark that does not fit" in str(finding)
    assert "with them the reference would change by" in str(finding)
    points[4, :11] += np.random.default_rng(1).normal(size=points[4, :11].shape)
    summary = {f.problem: f for f in DefGPA(robust=True).align(points).findings}
    breakdown = summary["robust-breakdown"]
    assert breakdown.shapes == ("shape_5",)
    assert "of shapes 'shape_5' more than a third" in str(breakdown)


def test_tracked_points_of_low_likelihood_do_not_bend_the_reference(tmp_path):
    """A DeepLabCut-like sequence: the error is that of the good points, by a cut or robustly."""
    rng = np.random.default_rng(3)
    family = smooth_family(30, 20, 2, bend=0.05, noise=0.01, seed=6)
    points = np.array(family.shapes.points)
    is_wrong = rng.random(points.shape[:2]) < 0.1
    points[is_wrong] += rng.normal(size=(int(is_wrong.sum()), 2))
    likelihood = np.where(is_wrong, 0.2, rng.uniform(0.9, 1.0, size=is_wrong.shape))
    heads = [
        ["scorer", *["net"] * 60],
        ["bodyparts", *[f"p{j}" for j in range(20) for _ in range(3)]],
        ["coords", *["x", "y", "likelihood"] * 20],
    ]
    rows = np.concatenate([points, likelihood[..., None]], axis=2).reshape(30, -1)
    lines = [",".join(head) for head in heads]
    lines += [f"{i}," + ",".join(map(repr, row)) for i, row in enumerate(rows.tolist())]
    (tmp_path / "mouse.csv").write_text("\n".join(lines))

    def measure(shapes, **options):
        reference = DefGPA(**options).align(shapes).reference
        return defgpa.procrustes.procrustes_distance(reference, family.truth)

    with pytest.warns(defgpa.DefgpaWarning, match="Likelihoods are landmark weights"):
        cut = defgpa.read_shapes(tmp_path / "mouse.csv")
    with pytest.warns(defgpa.DefgpaWarning, match="0 of 600 points are below 0 and"):
        read = defgpa.read_shapes(tmp_path / "mouse.csv", min_likelihood=0)
    np.testing.assert_allclose(read.weights, likelihood)
    good = measure(np.where(is_wrong[..., None], np.nan, points))
    assert measure(cut) < 1.1 * good
    assert measure(read, robust=True) < 1.1 * good
    assert measure(read) < 0.7 * measure(points)
