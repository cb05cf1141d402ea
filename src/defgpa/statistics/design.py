"""Turn a formula into columns, and each of its terms into an orthonormal basis of what it adds.

``B_j`` spans the columns of term j after those of the terms it is compared with. The sum of squares
of the term is ‖B_jᵀY‖², and its degrees of freedom are the columns of ``B_j``: aliased columns drop
out by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, ShapeError, format_names, import_extra
from defgpa.io.covariates import Columns
from defgpa.statistics.formula import check_formula, split_formula
from defgpa.statistics.variance_ratios import ModelTerms

if TYPE_CHECKING:
    import pandas as pd
    from formulaic import ModelSpec

_CONTEXT = {"sqrt": np.sqrt}  # the other functions of the language formulaic has itself
_MAX_VALUE = 1e150  # the squares of larger numbers overflow
_OPERATORS = re.compile(r"(`[^`]*`)|\^|(?<=\w)\s+(?=\()")  # formulaic takes no blank before (
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
    spans : tuple of slices
        The columns of every term.
    spec : ModelSpec
        How other data become columns of the same kind.
    data : DataFrame
        What it was made from.
    whitening : array (n, n) or None
        W with WᵀW the inverse of the covariance of the rows, where they are not independent.
    """

    terms: tuple[str, ...]
    columns: Array
    spans: tuple[slice, ...]
    spec: ModelSpec
    data: pd.DataFrame
    whitening: Array | None = None

    @cached_property
    def intercept(self) -> Array:
        """(n, 1): the (whitened) constant column, of length 1."""
        constant = self.whiten(np.ones((len(self.columns), 1)))
        return np.asarray(constant / np.linalg.norm(constant))

    @cached_property
    def bases(self) -> tuple[Array, ...]:
        """B_j (n, df) of every term after those before it, all of them orthonormal together."""
        return tuple(make_orthonormal_bases(self.intercept, self._blocks))

    @property
    def basis(self) -> Array:
        """(n, rank): orthonormal columns that span the whole model."""
        return np.hstack([self.intercept, *self.bases])

    def require_residuals(self) -> None:
        """Raise a ShapeError if the model has as many parameters as there are shapes."""
        n, rank = self.basis.shape
        if rank >= n:
            raise ShapeError(
                f"The model has {rank} parameters for {n} shapes, so nothing is left of them. "
                "Leave out terms, or factors with a level for every shape."
            )

    @property
    def _blocks(self) -> list[Array]:
        return [self.whiten(self.columns[:, span]) for span in self.spans]

    def whiten(self, rows: Array) -> Array:
        """Make rows (n, p) independent, where their covariance is known."""
        return rows if self.whitening is None else self.whitening @ rows

    def build_terms(self, ss_type: int = 1) -> ModelTerms:
        """Compare every term with a reduced model, by the type of sums of squares.

        I: the terms before it. II: all terms that do not contain it. III: all other terms, with
        treatment contrasts, as RRPP.
        """
        if ss_type == 1:
            return ModelTerms.sequential(self.intercept, self.bases)
        blocks, reduced, bases = self._blocks, [], []
        for j, term in enumerate(self.terms):
            others = [
                block
                for k, block in enumerate(blocks)
                if k != j and (ss_type == 3 or not _contains(self.terms[k], term))
            ]
            *before, last = make_orthonormal_bases(self.intercept, [*others, blocks[j]])
            reduced.append(np.hstack([np.empty((len(self.columns), 0)), *before]))
            bases.append(last)
        full = np.hstack([np.empty((len(self.columns), 0)), *self.bases])
        return ModelTerms(self.intercept, tuple(reduced), tuple(bases), full)

    def rows(self, data: pd.DataFrame) -> Array:
        """Build the model matrix (k, columns) of other data."""
        table = _make_table(data)
        self._refuse_unknown_levels(table)
        try:
            return np.asarray(self.spec.get_model_matrix(table), dtype=np.float64)
        except _import_formulaic().errors.FormulaicError as error:
            raise DefgpaError(f"These data do not fit the model. {_format_error(error)}") from None
        except ValueError as error:
            gap = _explain_gap("a column", str(error), table)
            raise ShapeError(f"These data do not fit the model: {gap}. Fill it.") from None

    def _refuse_unknown_levels(self, table: pd.DataFrame) -> None:
        """Raise a DefgpaError if a factor has a level that the model has no mean of."""
        for factor in self.factors:
            levels = dict.fromkeys(self.data[factor])
            values = table.get(factor, ())
            unknown = [value for value in values if value == value and value not in levels]
            if unknown:
                raise DefgpaError(
                    f"The model has no {factor!r} {format_names(unknown)}; it has "
                    f"{format_names(levels)}."
                )

    def hold_covariates(self) -> tuple[Array, Array]:
        """Return columns (n, k) that span the model, and these with all covariates at their means.

        Covariates are those of the formula: of log(size) the mean logarithm is held, as by RRPP.
        """
        names = self.spec.variables_by_source.get("data", ())
        if set(map(str, names)) <= set(self.factors):
            return self.columns, self.columns
        actual, held = [], []
        for term in self.spec.formula:
            values = means = np.ones((len(self.columns), 1))
            for factor in map(str, term.factors):
                columns, is_covariate = self._encode(factor)
                values = _multiply_columns(values, columns)
                constant = np.broadcast_to(columns.mean(axis=0), columns.shape)
                means = _multiply_columns(means, constant if is_covariate else columns)
            actual.append(values)
            held.append(means)
        return np.hstack(actual), np.hstack(held)

    def _encode(self, factor: str) -> tuple[Array, bool]:
        """Return the columns (n, k) of a factor of a term, and whether it is a covariate."""
        matrix = _import_formulaic().model_matrix(f"0 + {factor}", self.data, context=_CONTEXT)
        names = matrix.model_spec.variables_by_source.get("data", ())
        is_number = all(self.data[name].dtype.kind in "iuf" for name in names)
        return np.asarray(matrix, dtype=np.float64), is_number and not factor.startswith("C(")

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns of the data that the model treats as groups."""
        names = dict.fromkeys(name for term in self.terms for name in term.split(":"))
        bare = [strip_markup(name) for name in names]
        return tuple(
            name
            for name, word in zip(bare, names, strict=True)
            if name in self.data.columns and (word != name or _is_categorical(self.data[name]))
        )

    @property
    def group_labels(self) -> list[str]:
        """One label per shape, of all factors; empty without a factor."""
        if not self.factors:
            return []
        return [":".join(map(str, row)) for row in self.data[list(self.factors)].to_numpy()]

    @property
    def notes(self) -> tuple[str, ...]:
        """How columns of few whole numbers, which could be groups, were taken."""
        words = {name.strip("`") for term in self.terms for name in term.split(":")}
        return tuple(
            f"{name!r} has {self.data[name].nunique()} different whole numbers and was taken as a "
            f"number, with one slope; C({name}) makes groups of it."
            for name in map(str, self.data.columns)
            if name in words and _could_be_groups(self.data[name])
        )


def _multiply_columns(left: Array, right: Array) -> Array:
    """Return the products (n, k l) of all columns of two arrays (n, k) and (n, l)."""
    return np.einsum("nk,nl->nkl", left, right).reshape(len(left), -1)


def strip_markup(name: str) -> str:
    """Return the column that a term has, as it is or as ``C(…)``, without backticks."""
    return re.sub(r"^C\((.*)\)$", r"\1", name).strip("`")


def _contains(term: str, smaller: str) -> bool:
    """Return whether a term is an interaction of another one with something."""
    return set(smaller.split(":")) < set(term.split(":"))


def _is_categorical(column: pd.Series) -> bool:
    return column.dtype.kind not in "iufb"


def _could_be_groups(column: pd.Series) -> bool:
    """Return whether a column has whole numbers of which most are repeated."""
    if column.dtype.kind not in "iu":
        return False
    return bool(1 < column.nunique() <= len(column) / 2)


def design(
    formula: str, data: Columns | pd.DataFrame, n: int, whitening: Array | None = None
) -> Design:
    """Build the design of ``shape ~ …`` for n shapes."""
    right, table = split_formula(formula), _make_table(data)
    check_formula(formula, list(map(str, table.columns)))
    formulaic = _import_formulaic()
    if len(table) != n and len(table.columns):
        raise ShapeError(f"The data must have one row per shape, {n}; got {len(table)}.")
    if not len(table.columns):
        table = _make_table({"_row": np.arange(n)})
    try:
        # inside of functions, which are Python, ^ would be the exclusive or of whole numbers
        python = _OPERATORS.sub(lambda match: "**" if match[0] == "^" else match[1] or "", right)
        with np.errstate(all="ignore"):  # what is not finite is refused below
            matrix = formulaic.model_matrix(python, table, context=_CONTEXT, na_action="raise")
    except formulaic.errors.FormulaicError as error:
        reason = "Operators stand between columns."
        if isinstance(error, formulaic.errors.FactorEvaluationError):
            reason = (
                "Functions need columns of numbers without gaps, and poly(x, k) more than k "
                "different values of x."
            )
        names = ", ".join(map(str, table.columns))
        raise DefgpaError(
            f"The formula {formula!r} cannot be used. {reason} The data have: {names}."
        ) from None
    except ValueError as error:
        gap = _explain_gap(formula, str(error), table)
        raise ShapeError(
            f"The data of {formula!r} have gaps: {gap}. Fill them, or drop these shapes."
        ) from None
    spans = {str(term): span for term, span in matrix.model_spec.term_slices.items()}
    if spans.pop("1", None) is None:
        raise DefgpaError(f"The formula {formula!r} must keep its intercept: drop '0 +' or '- 1'.")
    for variables in matrix.model_spec.factor_variables.values():
        _refuse_constants(table[[name for name in table if str(name) in variables]])
    columns = np.asarray(matrix, dtype=np.float64)
    if not (np.abs(columns) < _MAX_VALUE).all():
        raise ShapeError(
            f"The data of {formula!r} are not finite everywhere, or larger than {_MAX_VALUE:g}. "
            "Drop such shapes."
        )
    terms, slices = tuple(spans), tuple(spans.values())
    return Design(terms, columns, slices, matrix.model_spec, table, whitening)


def _refuse_constants(used: pd.DataFrame) -> None:
    """Raise a ShapeError if all columns of a factor, such as ``log(x)``, are constant.

    A constant beside another column, as in ``I(x / unit)``, makes no constant of it.
    """
    if len(used) > 1 and len(used.columns) and (used.nunique() == 1).all():
        value = str(used.iloc[0, 0])[:40]
        raise ShapeError(
            f"Column {str(used.columns[0])!r} is {value!r} for all shapes, so shape cannot depend "
            "on it. Leave it out of the formula."
        )


def _explain_gap(formula: str, message: str, table: pd.DataFrame) -> str:
    """Explain which term of a formula has no value for some shapes."""
    quoted = re.search("`(.+?)`", message)
    term = quoted[1] if quoted else formula
    reason = "log and sqrt are of positive numbers, scale and poly of numbers that differ"
    if term in table.columns:
        n_empty = int(table[term].isna().sum())
        reason = f"the column has {n_empty} empty cell{'s' * (n_empty > 1)}"
    return f"{term} has no value for some shapes ({reason})"


def make_orthonormal_bases(intercept: Array, blocks: Sequence[Array]) -> list[Array]:
    """Return of every block (n, k) what neither the intercept nor the blocks before explain."""
    explained, bases = intercept, []
    for block in blocks:
        scaled = block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(np.float64).tiny)
        for _ in range(2):  # once more, or rounding would leave them not quite orthogonal
            scaled = scaled - explained @ (explained.T @ scaled)
        U, lengths, _ = np.linalg.svd(scaled, full_matrices=False)
        bases.append(U[:, lengths > 1e-9])  # less is left of columns that others explain
        explained = np.hstack([explained, bases[-1]])
    return bases


def _make_table(data: Mapping[str, object] | pd.DataFrame) -> pd.DataFrame:
    import pandas

    if isinstance(data, pandas.DataFrame):
        return data.reset_index(drop=True)
    try:
        return pandas.DataFrame({key: np.asarray(value) for key, value in dict(data).items()})
    except ValueError:
        lengths = {key: len(np.atleast_1d(value)) for key, value in dict(data).items()}
        raise ShapeError(f"The columns of the data have different lengths: {lengths}.") from None


def _import_formulaic() -> ModuleType:
    install_hint = 'Formulas need the package formulaic: pip install "defgpa[statistics]".'
    return import_extra("formulaic", install_hint)


def _format_error(error: Exception) -> str:
    """Return a message of formulaic in one line without its colours."""
    return " ".join(_MARKUP.sub("", str(error)).split()).rstrip(".") + "."
