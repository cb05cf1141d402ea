"""Each check reports what the diagnostics of a solution show, and nothing else."""

from types import SimpleNamespace

import numpy as np
import pytest

from defgpa.diagnostics.checks import check_solution
from defgpa.diagnostics.findings import Problem
from defgpa.tuning import DEFAULT

AXES = np.full((40, 2), 40**-0.5)


def solution(axes=AXES, **facts):
    """Return what `check_solution` reports of a sound solution with some other facts."""
    sound = {
        "votes": np.ones(5, dtype=int),
        "free_directions": np.zeros(5, dtype=int),
        "n_agreed_axes": 0,
        "condition": np.ones(5),
        "offset": 0.0,
        "extent": 1.0,
        "translation_cost": 0.0,
        "spectrum": np.array([0.1, 0.2, 1.0, 2.0]),
        "gap": 0.8,
        "cohesion": 1.0,
        "residuals": np.zeros(axes.shape[1]),
        "converged": True,
        "n_products": 0,
        "proportions": "rigid",
        "similarity_residual": 0.1,
        "looseness": 0.0,
        "proportions_determined": True,
        "proportions_converged": True,
        "n_dims": 2,
        "rounds": 3,
    }
    labels = np.arange(len(axes)).astype(str)
    facts = SimpleNamespace(**sound | facts)
    return tuple(check_solution(facts, axes, list("abcde"), labels, DEFAULT))


def test_sound_solution_has_no_findings():
    assert solution() == ()


@pytest.mark.parametrize(
    ("n_axes", "looseness", "problems"),
    [
        (2, 1.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 0.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 1.0, []),  # rigidity does not hold the parts: the hinge is reported instead
    ],
)
def test_descent_without_end_is_a_finding_unless_a_hinge_is(n_axes, looseness, problems):
    findings = solution(
        proportions_converged=False, looseness=looseness, residuals=np.zeros(n_axes), rounds=300
    )
    others = {Problem.FREE_DIRECTIONS, Problem.HINGE}
    assert [f.problem for f in findings if f.problem not in others] == problems


def test_axis_on_few_landmarks_has_its_number_from_one():
    axes = AXES.copy()
    axes[:, 1] = 0.0
    axes[[3, 7, 9], 1] = 3**-0.5
    (finding,) = solution(axes)
    assert (finding.problem, finding.values) == (Problem.CARRIED_BY_FEW, {"axis": 2})
    assert finding.landmarks == ("3", "7", "9")
