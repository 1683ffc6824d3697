"""Minimizes a smooth function plus an L1 penalty by OWL-QN, L-BFGS that keeps the signs in a step. Needs NumPy only.

Andrew and Gao, 2007, "Scalable Training of L1-Regularized Log-Linear Models". CRFsuite uses the same algorithm.
"""

from collections import deque
from collections.abc import Callable

import numpy as np

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]  # the value and the gradient
Pair = tuple[np.ndarray, np.ndarray, float]  # a step, the change of the gradient, and their product
_MEMORY = 6  # pairs of steps and changes of the gradient
_SUFFICIENT = 1e-4  # the fraction of the decrease predicted by the gradient that a step must reach
_PERIOD = 10  # iterations over which the improvement is measured


def minimize(
    function: Objective,
    x: np.ndarray,
    l1: float = 0.0,
    iterations: int = 100,
    tolerance: float = 1e-4,
    on_iteration: Callable[[int], object] | None = None,
) -> tuple[np.ndarray, float]:
    """The minimum of `function(x) + l1 * sum(abs(x))`: the point and the value there.

    Stops when the last ten iterations have improved the objective by less than the fraction `tolerance`.
    """
    value, gradient = function(x)
    objectives = [value + l1 * np.abs(x).sum()]
    pairs: deque[Pair] = deque(maxlen=_MEMORY)
    for iteration in range(iterations):
        steepest = _pseudo_gradient(x, gradient, l1)
        if not steepest.any():
            break
        point = _search(function, x, _direction(steepest, pairs, l1), steepest, objectives[-1], l1, not pairs)
        if point is None:
            break
        there, objective, gradient_there = point
        step, change = there - x, gradient_there - gradient
        curvature = float(step @ change)
        if curvature > 0:
            pairs.append((step.astype("float32"), change.astype("float32"), curvature))  # float32 halves the memory
        x, gradient = there, gradient_there
        objectives.append(objective)
        if on_iteration:
            on_iteration(iteration)
        if len(objectives) > _PERIOD and objectives[-1 - _PERIOD] - objective < tolerance * abs(objective):
            break
    return x, objectives[-1]


def _pseudo_gradient(x: np.ndarray, gradient: np.ndarray, l1: float) -> np.ndarray:
    """The subgradient of the objective that is nearest to 0."""
    if not l1:
        return gradient
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0)
    return np.where(x == 0, at_zero, gradient + l1 * np.sign(x))


def _direction(steepest: np.ndarray, pairs: deque[Pair], l1: float) -> np.ndarray:
    """The direction of the search: minus the gradient times the inverse Hessian, which the last steps approximate.

    These are the two loops of L-BFGS. With an L1 penalty, coordinates that would ascend do not move.
    """
    direction, factors = -steepest, []
    for step, change, curvature in reversed(pairs):
        factors.append(step @ direction / curvature)
        direction -= factors[-1] * change
    if pairs:
        _, change, curvature = pairs[-1]
        direction *= curvature / (change @ change)
    for (step, change, curvature), factor in zip(pairs, reversed(factors), strict=True):
        direction += (factor - change @ direction / curvature) * step
    if l1:
        direction[direction * steepest >= 0] = 0
    return direction


def _search(
    function: Objective,
    x: np.ndarray,
    direction: np.ndarray,
    steepest: np.ndarray,
    objective: float,
    l1: float,
    is_first: bool,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Halves the step until the objective has decreased enough: `(point, objective, gradient)`, or None after 40 times.

    With an L1 penalty, coordinates that change their sign become 0.
    """
    orthant = np.where(x == 0, -np.sign(steepest), np.sign(x))
    size = 1 / np.linalg.norm(steepest) if is_first else 1.0
    for _ in range(40):
        there = x + size * direction
        if l1:
            there[there * orthant < 0] = 0
        value, gradient = function(there)
        value += l1 * np.abs(there).sum()
        if value <= objective + _SUFFICIENT * (steepest @ (there - x)):
            return there, value, gradient
        size /= 2
    return None
