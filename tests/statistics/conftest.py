"""The salamanders that geomorph ships, and terms of models."""

import numpy as np
import pytest

from defgpa.statistics.design import make_orthonormal_bases
from defgpa.statistics.variance_ratios import ModelTerms
from support import shared_data


@pytest.fixture(scope="session")
def plethodon():
    """The points and the columns species and site."""
    with np.load(shared_data("plethodon2d.npz"), allow_pickle=False) as archive:
        return archive["points"], {key: archive[key] for key in ("species", "site")}


@pytest.fixture(scope="session")
def make_terms():
    """Return a function that makes terms which enter one after the other, after a constant."""

    def make(blocks):
        n = len(blocks[0])
        intercept = np.full((n, 1), n**-0.5)
        return ModelTerms.sequential(intercept, make_orthonormal_bases(intercept, blocks))

    return make
