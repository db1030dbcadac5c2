"""Fits the constants of an engine to end-to-end results, each level of detail shrunk towards the one above it.

The levels: all engines, an engine's generation, and that generation on a class of accelerators. The few results of a
class move its constants away from the level above only as far as the data insist (a ridge on logarithms), so that a
model or an accelerator that was never measured gets sensible figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy.optimize import least_squares

from ..arrays import FloatArray
from ..calibration.engine_profile import EngineConstants
from .compiled import mean_times
from .engine_cases import Case

# Priors: published and physical starting values, and how far (as a logarithm, one standard deviation) a constant may
# stray from the level above before the fit pays for it. Kernel factors are known best, host times least.
PRIORS: Mapping[str, tuple[float, float]] = {
    "host_step_ms": (0.8, 0.6),
    "host_sequence_us": (5.0, 0.6),
    "host_prefill_ms": (1.0, 0.8),
    "memory_scale": (1.05, 0.10),
    "compute_scale": (1.05, 0.10),
    "attention_scale": (1.05, 0.15),
    "moe_fixed_scale": (0.75, 0.25),
    "moe_scale": (0.85, 0.15),
    "communication_scale": (1.1, 0.20),
    "head_token_ns": (8.0, 0.5),
    "recurrent_layer_us": (10.0, 1.0),
    "client_ms": (6.0, 0.8),
    "client_token_us": (1.0, 0.8),
    "first_token_steps": (0.3, 0.7),
    "interval_token_steps": (3.0, 1.2),
}
NAMES = tuple(PRIORS)
# Steps of the derivatives: large enough that a simulation that jumps a little does not look steep.
_STEP = 0.03
_SOFT = 0.15
_LEAST = 1e-9
# A case without a prediction costs as much as one that is off by this factor, or constants under which nothing can be
# served would fit best.
FAILED_FACTOR = 10.0


class Fitted(Struct, frozen=True):
    """Logarithms of constants as they are fitted, and to how many figures."""

    logs: tuple[float, ...]
    figures: int

    @property
    def constants(self) -> EngineConstants:
        """The constants themselves."""
        return constants_of(np.array(self.logs))


def prior() -> Fitted:
    """Starting values before anything was measured."""
    return Fitted(tuple(math.log(value) for value, _ in PRIORS.values()), 0)


def constants_of(logs: FloatArray) -> EngineConstants:
    """The constants whose logarithms these are, bounded to what the profile takes."""
    values: list[float] = np.clip(np.exp(logs), 1e-6, 90.0).tolist()
    return EngineConstants(**dict(zip(NAMES, values, strict=True)))


def residuals(logs: FloatArray, cases: Sequence[Case]) -> FloatArray:
    """Weighted log errors of every figure of every case."""
    constants = constants_of(logs)
    errors: list[float] = []
    for case in cases:
        times = mean_times(case.server_with(constants), case)
        for figure, measured in case.measured.items():
            weight = math.sqrt(case.weight * _WEIGHTS.get(figure, 1.0))
            errors.append(weight * log_error(None if times is None else case.figure(times, figure), measured))
    return np.array(errors)


def log_error(predicted: float | None, measured: float) -> float:
    """Signed log error of a prediction; of a figure that has none, that of `FAILED_FACTOR`."""
    return math.log(FAILED_FACTOR) if predicted is None else math.log(max(_LEAST, predicted) / measured)


# A time per token is measured best; a first token under load depends most on what nobody publishes.
_WEIGHTS = {"tpot_ms": 2.0, "ttft_ms": 0.7}


def fit(cases: Sequence[Case], parent: Fitted, slack: float = 1.0) -> Fitted:
    """Constants for `cases`, held near those of `parent` by a ridge `slack` times as wide as the priors say."""
    if not cases:
        return parent
    centre = np.array(parent.logs)
    widths = np.array([PRIORS[name][1] * slack for name in NAMES])
    weighted = weigh(cases)
    count = sum(len(case.measured) for case in cases)

    def errors(logs: FloatArray) -> FloatArray:
        data = residuals(logs, weighted)
        # Soft L1 by hand, so that the ridge stays quadratic.
        soft = np.sign(data) * _SOFT * np.sqrt(2.0 * (np.sqrt(1.0 + (data / _SOFT) ** 2) - 1.0))
        return np.concatenate([soft / _SOFT, (logs - centre) / widths])

    def slopes(logs: FloatArray) -> FloatArray:
        start = errors(logs)
        return np.stack([(errors(logs + step) - start) / _STEP for step in _STEP * np.eye(len(NAMES))], axis=1)

    solution = least_squares(errors, centre, jac=slopes, method="trf", max_nfev=6, xtol=2e-3, ftol=2e-3)
    return Fitted(tuple(float(value) for value in solution.x), count)


def weigh(cases: Sequence[Case]) -> list[Case]:
    """Cases weighted so that each group counts as much as about three figures, however many rows it has."""
    sizes: dict[str, int] = {}
    for case in cases:
        sizes[case.about.group] = sizes.get(case.about.group, 0) + 1
    return [replace(case, weight=min(1.0, 3.0 / sizes[case.about.group])) for case in cases]
