"""The random permutations of R, so that P and Z can be compared with those that R printed.

``set.seed`` fills the state of a Mersenne twister by a linear congruential generator, and
``sample.int`` draws every index by rejection of random bits (R 3.6 and later). RRPP seeds by the
number of permutations.
"""

from __future__ import annotations

import numpy as np

from defgpa.statistics.permutation import Permutations


def permute_as_r(n: int, count: int) -> np.ndarray:
    """Return (count, n): what ``set.seed(count)`` and ``sample.int(n, n)`` give, count times."""
    draw = _make_generator(count)
    return np.array([_sample(n, draw) for _ in range(count)])


def use_permutations_of_r(monkeypatch, n: int, count: int = 999, inverse: bool = False) -> None:
    """Make all statistics permute as R does.

    Where a statistic permutes the rows of its design rather than those of the shapes, ``inverse``
    gives it the inverse orders.
    """
    orders = permute_as_r(n, count)
    orders = orders.argsort(axis=1) if inverse else orders
    monkeypatch.setattr(Permutations, "each", lambda self, n, width, work, held=0: work(orders))


def _make_generator(seed: int):
    state = []
    for _ in range(50 + 625):
        seed = (69069 * seed + 1) % 2**32
        state.append(seed)
    twister = np.random.MT19937()
    key = np.array(state[51:], dtype=np.uint32)
    twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    return lambda: int(twister.random_raw()) >> 16  # the upper 16 bits


def _sample(n: int, draw) -> list[int]:
    left, chosen = list(range(n)), []
    while left:
        k = _draw_index(len(left), draw)
        chosen.append(left[k])
        left[k] = left[-1]
        left.pop()
    return chosen


def _draw_index(n: int, draw) -> int:
    bits = (n - 1).bit_length()
    while True:
        value = 0
        for _ in range(0, bits + 1, 16):
            value = 65536 * value + draw()
        value &= (1 << bits) - 1
        if value < n:
            return value
