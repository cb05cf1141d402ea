"""A formula becomes columns, and each of its terms an orthonormal basis of what it adds.

For the terms in their order, ``B_j`` spans the columns of term j after those of all before it. The
sequential sum of squares of a term is then ‖B_jᵀY‖², and its degrees of freedom are the columns of
``B_j``: aliased columns drop out by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import DefgpaError, ShapeError, needed
from defgpa.io.text.variables import get_variable_columns
from defgpa.shapes import Shapes
from defgpa.statistics.formula import check_formula, split_formula

_CONTEXT = {"sqrt": np.sqrt}  # the other functions of the language formulaic has itself
_MARKUP = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")


@dataclass(frozen=True, eq=False)
class Design:
    """The columns of a model, by term.

    Attributes
    ----------
    terms : tuple of str
        In the order in which they enter, without the intercept.
    columns : array (n, k)
        The model matrix, the intercept first.
    bases : tuple of arrays (n, df)
        B_j of every term; all of them orthonormal together, and orthogonal to the intercept.
    spec : ModelSpec
        How other data become columns of the same kind.
    data : DataFrame
        What it was made from.
    """

    terms: tuple[str, ...]
    columns: Array
    bases: tuple[Array, ...]
    spec: Any
    data: Any

    @property
    def intercept(self) -> Array:
        """(n, 1): the constant column, of length 1."""
        n = len(self.columns)
        return np.full((n, 1), 1.0 / np.sqrt(n))

    @property
    def basis(self) -> Array:
        """(n, rank): orthonormal columns that span the whole model."""
        return np.hstack([self.intercept, *self.bases])

    def rows(self, data: Any) -> Array:
        """(k, columns): the model matrix of other data."""
        try:
            return np.asarray(self.spec.get_model_matrix(_frame(data)), dtype=np.float64)
        except _formulaic().errors.FormulaicError as error:
            raise DefgpaError(f"These data do not fit the model. {_sentence(error)}") from None


def design(formula: str, data: Mapping[str, Any], n: int) -> Design:
    """The design of ``shape ~ …`` for n shapes."""
    right, frame = split_formula(formula), _frame(data)
    check_formula(formula, list(map(str, frame.columns)))
    formulaic = _formulaic()
    if len(frame) != n and len(frame.columns):
        raise ShapeError(f"The data must have one row per shape, {n}; got {len(frame)}.")
    if not len(frame.columns):
        frame = _frame({"_row": np.arange(n)})
    try:
        matrix = formulaic.model_matrix(right, frame, context=_CONTEXT, na_action="raise")
    except formulaic.errors.FormulaicError as error:
        there = ", ".join(map(str, frame.columns))
        raise DefgpaError(
            f"The formula {formula!r} cannot be used. {_sentence(error)} The data have: {there}."
        ) from None
    except ValueError as error:
        raise ShapeError(f"The data of {formula!r} have gaps: {_sentence(error)}") from None
    return _by_term(formula, matrix, frame)


def _by_term(formula: str, matrix: Any, frame: Any) -> Design:
    spans = {str(term): span for term, span in matrix.model_spec.term_slices.items()}
    if spans.pop("1", None) is None:
        raise DefgpaError(f"The formula {formula!r} must keep its intercept: drop '0 +' or '- 1'.")
    columns = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(columns).all():
        raise ShapeError(f"The data of {formula!r} are not finite everywhere. Drop such shapes.")
    bases = sequential_bases([columns[:, span] for span in spans.values()])
    return Design(tuple(spans), columns, tuple(bases), matrix.model_spec, frame)


def sequential_bases(blocks: Sequence[Array]) -> list[Array]:
    """B_j: of every block of columns what neither a constant nor the blocks before explain."""
    n = len(blocks[0]) if blocks else 0
    known, bases = np.full((n, 1), 1.0 / np.sqrt(max(n, 1))), []
    for block in blocks:
        scaled = block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(np.float64).tiny)
        for _ in range(2):  # once more, or rounding would leave them not quite orthogonal
            scaled = scaled - known @ (known.T @ scaled)
        U, lengths, _ = np.linalg.svd(scaled, full_matrices=False)
        bases.append(U[:, lengths > 1e-9])  # less is left of columns that others explain
        known = np.hstack([known, bases[-1]])
    return bases


def columns_of(shapes: Shapes) -> dict[str, list[Any]]:
    """What the files say of every shape: ``group``, and the columns of a table by their heads.

    Examples
    --------
    >>> said = ({"sex": "f", "age": "3"}, {"sex": "m", "age": ""})
    >>> shapes = Shapes.specimens([[[0.0, 0.0]]] * 2, metadata={"variables": said})
    >>> columns_of(shapes)
    {'sex': ['f', 'm'], 'age': [3, None]}
    """
    groups = shapes.metadata.get("groups")
    found = {} if groups is None else {"group": list(groups)}
    said = get_variable_columns(shapes).items()
    return found | {str(head): typed(list(map(str, words))) for head, words in said}


def typed(words: Sequence[str]) -> list[Any]:
    """Numbers where all are numbers, whole ones as such; None where a cell is empty or NA."""
    known = [None if word in ("", "NA", "NaN", "nan") else word for word in words]
    for kind in (int, float):
        try:
            return [None if word is None else kind(word) for word in known]
        except ValueError:
            continue
    return list(known)


def grouped(values: Any, n: int, what: str) -> tuple[tuple[str, ...], Index]:
    """The names of groups in order of first sight, and the number of each shape's group.

    ``what`` is the word for the values in messages.
    """
    given = np.asarray(values, dtype=object).ravel()
    if len(given) != n:
        raise ShapeError(f"'{what}' must have one entry per shape, {n}; got {len(given)}.")
    lacking = [i for i, value in enumerate(given) if value is None or value != value]
    if lacking:
        raise ShapeError(f"'{what}' is missing for shape number {lacking[0]}. Drop such shapes.")
    words = [str(value) for value in given]
    names = tuple(dict.fromkeys(words))
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([place[word] for word in words], dtype=np.intp)


def _frame(data: Any) -> Any:
    import pandas

    if isinstance(data, pandas.DataFrame):
        return data.reset_index(drop=True)
    try:
        return pandas.DataFrame({key: np.asarray(value) for key, value in dict(data).items()})
    except ValueError:
        lengths = {key: len(np.atleast_1d(value)) for key, value in dict(data).items()}
        raise ShapeError(f"The columns of the data have different lengths: {lengths}.") from None


def _formulaic() -> Any:
    how = "Formulas need the package formulaic: pip install 'defgpa[statistics]'."
    return needed("formulaic", how)


def _sentence(error: Exception) -> str:
    """A message of formulaic in one line without its colours."""
    return " ".join(_MARKUP.sub("", str(error)).split()).rstrip(".") + "."
