"""The array types of the package, what is done to them everywhere, and work on all cores.

Work that comes in independent blocks is spread over Python threads (numpy and scipy release the
GIL). BLAS is held to one thread meanwhile, and between the blocks too: the threads it starts for
one product go on spinning afterwards, and take the cores from ours. Small work stays on the thread
it is on: handing it over would cost more than it saves.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import cache
from itertools import count, islice
from threading import Lock, local
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
Progress = Callable[[int, int], None]  # called with (done, total)

_A = TypeVar("_A", bound=NDArray[Any])
_T = TypeVar("_T")
_R = TypeVar("_R")


def freeze(array: _A) -> _A:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


class Stack:
    """A dataclass that an index takes a part of: its arrays have one entry per shape in front.

    Fields that are neither arrays nor stacks are shared by all shapes.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getitem__(self, shape: Any) -> Self:
        some = object.__new__(type(self))
        fields, new_fields = vars(self), vars(some)
        for name in self.__dataclass_fields__:
            value = fields[name]
            new_fields[name] = value[shape] if isinstance(value, (np.ndarray, Stack)) else value
        return some


_S = TypeVar("_S", bound=Stack)


def join_stacks(stacks: Sequence[_S]) -> _S:
    """Join stacks behind each other; what they share is that of the first."""
    first = stacks[0]
    if len(stacks) == 1:
        return first
    joined = object.__new__(type(first))
    for name in first.__dataclass_fields__:
        values = [vars(stack)[name] for stack in stacks]
        vars(joined)[name] = (
            np.concatenate(values) if isinstance(values[0], np.ndarray) else values[0]
        )
    return joined


def multiply_thin(wide: Array, tall: Array) -> Array:
    """Multiply two matrices with far more terms to each sum than entries in the result.

    As ``@``, which does not let other threads run meanwhile where the result is small.
    """
    return np.asarray(np.dot(wide, tall), dtype=np.float64)


def rms(vectors: Array) -> float:
    """Return the root mean square length of vectors (p, d)."""
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))


def rms_radius(points: Array) -> float:
    """Return the root mean square distance of points (p, d) from their centroid."""
    return rms(points - points.mean(axis=0))


def sum_arrays(arrays: Sequence[Array]) -> Array:
    """Add arrays of one size, in order, into the first."""
    total, *others = arrays
    for array in others:
        total += array
    return total


def symmetrise(stack: Array) -> Array:
    """Return the symmetric part of every matrix of a stack, to undo what rounding did."""
    return 0.5 * (stack + stack.mT)


def compute_norms(stack: Array) -> Array:
    """Return the Frobenius norm (…) of every matrix of a stack (…, i, j)."""
    return np.asarray(np.sqrt(np.einsum("...ij,...ij->...", stack, stack)))


def invert_lower(stack: Array) -> Array:
    """Return L⁻¹ of every lower triangular matrix of a stack (…, l, l)."""
    if stack.shape[-1] < 8:  # the batched general one beats LAPACK's triangular inverse
        return np.asarray(np.linalg.inv(stack), dtype=np.float64)
    from scipy.linalg.lapack import dtrtri  # slow to load, and files are read without it

    inverse = np.empty_like(stack)
    for number in np.ndindex(stack.shape[:-2]):
        # LAPACK reads by columns: the rows of L are the columns of the upper triangular Lᵀ
        inverse[number] = dtrtri(stack[number].T, lower=0)[0].T
    return inverse


def compute_inverse_root(stack: Array, negligible: float) -> Array:
    """Return V Σ^(−1/2) of every E = V Σ Vᵀ of a stack; zero columns where Σ is negligible.

    Such directions have nearly no effect: dropping them changes results by less than rounding,
    dividing by them would amplify it.
    """
    values, vectors = np.linalg.eigh(stack)
    is_relevant = values > negligible * values[..., -1:]
    roots = np.where(is_relevant, 1.0 / np.sqrt(np.where(is_relevant, values, 1.0)), 0.0)
    return np.asarray(vectors * roots[..., None, :])


