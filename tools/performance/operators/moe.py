"""The routed experts of one device: how many are touched, how many token copies arrive, what the slowest one computes.

Experts are touched as by uniform and independent routing, which touches the most. The slowest device sets the pace: its
load is what the workload states, else the larger of the expected maximum of uniform routing, which rules small batches,
and the measured skew (`calibration/forms/exchange.py`), which rules large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...calibration.forms.elementary import Number, exceeds, larger, smaller
from ...calibration.forms.exchange import skewed_load
from ...calibration.shapes import GroupedGemm
from .work import Matrix, Work


def active_experts(experts: int, top_k: int, tokens: Number) -> Number:
    """Distinct experts that `tokens` touch: E (1 - (1 - k/E)^tokens)."""
    return experts * (1.0 - (1.0 - min(1.0, top_k / experts)) ** tokens)


@dataclass(frozen=True, slots=True)
class ExpertLoad:
    """What arrives at the slowest expert group: token copies, experts touched, and how it compares to the mean.

    `tokens` are those of the whole stage.
    """

    tokens: Number
    copies: Number
    touched: Number
    imbalance: Number


@dataclass(frozen=True, slots=True)
class Routing:
    """Each token goes to `top_k` of `experts`; `imbalance`: load of the busiest group over the mean, where stated."""

    experts: int
    top_k: int
    imbalance: float | None = None


def slowest_load(tokens: Number, routing: Routing, hosted: int, share: float, groups: int) -> ExpertLoad:
    """Load of the slowest of `groups` expert groups that hosts `hosted` experts, `share` of all expert slots.

    The expected maximum of `groups` near-normal loads of mean m is m + sqrt(2 m ln groups), and a token sends at most
    min(k, hosted) copies to one group.
    """
    mean = tokens * routing.top_k * share
    if not exceeds(mean, 0.0):
        return ExpertLoad(tokens, 0.0, 0.0, 1.0)
    most = tokens * min(routing.top_k, hosted)
    spread = (2.0 * mean * math.log(groups)) ** 0.5 if groups > 1 else 0.0
    random = larger(mean, smaller(most, mean + spread))
    expected = hosted * active_experts(routing.experts, routing.top_k, tokens) / routing.experts
    touched = smaller(float(hosted), smaller(random, expected * random / mean))
    if groups == 1:
        copies = mean
    elif routing.imbalance is None:
        copies = larger(random, smaller(most, mean * skewed_load(groups)))
    else:
        copies = larger(mean, smaller(most, mean * routing.imbalance))
    return ExpertLoad(tokens, copies, smaller(touched, copies), copies / mean)


@dataclass(frozen=True, slots=True)
class ExpertBank:
    """The routed experts of a layer on one device: `matrix` is all of one expert, `inner` its width there."""

    matrix: Matrix
    experts: int
    hidden: int
    inner: float
    gated: bool


def expert_work(load: ExpertLoad, bank: ExpertBank, copy_bytes: float) -> Work:
    """Grouped matrix multiplications of `load`; a copy moves `copy_bytes`: in, between the matrices, and out."""
    matrix = bank.matrix
    read = load.touched * matrix.weight_bytes
    kernel = GroupedGemm(
        load.tokens, load.copies, load.touched, bank.experts, bank.hidden, bank.inner, bank.gated,
        matrix.stored, matrix.dtype, matrix.blockwise,
    )  # fmt: skip
    return Work(2.0 * load.copies * matrix.elements, read + load.copies * copy_bytes, read, matrix.dtype, (kernel,))
