"""The numbers of the real geomorph 4.1.0 and RRPP 2.1.2 (tests/oracle_geomorph/numbers.txt).

geomorph stops its superimposition early, so sums of squares agree to about 1e-5.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from defgpa.statistics import procrustes_anova
from support import shared_data

ORACLE = {"rtol": 2e-5, "atol": 1e-9}
NUMBERS = (Path(__file__).parents[1] / "oracle_geomorph" / "numbers.txt").read_text()


def read_block(title: str) -> str:
    """The text between a title of the oracle and the next."""
    return NUMBERS.split(f"## {title}", 1)[1].split("\n##", 1)[0]


def read_effects(text: str) -> dict[str, list[float]]:
    """The rows of a table of effects: Df, SS, MS, Rsq, F of every term."""
    rows = {}
    for line in text.splitlines():
        match = re.match(r"([\w.()]+(?::\w+)*)\s+(\d+ [\d. e+-]+)", line)
        if match:
            rows[match[1]] = [float(word) for word in match[2].split()]
    return rows


@pytest.fixture(scope="module")
def plethodon():
    with np.load(shared_data("plethodon2d.npz"), allow_pickle=False) as archive:
        return archive["points"], {key: archive[key] for key in ("species", "site")}


def assert_effects(model, expected):
    for term, numbers in expected.items():
        if term in ("Residuals", "Total"):
            continue
        df, ss, _, r_squared, f, *_ = numbers
        row = model[term.replace("Csize", "size")]
        assert row.df == df
        np.testing.assert_allclose([row.ss, row.r_squared, row.f], [ss, r_squared, f], **ORACLE)


@pytest.mark.parametrize("ss_type", [1, 2, 3])
def test_types_of_sums_of_squares(plethodon, ss_type):
    points, data = plethodon
    text = read_block("SS types")
    tables = re.split(r"\n(?:I|II|III) \n", text)[1:]
    model = procrustes_anova(
        "shape ~ log(size) + species * site", points, data, 99, ss_type=ss_type
    )
    expected = read_effects(tables[ss_type - 1])
    assert len(expected) >= 5
    assert_effects(model, expected)


def test_allometry_with_species(plethodon):
    points, data = plethodon
    model = procrustes_anova("shape ~ log(size) * species", points, data)
    expected = read_effects(read_block("allometry plethodon"))
    assert set(expected) == {
        "log(Csize)", "species", "log(Csize):species", "Residuals", "Total"
    }  # fmt: skip
    assert_effects(model, expected)
    for term, value, p in (
        ("log(size)", 1.4271842, 0.083),
        ("species", 3.0936494, 0.001),
        ("log(size):species", 0.9476076, 0.168),
    ):
        assert model[term].z == pytest.approx(value, abs=0.5)
        assert model[term].p == pytest.approx(p, abs=0.04)
