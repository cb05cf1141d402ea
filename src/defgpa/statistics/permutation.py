"""Chance: random orders and rotations, seeded, and P among what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Index, Mask, Progress
from defgpa.errors import DefgpaError
from defgpa.threads import map_blocks

Drawn = TypeVar("Drawn", bound=np.ndarray)

_TIES = 1e-10  # relative: a permutation that gives the same groups gives the same ratio


@dataclass(frozen=True)
class Permutations:
    """Seeded random permutations; the same ones for any number of threads."""

    count: int = 999
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, value, minimum in (("n_permutations", self.count, 1), ("seed", self.seed, 0)):
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not is_whole or value < minimum:
                raise DefgpaError(
                    f"'{name}' must be a whole number of at least {minimum}. Got {value!r} instead."
                )

    def each(
        self, n: int, width: int, work: Callable[[Index], Array], held: int = 1 << 20
    ) -> Array:
        """Call ``work`` on blocks (b, n) of random orders; concatenate its results (b, …).

        A block has as many orders as keep ``held`` numbers, ``width`` for each row of each.
        """

        def draw(rng: np.random.Generator, count: int) -> Index:
            return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)

        return self._run_blocks(n * max(width, 1), draw, work, held)

    def each_rotation(self, size: int, rank: int, work: Callable[[Array], Array]) -> Array:
        """Call ``work`` on blocks (b, size, rank) of columns of random orthogonal matrices."""

        def draw(rng: np.random.Generator, count: int) -> Array:
            columns, triangles = np.linalg.qr(rng.normal(size=(count, size, rank)))
            # all signs are as likely, where QR makes one entry of each column negative
            signs = np.sign(np.diagonal(triangles, axis1=1, axis2=2))
            return np.asarray(columns * signs[:, None])

        return self._run_blocks(4 * size * max(rank, 1), draw, work)

    def _run_blocks(
        self,
        width: int,
        draw: Callable[[np.random.Generator, int], Drawn],
        work: Callable[[Drawn], Array],
        held: int = 1 << 20,
    ) -> Array:
        max_block = max(1, held // max(width, 1))
        counts = [min(max_block, self.count - start) for start in range(0, self.count, max_block)]
        seeds = np.random.SeedSequence(self.seed).spawn(len(counts))
        n_done, lock = [0], Lock()

        def run(block: tuple[int, np.random.SeedSequence]) -> Array:
            count, seed = block
            result = work(draw(np.random.default_rng(seed), count))
            with lock:
                n_done[0] += count
                if self.progress is not None:
                    self.progress(n_done[0], self.count)
            return result

        return np.concatenate(map_blocks(run, list(zip(counts, seeds, strict=True))))

    def signs(self, k: int) -> Array:
        """Draw random rows (count, k) of ±1, independent of the orders."""
        rng = np.random.default_rng([self.seed, k])
        return rng.choice([-1.0, 1.0], size=(self.count, k))


def p_value(observed: float, permuted: Array) -> float:
    """Compute P: the share of permuted values, the observed one included, that reach the observed.

    Examples
    --------
    >>> import numpy as np
    >>> p_value(3.0, np.array([1.0, 3.0, 0.5, 2.0]))
    0.4
    """
    return float(p_values(np.float64(observed), permuted))


def p_values(observed: ArrayLike, permuted: Array) -> Array:
    """Compute `p_value` of several figures (k,) from those of all permutations (count, k)."""
    observed = np.asarray(observed, dtype=np.float64)
    p = (1.0 + reaches_observed(observed, permuted).sum(axis=0)) / (1.0 + len(permuted))
    return np.where(np.isnan(observed), np.nan, p)


def reaches_observed(observed: float | Array, permuted: Array) -> Mask:
    """Return where permuted values are as large as the observed ones, but for rounding."""
    return np.asarray(permuted >= observed - _TIES * np.abs(observed))


def compare_with_chance(
    Y: Array,
    reduced: Array,
    extract: Array,
    measure: Callable[[Array], Array],
    permutations: Permutations,
    chance: str = "rotations",
) -> tuple[Array, Array]:
    """Measure combinations of shapes as observed, and as chance alone would make them.

    The part that the reduced model explains stays; what it leaves is rotated at random within the
    space of residuals, or permuted. Permuted residuals vary less than errors, by the share of the
    parameters, which makes angles too small; rotations are exact for normal errors (Langsrud 2005).

    Parameters
    ----------
    Y : array (n, p)
        Shapes.
    reduced : array (n, q)
        Orthonormal columns of the model of the null hypothesis, its intercept among them.
    extract : array (r, n)
        The combinations, such as means of groups.
    measure : callable (b, r, p) -> (b, k)
    permutations : Permutations
    chance : {"rotations", "residuals"}

    Returns
    -------
    observed : array (k,)
    chance : array (n_permutations, k)
    """
    require_chance(chance)
    n = len(Y)
    Y = compress_columns(Y - Y.mean(axis=0))
    expected = reduced @ (reduced.T @ Y)
    residuals, constant = Y - expected, extract @ expected
    observed = measure((constant + extract @ residuals)[None])[0]
    if chance == "residuals":

        def permute(orders: Index) -> Array:
            # the rows of the combinations in the inverse order, which is as likely
            return measure(extract_permuted(extract, orders, residuals) + constant)

        return observed, permutations.each(n, len(extract), permute)
    space = np.linalg.qr(reduced, mode="complete")[0][:, reduced.shape[1] :]
    left, lengths, _ = np.linalg.svd(extract @ space, full_matrices=False)
    rank = int((lengths > _TIES * lengths.max()).sum())
    mixing, errors = left[:, :rank] * lengths[:rank], space.T @ Y

    def rotate(frames: Array) -> Array:
        return measure(mixing @ (frames.transpose(0, 2, 1) @ errors) + constant)

    return observed, permutations.each_rotation(len(errors), rank, rotate)


def require_chance(chance: str) -> None:
    """Raise a DefgpaError unless ``chance`` is the name of a way to simulate chance."""
    if chance not in ("rotations", "residuals"):
        raise DefgpaError(f"'chance' is 'rotations' or 'residuals'; got {chance!r}.")


def describe_chance(count: int, chance: str) -> str:
    """Say how often residuals were rotated or permuted."""
    return f"{count} {'rotations' if chance == 'rotations' else 'permutations'} of the residuals"


def compress_columns(Y: Array) -> Array:
    """Return at most n columns with the same products of rows, hence the same projections."""
    if Y.shape[1] <= len(Y):
        return Y
    return np.asarray(np.linalg.qr(Y.T, mode="r"), dtype=np.float64).T


def extract_permuted(rows: Array, orders: Index, Y: Array) -> Array:
    """Compute combinations (b, r, p) of Y (n, p) by rows (r, n) whose entries are permuted.

    One product for all orders (b, n): a product for each takes three times as long.
    """
    products = rows[:, orders].reshape(-1, len(Y)) @ Y
    return products.reshape(len(rows), len(orders), Y.shape[1]).swapaxes(0, 1)
