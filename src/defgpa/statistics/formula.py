"""The formula language: what may stand on the right of ``shape ~``, checked before it is evaluated.

A formula may name columns, join them by operators, and use a few functions:

    terms       a + b,  a:b,  a * b,  a / b,  a - b,  (a + b)^2,  a %in% b,  1
    functions   log, exp, sqrt, scale, center, poly, C, I
    inside      columns, numbers, + - * / ** ^ and parentheses

A name that is no word is put between backticks. Anything else is refused: formulas come from files
and command lines, and the evaluator behind them would run Python code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from defgpa.errors import DefgpaError, format_names

FUNCTIONS = ("log", "exp", "sqrt", "scale", "center", "poly", "C", "I")

_KEYWORDS = {"degree", "raw"}  # of poly
_MAX_LENGTH = 2000
_MAX_DEPTH = 20
_MAX_POWER = 12  # larger powers overflow
_MAX_OPERATORS = 200  # each is a level of the recursion of parsers
_MAX_TERMS = 1000  # products and powers of sums multiply terms without end

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|\.\d+(?:[eE][+-]?\d{1,3})?)
  | (?P<quoted>`[^`]+`)
  | (?P<name>[^\W\d][\w.]*)
  | (?P<operator>%in%|\*\*|[-+*/:^(),=])
    )""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str


def split_formula(formula: str) -> str:
    """Return the right side of ``shape ~ …``."""
    left, tilde, right = str(formula).partition("~")
    if not tilde or left.strip() != "shape" or not right.strip():
        raise DefgpaError(
            f"A formula says what shape depends on: 'shape ~ species * site'. "
            f"Got {str(formula)[:80]!r}."
        )
    return right.strip()


def check_formula(formula: str, columns: Collection[str]) -> None:
    """Raise a DefgpaError if the formula has anything but columns, operators and known functions.

    Parameters
    ----------
    formula : str
        ``"shape ~ …"``.
    columns : collection of str
        The columns there are.
    """
    right = split_formula(formula)
    if len(right) > _MAX_LENGTH:
        raise DefgpaError(f"A formula has at most {_MAX_LENGTH} characters; got {len(right)}.")
    tokens = list(_tokenize(right))
    _check_calls(tokens)
    _check_powers(tokens)
    _check_names(tokens, columns, formula)
    _check_size(tokens, formula)


def _tokenize(right: str) -> Iterator[_Token]:
    position = 0
    while position < len(right.rstrip()):
        match = _TOKEN.match(right, position)
        if match is None:
            raise _refuse(right[position:].strip()[:20])
        yield _Token(str(match.lastgroup), match.group(str(match.lastgroup)))
        position = match.end()


def _check_calls(tokens: list[_Token]) -> None:
    """Refuse calls of unknown functions, and tokens that a call may not contain or stand in."""
    calls: list[str] = []  # of every open parenthesis, the function it stands in, or none
    for previous, token in zip([_Token("", ""), *tokens], tokens, strict=False):
        if token.text == "(" and token.kind == "operator":
            if previous.kind in ("number", "quoted") or previous.text == ")":
                raise _refuse(f"{previous.text}(")
            if previous.kind == "name" and previous.text not in FUNCTIONS:
                raise _refuse(f"{previous.text}(")
            calls.append(previous.text if previous.kind == "name" else "".join(calls[-1:]))
            if len(calls) > _MAX_DEPTH:
                raise DefgpaError(f"A formula has at most {_MAX_DEPTH} parentheses in each other.")
        elif token.text == ")" and token.kind == "operator":
            if not calls:
                raise _refuse(")")
            calls.pop()
        elif token.kind == "number" and not any(calls[-1:]) and previous.text not in ("^", "**"):
            if token.text not in ("0", "1"):
                raise DefgpaError(
                    f"A formula computes with numbers inside I(…) only; got {token.text} outside."
                )
        elif (token.text in (",", "=") and calls[-1:] != ["poly"]) or (
            any(calls[-1:]) and token.kind in ("operator", "name") and _is_only_for_terms(token)
        ):
            raise _refuse(token.text)
    if calls:
        raise DefgpaError("A parenthesis of the formula is not closed.")


def _is_only_for_terms(token: _Token) -> bool:
    """Return whether a token may stand between terms, but in a function would be Python syntax."""
    return token.text in (":", "%in%") or "." in token.text


def _check_powers(tokens: list[_Token]) -> None:
    """Refuse exponents, degrees and steps of powers that would run for ever."""
    padded = [*tokens, _Token("", ""), _Token("", "")]
    for token, after, later in zip(padded, padded[1:], padded[2:], strict=False):
        if token.text in ("**", "^"):
            is_small = after.kind == "number" and float(after.text) <= _MAX_POWER
            if not is_small or later.text in ("**", "^"):
                raise DefgpaError(
                    f"A power in a formula is a number up to {_MAX_POWER}, not "
                    f"{(after.text + later.text)[:20]!r}."
                )
        elif token.text in (",", "=") and not _is_argument(after, later):
            raise DefgpaError(
                f"A degree in a formula is a whole number from 1 to {_MAX_POWER}, as in "
                f"poly(age, 2); got {(after.text + later.text)[:20]!r}."
            )


def _is_argument(token: _Token, after: _Token) -> bool:
    """Return whether a token after a comma or '=' is a keyword, a flag or a small whole number."""
    if token.kind != "number":
        is_keyword = token.text in _KEYWORDS and after.text == "="
        return is_keyword or (token.text in ("True", "False") and after.text in (",", ")"))
    is_degree = token.text.isdecimal() and 1 <= float(token.text) <= _MAX_POWER
    return is_degree and after.text in (",", ")")


def _check_names(tokens: list[_Token], columns: Collection[str], formula: str) -> None:
    """Refuse names that are neither columns, functions that are called, nor their keywords."""
    unknown, end = [], _Token("", "")
    for before, token, after in zip([end, *tokens], tokens, [*tokens[1:], end], strict=False):
        is_call = token.text in FUNCTIONS and after.text == "("
        is_keyword = token.text in _KEYWORDS and after.text == "="
        is_flag = token.text in ("True", "False") and before.text in (",", "=")
        if is_call and token.text in columns:
            raise DefgpaError(
                f"Column {token.text!r} has the name of a function of formulas. Rename the column."
            )
        if token.kind == "quoted" and token.text.strip("`") not in columns:
            unknown.append(token.text.strip("`"))
        is_column = token.text in columns or is_call or is_keyword or is_flag
        if token.kind == "name" and not is_column:
            unknown.append(token.text)
    if unknown:
        known_columns = ", ".join(map(str, columns)) or "none"
        names = format_names([name[:80] for name in sorted(set(unknown))])
        raise DefgpaError(
            f"There is no column {names} for the formula {formula[:80]!r}. "
            f"There are: {known_columns}."
        )


def _check_size(tokens: list[_Token], formula: str) -> None:
    """Refuse operators that lack an operand, and formulas of more terms than can be tested.

    The terms are counted in an expression of Python with the same operators, 1 for every name.
    """
    if sum(token.kind == "operator" for token in tokens) > _MAX_OPERATORS:
        raise DefgpaError(
            f"The formula {formula[:80]!r} has more than {_MAX_OPERATORS} operators. Leave terms "
            "out."
        )
    python = {":": "@", "%in%": "*", "^": "**", "=": ",", **dict.fromkeys("+-*/(),")}
    words = [
        python.get(token.text) or token.text
        if token.kind in ("operator", "number")
        else "f" * (after.text == "(") or "1"
        for token, after in zip(tokens, [*tokens[1:], _Token("", "")], strict=True)
    ]
    try:
        n_terms = _count_terms(ast.parse(" ".join(words), mode="eval").body)
    except SyntaxError:
        raise DefgpaError(
            f"In the formula {formula[:80]!r} an operator lacks what stands before or behind it, "
            "or two names have no operator between them."
        ) from None
    if n_terms > _MAX_TERMS:
        raise DefgpaError(
            f"The formula {formula[:80]!r} has more than {_MAX_TERMS} terms. Use + instead of *, "
            "or a lower power."
        )


def _count_terms(node: ast.expr) -> int:
    """Return an upper bound of the number of terms, of which more than enough are not counted."""
    if isinstance(node, ast.UnaryOp):
        return _count_terms(node.operand)
    if not isinstance(node, ast.BinOp):
        return 1
    left, right = _count_terms(node.left), _count_terms(node.right)
    if isinstance(node.op, ast.Pow):
        return min(left ** int(ast.literal_eval(node.right)), _MAX_TERMS + 1)
    sums = 0 if isinstance(node.op, ast.MatMult) else left + right
    products = 0 if isinstance(node.op, ast.Add | ast.Sub) else left * right
    return min(sums + products, _MAX_TERMS + 1)


def _refuse(text: str) -> DefgpaError:
    return DefgpaError(
        f"A formula has columns, the operators + - * : / ^ and the functions "
        f"{', '.join(FUNCTIONS)}; it cannot have {text!r}. A column whose name is no word is "
        "written between backticks."
    )
