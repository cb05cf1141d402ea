"""Second-order descent: monotone, quadratic at the end, out of saddles, honest when it fails."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from defgpa.solvers.trust_region import GRADIENT_TOLERANCE, minimise
from support import EXACT, PARITY


@dataclass(frozen=True)
class Valley:
    """Rosenbrock's hessian_product valley: (1 − x)² + 100 (y − x²)²."""

    x: float
    y: float

    cost_scale = 1.0

    @property
    def cost(self):
        return (1 - self.x) ** 2 + 100 * (self.y - self.x**2) ** 2

    @property
    def gradient(self):
        bend = 200 * (self.y - self.x**2)
        return np.array([-2 * (1 - self.x) - 2 * self.x * bend, bend])

    @property
    def relative_gradient(self):
        return float(np.linalg.norm(self.gradient))

    def hessian_product(self, step):
        H = np.array([[2 - 400 * (self.y - 3 * self.x**2), -400 * self.x], [-400 * self.x, 200.0]])
        return H @ step

    def precondition(self, relative_gradient):
        return relative_gradient

    def retract(self, step):
        return type(self)(self.x + step[0], self.y + step[1])


@dataclass(frozen=True)
class Quadratic:
    """½ xᵀHx − bᵀx, that remembers the costs of the places it has been asked about."""

    H: np.ndarray
    b: np.ndarray
    x: np.ndarray
    visited: list

    cost_scale = 1.0

    @property
    def cost(self):
        return float(0.5 * self.x @ self.H @ self.x - self.b @ self.x)

    @property
    def gradient(self):
        return self.H @ self.x - self.b

    @property
    def relative_gradient(self):
        return float(np.linalg.norm(self.gradient))

    def hessian_product(self, step):
        return self.H @ step

    def precondition(self, relative_gradient):
        self.visited.append(self.cost)
        return relative_gradient / np.diag(self.H)

    def retract(self, step):
        return replace(self, x=self.x + step)


@dataclass(frozen=True)
class Saddle(Valley):
    """(x² − 1)² + y²: a saddle at the origin between two minima."""

    @property
    def cost(self):
        return (self.x**2 - 1) ** 2 + self.y**2

    @property
    def gradient(self):
        return np.array([4 * self.x * (self.x**2 - 1), 2 * self.y])

    def hessian_product(self, step):
        return np.array([(12 * self.x**2 - 4) * step[0], 2 * step[1]])


@dataclass(frozen=True)
class Slide(Valley):
    """−log x: falls for ever."""

    @property
    def cost(self):
        return -np.log(self.x) if self.x > 0 else np.inf

    @property
    def gradient(self):
        return np.array([-1 / self.x, 0.0])

    @property
    def relative_gradient(self):
        return 1.0

    def hessian_product(self, step):
        return np.array([step[0] / self.x**2, step[1]])

    def precondition(self, relative_gradient):
        return relative_gradient * self.x**2


@dataclass(frozen=True)
class Ledge(Slide):
    """The same, where the cost is known to no digit at all."""

    cost_scale = 1e20


def test_a_curved_valley_is_followed_to_its_end():
    actual, _ = minimise(Valley(-1.2, 1.0))
    np.testing.assert_allclose([actual.x, actual.y], 1, **EXACT)


def spread_spectrum(rng, rank):
    axes, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    return axes[:, :rank] * np.logspace(-2, 2, rank) @ axes[:, :rank].T


def test_a_quadratic_is_solved_and_every_step_goes_down(rng):
    H, truth = spread_spectrum(rng, 12), rng.normal(size=12)
    start = Quadratic(H, H @ truth, np.zeros(12), [])
    actual, _ = minimise(start)
    np.testing.assert_allclose(actual.x, truth, **PARITY)
    assert len(start.visited) > 10
    assert (np.diff(start.visited) <= 0).all()


def test_directions_that_cost_nothing_are_left_alone(rng):
    """The preconditioner is the identity here, so the answer nearest to the start is found."""
    H = spread_spectrum(rng, 8)
    truth = H @ rng.normal(size=12)
    scale = np.sqrt(np.diag(H))
    H, truth = H / np.outer(scale, scale), truth * scale
    actual, _ = minimise(Quadratic(H, H @ truth, np.zeros(12), []))
    np.testing.assert_allclose(actual.x, np.linalg.pinv(H) @ H @ truth, **PARITY)


def test_at_the_minimum_nothing_is_done():
    actual, steps = minimise(Valley(1.0, 1.0))
    assert steps == 0
    assert actual == Valley(1.0, 1.0)


def test_a_saddle_is_left_downwards():
    actual, _ = minimise(Saddle(1e-6, 0.5))
    np.testing.assert_allclose([abs(actual.x), actual.y], [1, 0], **EXACT)


@pytest.mark.parametrize(("start", "steps"), [(Slide(1.0, 0.0), 300), (Ledge(1.0, 0.0), 0)])
def test_a_descent_without_end_or_stopped_by_rounding_is_not_on_flat_ground(start, steps):
    actual, taken = minimise(start)
    assert taken == steps
    assert actual.relative_gradient > GRADIENT_TOLERANCE


def test_the_descent_stops_at_the_gradient_it_is_asked_for():
    rough, n_rough = minimise(Valley(-1.2, 1.0), target_gradient=1e-2)
    exact, n_exact = minimise(Valley(-1.2, 1.0))
    assert GRADIENT_TOLERANCE < rough.relative_gradient <= 1e-2
    assert exact.relative_gradient <= 1e-10
    assert n_rough < n_exact
