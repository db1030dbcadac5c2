"""The routed experts of one device: how many are touched, how many token copies arrive, what the slowest one computes.

Routing is taken as uniform and independent, which touches the most experts; real routing is skewed. The slowest device
sets the pace: its load is the expected maximum of that uniform routing, no measured skew is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...calibration.forms.elementary import Number, exceeds, larger, smaller
from ...calibration.shapes import GroupedGemm
from .linear import Matrix
from .work import Work


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


def slowest_load(tokens: Number, experts: int, top_k: int, hosted: int, share: float, groups: int) -> ExpertLoad:
    """Load of the slowest of `groups` expert groups that hosts `hosted` experts, `share` of all expert slots.

    The expected maximum of `groups` near-normal loads of mean m is m + sqrt(2 m ln groups), and a token sends at most
    min(k, hosted) copies to one group.
    """
    mean = tokens * top_k * share
    if not exceeds(mean, 0.0):
        return ExpertLoad(tokens, 0.0, 0.0, 1.0)
    spread = (2.0 * mean * math.log(groups)) ** 0.5 if groups > 1 else 0.0
    copies = larger(mean, smaller(tokens * min(top_k, hosted), mean + spread))
    expected = hosted * active_experts(experts, top_k, tokens) / experts
    touched = smaller(float(hosted), smaller(copies, expected * copies / mean))
    return ExpertLoad(tokens, copies, touched, copies / mean)


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
