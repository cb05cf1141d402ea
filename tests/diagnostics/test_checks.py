"""Each check reports what the diagnostics of a solution show, and nothing else."""

from types import SimpleNamespace

import numpy as np
import pytest

from defgpa.diagnostics.checks import _check_carriers, _check_proportions
from defgpa.diagnostics.findings import Problem
from defgpa.tuning import DEFAULT


@pytest.mark.parametrize(
    ("n_axes", "looseness", "problems"),
    [
        (2, 1.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 0.0, [Problem.PROPORTIONS_NOT_CONVERGED]),
        (3, 1.0, []),  # rigidity does not hold the parts: the hinge is reported instead
    ],
)
def test_descent_without_end_is_a_finding_unless_a_hinge_is(n_axes, looseness, problems):
    facts = SimpleNamespace(
        proportions="rigid",
        similarity_residual=0.1,
        proportions_determined=True,
        proportions_converged=False,
        looseness=looseness,
        n_axes=n_axes,
        n_dims=2,
        rounds=300,
    )
    assert [finding.problem for finding in _check_proportions(facts, DEFAULT)] == problems


def test_axis_on_few_landmarks_has_its_number_from_one():
    axes = np.full((40, 2), 40**-0.5)
    axes[:, 1] = 0.0
    axes[[3, 7, 9], 1] = 3**-0.5
    (finding,) = _check_carriers(axes, np.arange(40).astype(str), DEFAULT)
    assert (finding.problem, finding.values) == (Problem.CARRIED_BY_FEW, {"axis": 2})
    assert finding.landmarks == ("3", "7", "9")
