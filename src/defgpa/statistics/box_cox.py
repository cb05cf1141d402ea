"""Effect sizes: standard scores of statistics among permuted ones that Box–Cox makes normal."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from defgpa.arrays import Array

_EQUAL = 1e-10  # relative range of values that differ by rounding


def effect_size(observed: float, permuted: Array) -> float:
    """Compute Z: the standard score of the observed value among all, after Box–Cox, as RRPP.

    Mean and variance are those of all values, the observed one among them.
    """
    values = transform_to_normal(observed, permuted)
    if values is None:
        return float("nan")
    return float((values[-1] - values.mean()) / values.std())


def transform_to_normal(observed: float, permuted: Array) -> Array | None:
    """Transform permuted values and, at the end, the observed one by Box–Cox; None if all agree.

    The exponent λ in [−5, 5] is the one under which the permuted values, without the observed one,
    are most nearly normal (largest likelihood). Values are shifted to be positive where one is not.
    """
    values = np.append(permuted, observed)
    values = values[~np.isnan(values)]
    if np.isnan(observed) or len(values) < 3 or np.ptp(values) <= _EQUAL * np.abs(values).max():
        return None
    if values.min() <= 0:
        values = values - values.min() + 1e-4 * np.ptp(values)
    exponent = fit_box_cox(values[:-1])
    if exponent is None:
        return None
    logs = np.log(values)
    mean = float(logs[:-1].mean())
    return np.asarray(np.exp(exponent * mean) * _transform_box_cox(logs - mean, exponent))


def fit_box_cox(values: Array, max_exponent: float = 5.0) -> float | None:
    """Estimate the exponent λ under which positive values are most nearly normal; None if equal."""
    logs = np.log(values)
    if np.ptp(logs) <= _EQUAL:
        return None
    logs -= logs.mean()  # about 0: powers neither over- nor underflow

    def minus_log_likelihood(exponent: float) -> float:
        return 0.5 * float(np.log(_transform_box_cox(logs, exponent).var()))

    bounds = (-max_exponent, max_exponent)
    return float(minimize_scalar(minus_log_likelihood, bounds=bounds, method="bounded").x)


def _transform_box_cox(logs: Array, exponent: float) -> Array:
    """Transform values of geometric mean about 1, given by their logarithms: (y^λ − 1) / λ."""
    if abs(exponent) < 1e-3:
        return logs
    return np.asarray(np.expm1(exponent * logs) / exponent)
