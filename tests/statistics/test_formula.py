"""A formula names columns, operators and a few functions; anything else is refused unevaluated."""

from __future__ import annotations

import numpy as np
import pytest

from defgpa import DefgpaError
from defgpa.statistics import procrustes_anova
from defgpa.statistics.formula import check_formula

COLUMNS = ["a", "b", "size", "body mass", "wing.length"]


@pytest.mark.parametrize(
    "right",
    [
        "a", "a + b", "a*b - a:b", "a/b", "(a + b)^2", "a %in% b", "1", "log(size) * a",
        "sqrt(size) + exp(size)", "scale(size) + center(size)", "poly(size, 2)",
        "poly(size, degree=3, raw=True)", "C(a):b", "I(size**2 + 3.5e-2*(b - 1))",
        "`body mass` + wing.length", "log(`body mass`)",
    ],
)  # fmt: skip
def test_the_language_admits(right):
    check_formula(f"shape ~ {right}", COLUMNS)


@pytest.mark.parametrize(
    "right",
    [
        '{__import__("os").system("echo")}', '{__import__("os").system("id").bit_length()*size}',
        "__import__('os')", "I(a.__class__)", "I(().__class__)", "log(a.b)", "np.log(a)",
        "I(np.exp(a))", "open(a)", "eval(a)", "I([a for a in b])", "I(lambda: a)", "log(a)(b)",
        "(a)(b)", "`a`(b)", "a; b", "a @ b", "a if b else a", "I(a if b else a)", 'Q("a")',
        "C(a, contr.treatment)", "hashed(a)", "bs(a, df=4)", "a = 1", "a, b", "a + \\n b\\\\",
        "I(9**9**9)", "I(9**99999999)", "(a + b)^9999", "poly(size, 99999)",
        "I(" * 40 + "a" + ")" * 40, "(a + b", "a)", "a + " * 800 + "a", "I(a:b)", "I(a := 3)",
        "a # comment", "poly(size, 10**10)", "poly(size, 2.5)", "poly(size, b)", "scale(size, 3)",
        "I(True)", "3*a", "a +", "a b", "*".join(["(a + b)"] * 9), "((a + b)^9)^9",
        "-" * 1900 + "a", "I(" + "-" * 1900 + "a)", "I(" + "+".join("a" * 900) + ")",
        "+".join("a" * 999),
    ],
)  # fmt: skip
def test_the_language_refuses_in_a_sentence(right):
    with pytest.raises(DefgpaError):
        check_formula(f"shape ~ {right}", COLUMNS)


@pytest.mark.parametrize("where", ["formula", "null"])
def test_nothing_of_a_refused_formula_is_run(where, tmp_path):
    target = tmp_path / "pwned"
    attack = f'{{__import__("pathlib").Path("{target}").touch()}} * size'
    x = np.random.default_rng(0).normal(size=(6, 2)) + np.random.default_rng(1).normal(
        size=(8, 6, 2), scale=0.1
    )
    model = procrustes_anova("shape ~ k", x, {"k": list("ab") * 4}, 2)
    attempts = {
        "formula": lambda: procrustes_anova(f"shape ~ {attack}", x, n_permutations=2),
        "null": lambda: model.pairwise("k", null=attack),
    }
    with pytest.raises(DefgpaError, match="cannot have"):
        attempts[where]()
    assert not target.exists()


def test_functions_of_the_language_are_evaluated():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(12, 6, 2))
    age = rng.uniform(1, 9, size=12)
    for right, df in (
        ("log(age)", 1),
        ("sqrt(age) + exp(age)", 2),
        ("poly(age, 2)", 2),
        ("scale(age):center(age)", 1),
        ("I(age**2 + 1)", 1),
    ):
        model = procrustes_anova(f"shape ~ {right}", x, {"age": age}, 2)
        assert sum(row.df for row in list(model.table)[:-2]) == df


@pytest.mark.parametrize(
    ("right", "message"),
    [
        ("poly(age, 10**10)", "whole number from 1 to 12"),
        ("poly(age, 2.5)", "whole number from 1 to 12"),
        ("poly(k, 2)", "Functions need columns of numbers"),
        ("sqrt(age)", r"sqrt\(age\) has no value for some shapes \(log and sqrt are of positive"),
        ("log(gap)", "Functions need columns of numbers without gaps"),
        ("gap", "the column has 2 empty cells"),
        ("I(age / zero)", "not finite everywhere"),
        ("I(1e99 * age * 1e99)", "larger than 1e"),
        ("k *", "an operator lacks"),
        ("exp(exp)", "has the name of a function"),
    ],
)
def test_what_cannot_be_evaluated_is_said_without_the_insides_of_a_parser(right, message):
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    data = {"age": np.linspace(-1, 9, 12), "k": list("abc") * 4, "zero": np.zeros(12)}
    data |= {"gap": [1.0, 2.0, 3.0, 4.0, 5.0, None] * 2, "exp": np.arange(12)}
    with pytest.raises(DefgpaError, match=message) as findings:
        procrustes_anova(f"shape ~ {right}", x, data, n_permutations=2)
    assert "Error" not in str(findings.value)


@pytest.mark.parametrize(
    "right", ["unit", "age * unit", "log(unit)", "age + I(2 * unit)", "C(unit)"]
)
def test_a_factor_that_is_the_same_for_all_shapes_is_refused(right):
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    data = {"age": np.arange(1.0, 13.0), "unit": np.full(12, 10.0)}
    with pytest.raises(DefgpaError, match=r"Column 'unit' is '10\.0' for all shapes"):
        procrustes_anova(f"shape ~ {right}", x, data, n_permutations=2)


def test_a_constant_column_may_stand_beside_another_in_a_function():
    """As a unit that a table states for every specimen."""
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    data = {"age": np.arange(1.0, 13.0), "unit": np.full(12, 10.0)}
    ratio, age = (
        procrustes_anova(f"shape ~ {right}", x, data, 2).table for right in ("I(age/unit)", "age")
    )
    assert next(iter(ratio)).ss == pytest.approx(next(iter(age)).ss, rel=1e-12)


def test_a_blank_before_a_bracket_changes_nothing():
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    data = {"age": np.arange(1.0, 13.0), "body (log)": np.arange(12.0) ** 2}
    tables = [
        list(procrustes_anova(f"shape ~ {right}", x, data, 2).table)
        for right in ("log(age) + `body (log)` + (age)^2", "log  (age)+`body (log)`+ (age) ^2")
    ]
    assert tables[0] == tables[1]


def test_a_hat_inside_a_function_is_a_power():
    """It was the exclusive or of whole numbers."""
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    data = {"count": np.arange(12), "square": np.arange(12) ** 2}
    hat, square = (
        procrustes_anova(f"shape ~ {right}", x, data, 2).table for right in ("I(count^2)", "square")
    )
    assert next(iter(hat)).ss == pytest.approx(next(iter(square)).ss, rel=1e-12)


@pytest.mark.parametrize("formula", ["`" + "x" * 1900 + "`", "x*" * 90 + "+" * 9 + "x" * 1500])
def test_a_long_formula_is_abbreviated_in_messages(formula):
    with pytest.raises(DefgpaError) as error:
        check_formula(formula, ["x"])
    assert len(str(error.value)) < 400
