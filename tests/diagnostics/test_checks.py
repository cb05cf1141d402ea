"""Facts in, findings out: what each check makes of figures that say just that."""

from types import SimpleNamespace

import numpy as np
import pytest

from defgpa.diagnostics.checks import _carried_by_few, _proportions
from defgpa.diagnostics.findings import Problem
from defgpa.tuning import DEFAULT


@pytest.mark.parametrize(
    ("n_axes", "looseness", "told"),
    [
        (2, 1.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 0.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 1.0, []),  # parts that nothing settles: the hinge is told of instead
    ],
)
def test_rounds_that_did_not_end_are_told_of_unless_a_hinge_is(n_axes, looseness, told):
    facts = SimpleNamespace(
        proportions="rigid",
        similarity_residual=np.array([0.1]),
        proportions_determined=np.array([True]),
        proportions_converged=np.array([False]),
        looseness=np.array([looseness]),
        n_dims=2,
        rounds=300,
    )
    assert [found.problem for _, found in _proportions(facts, n_axes, DEFAULT)] == told


def test_the_axis_that_few_landmarks_carry_is_counted_from_one():
    axes = np.full((1, 40, 2), 40**-0.5)
    axes[0, :, 1] = 0.0
    axes[0, [3, 7, 9], 1] = 3**-0.5
    landmarks = np.arange(40).astype(str)[None]
    ((number, found),) = _carried_by_few(axes, landmarks, DEFAULT)
    assert (number, found.problem, found.values) == (0, Problem.CARRIED_BY_FEW, {"axis": 2})
    assert found.landmarks == ("3", "7", "9")
