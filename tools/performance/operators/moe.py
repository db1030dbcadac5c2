"""The routed experts of one device: how many are touched, how many token copies arrive, what the slowest one computes.

Routing is taken as uniform and independent, which touches the most experts; real routing is skewed. The slowest device
sets the pace: its load is the expected maximum of that uniform routing, no measured skew is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...catalog.dtypes import DType
from .work import Work


def active_experts(experts: int, top_k: int, tokens: float) -> float:
    """Distinct experts that `tokens` touch: E (1 - (1 - k/E)^tokens)."""
    return experts * (1.0 - (1.0 - min(1.0, top_k / experts)) ** tokens)


@dataclass(frozen=True, slots=True)
class ExpertLoad:
    """What arrives at the slowest expert group: token copies, experts touched, and how it compares to the mean."""

    copies: float
    touched: float
    imbalance: float


def slowest_load(tokens: float, experts: int, top_k: int, hosted: int, share: float, groups: int) -> ExpertLoad:
    """Load of the slowest of `groups` expert groups that hosts `hosted` experts, `share` of all expert slots.

    The expected maximum of `groups` near-normal loads of mean m is m + sqrt(2 m ln groups), and a token sends at most
    min(k, hosted) copies to one group.
    """
    mean = tokens * top_k * share
    if mean <= 0.0:
        return ExpertLoad(0.0, 0.0, 1.0)
    spread = math.sqrt(2.0 * mean * math.log(groups)) if groups > 1 else 0.0
    copies = max(mean, min(tokens * min(top_k, hosted), mean + spread))
    expected = hosted * active_experts(experts, top_k, tokens) / experts
    touched = min(float(hosted), copies, expected * copies / mean)
    return ExpertLoad(copies, touched, copies / mean)


def expert_work(load: ExpertLoad, weights: float, weight_bytes: float, widths: float, dtype: DType) -> Work:
    """Grouped matrix multiplications of `load`; `weights` elements and `weight_bytes` are one expert's on the device.

    `widths` are the bytes that one copy moves: in, between the matrices, and out.
    """
    read = load.touched * weight_bytes
    return Work(2.0 * load.copies * weights, read + load.copies * widths, read, dtype)
