"""The formula language: what may stand on the right of ``shape ~``, checked before it is evaluated.

A formula may name columns, join them by operators, and use a few functions:

    terms       a + b,  a:b,  a * b,  a / b,  a - b,  (a + b)^2,  a %in% b,  1
    functions   log, exp, sqrt, scale, center, poly, C, I
    inside      columns, numbers, + - * / ** ^ and parentheses

A name that is no word is put between backticks. Anything else is refused: formulas come from files
and command lines, and the evaluator behind them would run Python code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from defgpa.errors import DefgpaError, format_names

FUNCTIONS = ("log", "exp", "sqrt", "scale", "center", "poly", "C", "I")

_KEYWORDS = {"degree", "raw"}  # of poly
_MAX_LENGTH = 2000
_MAX_DEPTH = 20
_MAX_POWER = 12  # larger powers overflow, or multiply terms without end

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


def _tokenize(right: str) -> Iterator[_Token]:
    position = 0
    while position < len(right.rstrip()):
        match = _TOKEN.match(right, position)
        if match is None:
            raise _refuse(right[position:].strip()[:20])
        yield _Token(str(match.lastgroup), match.group(str(match.lastgroup)))
        position = match.end()


def _check_calls(tokens: list[_Token]) -> None:
    """Refuse calls of anything but the functions, and what may not stand in or outside of one."""
    calls: list[bool] = []  # for every open parenthesis, whether it is that of a function
    for previous, token in zip([_Token("", ""), *tokens], tokens, strict=False):
        if token.text == "(" and token.kind == "operator":
            if previous.kind in ("number", "quoted") or previous.text == ")":
                raise _refuse(f"{previous.text}(")
            if previous.kind == "name" and previous.text not in FUNCTIONS:
                raise _refuse(f"{previous.text}(")
            calls.append(previous.kind == "name" or any(calls))
            if len(calls) > _MAX_DEPTH:
                raise DefgpaError(f"A formula has at most {_MAX_DEPTH} parentheses in each other.")
        elif token.text == ")" and token.kind == "operator":
            if not calls:
                raise _refuse(")")
            calls.pop()
        elif (token.text in (",", "=") and not any(calls)) or (
            any(calls) and token.kind in ("operator", "name") and _is_only_for_terms(token)
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
        elif token.text in (",", "=") and after.kind == "number" and float(after.text) > _MAX_POWER:
            raise DefgpaError(f"A degree in a formula is at most {_MAX_POWER}; got {after.text}.")


def _check_names(tokens: list[_Token], columns: Collection[str], formula: str) -> None:
    """Refuse names that are neither columns, functions that are called, nor their keywords."""
    unknown = []
    for token, after in zip(tokens, [*tokens[1:], _Token("", "")], strict=True):
        is_call = token.text in FUNCTIONS and after.text == "("
        is_keyword = token.text in _KEYWORDS and after.text == "="
        is_flag = token.text in ("True", "False")
        if token.kind == "quoted" and token.text.strip("`") not in columns:
            unknown.append(token.text.strip("`"))
        is_column = token.text in columns or is_call or is_keyword or is_flag
        if token.kind == "name" and not is_column:
            unknown.append(token.text)
    if unknown:
        known_columns = ", ".join(map(str, columns)) or "none"
        names = format_names(sorted(set(unknown)))
        raise DefgpaError(
            f"There is no column {names} for the formula {formula!r}. There are: {known_columns}."
        )


def _refuse(text: str) -> DefgpaError:
    return DefgpaError(
        f"A formula has columns, the operators + - * : / ^ and the functions "
        f"{', '.join(FUNCTIONS)}; it cannot have {text!r}. A column whose name is no word is "
        "written between backticks."
    )
