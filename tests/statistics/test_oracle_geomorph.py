"""The numbers of the real geomorph 4.1.0 and RRPP 2.1.2 (tests/oracle_geomorph/numbers.txt).

geomorph stops its superimposition early, so sums of squares agree to about 1e-5. With the random
permutations of R (tests/r_permutations.py), P agrees exactly and Z to four digits.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from defgpa.statistics import (
    classify,
    disparity,
    integration,
    modularity,
    procrustes_anova,
    tangent_space,
    two_block_pls,
)
from r_permutations import use_permutations_of_r
from support import ROOT, geomorph_numbers

ORACLE = {"rtol": 2e-5, "atol": 1e-9}


def read_effects(text: str) -> dict[str, list[float]]:
    """The rows of a table of effects: Df, SS, MS, Rsq, F of every term."""
    rows = {}
    for line in text.splitlines():
        match = re.match(r"([\w.()]+(?::\w+)*)\s+(\d+ [\d. e+-]+)", line)
        if match:
            rows[match[1]] = [float(word) for word in match[2].split()]
    return rows


CHANCES = {"log(Csize)": 0.083, "species": 0.001, "log(Csize):species": 0.168}  # on lines below


def assert_effects(model, expected):
    for term, numbers in expected.items():
        if term in ("Residuals", "Total"):
            continue
        df, ss, _, r_squared, f, z, *p = numbers
        row = model[term.replace("Csize", "size")]
        assert row.df == df
        np.testing.assert_allclose([row.ss, row.r_squared, row.f], [ss, r_squared, f], **ORACLE)
        assert row.z == pytest.approx(z, rel=2e-4)
        assert [row.p] == pytest.approx(p or [CHANCES[term]], abs=1e-9)


@pytest.mark.parametrize("ss_type", [1, 2, 3])
def test_types_of_sums_of_squares(plethodon, ss_type, monkeypatch):
    points, data = plethodon
    use_permutations_of_r(monkeypatch, 40, 99, inverse=True)
    text = geomorph_numbers("SS types")
    tables = re.split(r"\n(?:I|II|III) \n", text)[1:]
    model = procrustes_anova(
        "shape ~ log(size) + species * site", points, data, 99, ss_type=ss_type
    )
    expected = read_effects(tables[ss_type - 1])
    assert len(expected) >= 5
    assert_effects(model, expected)


def test_allometry_with_species(plethodon, monkeypatch):
    points, data = plethodon
    use_permutations_of_r(monkeypatch, 40, inverse=True)
    model = procrustes_anova("shape ~ log(size) * species", points, data)
    expected = read_effects(geomorph_numbers("allometry plethodon"))
    assert set(expected) == {
        "log(Csize)", "species", "log(Csize):species", "Residuals", "Total"
    }  # fmt: skip
    assert_effects(model, expected)


PARTITION = ["front"] * 5 + ["back"] * 7


def read_numbers(text):
    """Every number with a decimal point."""
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", text)]


def test_disparity_of_groups(plethodon, monkeypatch):
    points, data = plethodon
    use_permutations_of_r(monkeypatch, 40)
    numbers = read_numbers(geomorph_numbers("disparity plethodon"))
    actual = disparity(points, "species:site", data=data)
    order = [actual.groups.index(f"{a}.{b}") for a in ("Jord", "Teyah") for b in ("Allo", "Symp")]
    np.testing.assert_allclose(actual.variances[order], numbers[:4], **ORACLE)
    differences = actual.differences[np.ix_(order, order)]
    np.testing.assert_allclose(differences.ravel(), numbers[4:20], rtol=1e-4, atol=1e-9)
    p = np.nan_to_num(actual.p[np.ix_(order, order)], nan=1.0)
    np.testing.assert_allclose(p.ravel(), numbers[20:36], atol=1e-9)


def test_disparity_about_a_model_and_partial(plethodon):
    points, data = plethodon
    about = disparity(points, "species", "shape ~ size", data)
    *expected, _, difference, _, _ = read_numbers(geomorph_numbers("disparity about"))
    np.testing.assert_allclose(about.variances, expected, **ORACLE)
    assert about.differences[0, 1] == pytest.approx(difference, rel=1e-4)
    partial = disparity(points, "species", data=data, partial=True)
    expected = read_numbers(geomorph_numbers("disparity partial"))
    np.testing.assert_allclose(partial.variances, expected, **ORACLE)
    x = tangent_space(points)
    assert partial.variances.sum() == pytest.approx(((x - x.mean(axis=0)) ** 2).sum() / 39)


def test_two_block_pls(plethodon, monkeypatch):
    points, _ = plethodon
    use_permutations_of_r(monkeypatch, 40, inverse=True)
    numbers = read_numbers(geomorph_numbers("two.b.pls"))
    actual = two_block_pls(points, partition=PARTITION)
    assert actual.r == pytest.approx(numbers[0], rel=1e-6)
    assert actual.z == pytest.approx(numbers[1], rel=2e-4)
    assert actual.p == 0.001
    np.testing.assert_allclose(actual.singular_values[:10], numbers[3:13], **ORACLE)
    x_scores, y_scores = np.reshape(numbers[13:25], (2, 6))
    sign = np.sign(actual.x_scores[0, 0] * x_scores[0])
    np.testing.assert_allclose(sign * actual.x_scores[:6, 0], x_scores, rtol=1e-4)
    np.testing.assert_allclose(sign * actual.y_scores[:6, 0], y_scores, rtol=1e-4)


def test_integration_and_modularity(plethodon, monkeypatch):
    """CR is averaged over rotations here; geomorph takes the angle whose CR is nearest to that."""
    points, _ = plethodon
    r, z, p, ratio, ratio_z, ratio_p = read_numbers(geomorph_numbers("integration.test"))
    with monkeypatch.context() as patch:
        use_permutations_of_r(patch, 40)
        actual = integration(points, PARTITION)
    assert actual.observed == pytest.approx(r, rel=1e-6)
    assert actual.z == pytest.approx(z, rel=2e-4)
    assert actual.p == p
    actual = modularity(points, PARTITION)
    assert actual.observed == pytest.approx(ratio, rel=5e-5)
    assert actual.z == pytest.approx(ratio_z, abs=0.15)
    assert actual.p == pytest.approx(ratio_p, abs=0.05)


def test_linear_discriminants(plethodon):
    points, data = plethodon
    text = geomorph_numbers("prep.lda")
    groups = [f"{a}.{b}" for a, b in zip(data["species"], data["site"], strict=True)]
    actual = classify(points, groups, n_components=10)
    names = re.findall(r"^  (\w+\.\w+)\s", text, re.MULTILINE)
    order = [actual.groups.index(name) for name in names]
    rows = re.findall(r"^  \w+\.\w+ ((?:\s+\d+){4})$", text, re.MULTILINE)
    expected = [[int(word) for word in row.split()] for row in rows]
    assert actual.confusion[np.ix_(order, order)].tolist() == expected
    np.testing.assert_allclose(actual.singular_values, read_numbers(text)[-3:], rtol=1e-5)


def test_every_block_of_the_oracle_is_in_the_table_of_what_matches_it():
    """The table in tests/oracle_geomorph/README.md names tests that are there."""
    folder = ROOT / "tests" / "oracle_geomorph"
    blocks = re.findall(r"^## (.*)$", (folder / "numbers.txt").read_text(), re.MULTILINE)
    table = (folder / "README.md").read_text().split("## What matches them")[1]
    rows = re.findall(r"^\| (.*?) ?\| `(\w+\.py)::(\w+)` \| ", table, re.MULTILINE)
    assert [block for block, _, _ in rows if block] == [block.strip() for block in blocks]
    for _, file, test in rows:
        assert f"def {test}(" in (ROOT / "tests" / "statistics" / file).read_text()