USUAL_FEATURES = 64  # of a warp that bends
_LITTLE = 2048 * USUAL_FEATURES  # numbers: landmarks of all shapes times features


_thread_state = local()


@cache
def _find_libraries() -> Sequence[Any]:
    """Return the BLAS libraries of numpy and scipy."""
    import scipy.linalg  # noqa: F401 - loads its library; slow, and files are read without it
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(libraries: Iterable[tuple[Any, int]]) -> None:
    let_go = None
    for library, threads in libraries:
        if library.num_threads != threads:
            library.set_num_threads(threads)
            let_go = getattr(library, "clear_controlling_thread", let_go)
    if let_go is not None:  # else no other thread could lift the limit until this one ends
        let_go()


def count_threads() -> int:
    """Return how many threads to use: those that BLAS may use, within outside limits."""
    allowed: int | None = getattr(_thread_state, "allowed", None)
    if allowed is not None:
        return allowed
    return max(1, min([*(library.num_threads for library in _find_libraries()), _count_cores()]))


@cache
def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _OneBlasThread(ContextDecorator):
    """A limit that is set when the first holder comes and lifted when the last one leaves.

    BLAS has one limit for the whole process: holders on several threads must not restore what
    another of them had set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._before = [(library, library.num_threads) for library in _find_libraries()]
                _set_threads((library, 1) for library, _ in self._before)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _set_threads(self._before)

    def reset_after_fork(self) -> None:
        """Forget the threads that held the limit or this lock: a forked process has none."""
        self._lock = Lock()
        if self._holders:
            self._holders = 0
            _set_threads(self._before)


one_blas_thread = _OneBlasThread()


@contextmanager
def use_threads(allowed: int | None = None) -> Iterator[None]:
    """Hold BLAS to one thread, and use as many threads as it had, or as are allowed."""
    before = getattr(_thread_state, "allowed", None)
    allowed = count_threads() if allowed is None else allowed
    with one_blas_thread:
        _thread_state.allowed = allowed
        try:
            yield
        finally:
            _thread_state.allowed = before


def choose_threads(features: int) -> AbstractContextManager[None]:
    """Choose one thread for work on few features in all, else as many as allowed."""
    return one_blas_thread if features <= _LITTLE else use_threads()


def split_range(size: int, block: int) -> list[slice]:
    """Split ``range(size)`` into slices of at most ``block`` entries."""
    return [slice(start, min(start + block, size)) for start in range(0, size, block)]


def map_blocks(work: Callable[[_T], _R], blocks: Sequence[_T] | Iterable[_T]) -> list[_R]:
    """Call ``work`` on every block, on the threads there are; return the results in order.

    This thread works too and the others help it: so it never waits for one that has not begun, and
    blocks within blocks cannot wait for each other.
    """
    blocks = list(blocks)
    workers = min(count_threads(), len(blocks)) if len(blocks) > 1 else 1
    if workers == 1:
        return [work(block) for block in blocks]
    results: dict[int, _R] = {}
    turn = count()

    def take_turns() -> None:
        try:
            while (mine := next(turn)) < len(blocks):
                results[mine] = work(blocks[mine])
        except BaseException:
            deque(islice(turn, len(blocks)), maxlen=0)  # the others need not begin another
            raise

    with use_threads(1):
        helpers = [_get_helpers().submit(take_turns) for _ in range(workers - 1)]
        try:
            take_turns()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
    return [results[number] for number in range(len(blocks))]


@cache
def _get_helpers() -> ThreadPoolExecutor:
    """Return threads that are kept, since starting one takes as long as a small block."""
    return ThreadPoolExecutor(max(1, _count_cores() - 1), thread_name_prefix="defgpa")


def _reset_after_fork() -> None:
    _get_helpers.cache_clear()
    one_blas_thread.reset_after_fork()


if hasattr(os, "register_at_fork"):  # a forked process has none of our threads
    os.register_at_fork(after_in_child=_reset_after_fork)
