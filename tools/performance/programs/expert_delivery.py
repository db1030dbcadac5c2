"""How tokens reach their experts and come back, by the faster of two ways, and the experts' work on the slowest device.

Either copies of tokens are exchanged (dispatch and combine), or every device gets all tokens, computes the part of its
experts, and one sum adds up the parts. If every device already has every token (attention without data parallelism),
the second way needs no dispatch.

The number of experts touched assumes uniform and independent routing, which touches the most. The slowest device sets
the pace: its load is what the workload states, else the larger of the expected maximum of uniform routing, which
dominates small batches, and the measured skew (`calibration/forms/exchange.py`), which dominates large ones.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from ...calibration.forms.elementary import Number, Truth, exceeds, is_plain, larger, pick, smaller
from ...calibration.forms.exchange import skewed_load
from ...calibration.shapes import GroupedGemm
from ...catalog.architecture import MoESpec
from ...catalog.dtypes import element_bytes
from ..collectives import NO_TRANSFER, ExpertRoutes, Transfer, pick_transfer
from .work import NO_MATRIX, Matrix, Work
from .writer import ProgramContext, weights_by_role


class Delivery(Struct, frozen=True):
    """The collectives of one way, and the experts' work on the `tokens` that the slowest device sees.

    `is_joined`: the last collective sums over all devices of the stage, so partial sums need no separate one.
    """

    dispatch: Transfer
    combine: Transfer
    replicate: Transfer
    slices: Transfer
    experts: Work
    tokens: Number
    is_joined: Truth

    @property
    def transfer_seconds(self) -> Number:
        """Seconds of all collectives, one after the other."""
        return self.dispatch.seconds + self.slices.seconds + self.combine.seconds + self.replicate.seconds


def expert_load(context: ProgramContext, spec: MoESpec) -> ExpertLoad:
    """Load of the slowest expert group of the stage."""
    shape = context.shape
    routing = Routing(spec.experts, spec.top_k, context.setting.workload.expert_imbalance)
    return slowest_load(1.0 * context.load.all_tokens, routing, shape.hosted_experts, shape.expert_share, shape.ep)


def expert_bank(context: ProgramContext, spec: MoESpec) -> ExpertBank:
    """The routed experts on one device of the stage.

    They may work in a latent space narrower than H (Nemotron 3), whose width is then sent.
    """
    tp_expert = context.shape.tp_expert
    weights = weights_by_role(context.setting, spec.expert_tensors, tp_expert)
    up, down = weights.get("gate_up", NO_MATRIX), weights.get("down", NO_MATRIX)
    hidden = round(down.elements * tp_expert / spec.width)
    return ExpertBank(up + down, spec.experts, hidden, spec.width / tp_expert, spec.gated)


def bank_work(context: ProgramContext, spec: MoESpec, bank: ExpertBank, tokens: Number | None = None) -> Work:
    """The experts' work on the slowest device, which sees `tokens` (default: those of the whole stage)."""
    load = expert_load(context, spec)
    if tokens is not None:
        load = replace(load, tokens=tokens)
    moved = (2 * bank.hidden + bank.inner * (3 if bank.gated else 2)) * context.element_bytes
    return expert_work(load, bank, moved)


def expert_delivery(context: ProgramContext, spec: MoESpec, bank: ExpertBank, device_tokens: Number) -> Delivery:
    """The way with less time for collectives and experts in this pass (chosen for each load).

    A device dispatches `device_tokens`.
    """
    exchange, everywhere = _exchange(context, spec, bank, device_tokens), _everywhere(context, spec, bank)
    seconds = [way.transfer_seconds + context.clock.time(way.experts).seconds for way in (exchange, everywhere)]
    if is_plain(seconds[0]) and is_plain(seconds[1]):
        return exchange if seconds[0] <= seconds[1] else everywhere
    exchanged = seconds[0] <= seconds[1]
    tokens = pick(exchanged, exchange.tokens, everywhere.tokens)
    return Delivery(
        dispatch=pick_transfer(exchanged, exchange.dispatch, everywhere.dispatch),
        combine=pick_transfer(exchanged, exchange.combine, everywhere.combine),
        replicate=pick_transfer(exchanged, exchange.replicate, everywhere.replicate),
        slices=pick_transfer(exchanged, exchange.slices, everywhere.slices),
        experts=bank_work(context, spec, bank, tokens),
        tokens=tokens,
        # Only the other way ends in such a sum.
        is_joined=seconds[0] > seconds[1],
    )


def _exchange(context: ProgramContext, spec: MoESpec, bank: ExpertBank, device_tokens: Number) -> Delivery:
    shape, links = context.shape, context.links
    limited = spec.topk_groups if spec.topk_groups < spec.groups else 0
    routes = ExpertRoutes(shape.stage_group, spec.top_k, limited)
    # Dispatch travels in the activations' format with fp8 scales per 128, combine in 16 bits.
    size = element_bytes(context.setting.precision.activations)
    out_bytes = bank.hidden * (size + (4 / 128 if size <= 1 else 0.0))
    back_bytes = bank.hidden * context.element_bytes
    load = expert_load(context, spec)
    slices, tokens = load.copies * back_bytes, smaller(load.tokens, load.copies)
    return Delivery(
        dispatch=links.expert_exchange("dispatch", device_tokens, out_bytes, routes),
        combine=links.expert_exchange("combine", device_tokens, back_bytes, routes),
        replicate=links.all_gather(context.token_bytes, shape.token_group),
        slices=links.all_reduce(slices, shape.expert_tp_group) if shape.tp_expert > 1 else NO_TRANSFER,
        experts=bank_work(context, spec, bank, tokens),
        tokens=tokens,
        is_joined=False,
    )


def _everywhere(context: ProgramContext, spec: MoESpec, bank: ExpertBank) -> Delivery:
    shape, links = context.shape, context.links
    work, tokens = bank_work(context, spec, bank), expert_load(context, spec).tokens
    if shape.attention_groups == 1:
        total = links.all_reduce(context.token_bytes, shape.stage_group)
        return Delivery(NO_TRANSFER, total, NO_TRANSFER, NO_TRANSFER, work, tokens, is_joined=True)
    whole = links.all_gather(context.token_bytes * shape.attention_groups, shape.stage_group)
    back = links.all_gather(context.token_bytes, shape.token_group)
    return Delivery(whole, whole, back, NO_TRANSFER, work, tokens, is_joined=True)


def active_experts(experts: int, top_k: int, tokens: Number) -> Number:
    """Distinct experts that `tokens` touch: E (1 - (1 - k/E)^tokens)."""
    return experts * (1.0 - (1.0 - min(1.0, top_k / experts)) ** tokens)


class ExpertLoad(Struct, frozen=True):
    """The load of the slowest expert group: token copies, experts touched, and copies over the mean (`imbalance`).

    `tokens` are those of the whole stage.
    """

    tokens: Number
    copies: Number
    touched: Number
    imbalance: Number


class Routing(Struct, frozen=True):
    """Each token goes to `top_k` of `experts`; `imbalance`: load of the busiest group over the mean, if stated."""

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


class ExpertBank(Struct, frozen=True):
    """The routed experts of a layer on one device: `matrix` has all weights of one expert, `inner` is its width."""

    matrix: Matrix
    experts: int
    hidden: int
    inner: float
    gated: bool


def expert_work(load: ExpertLoad, bank: ExpertBank, copy_bytes: float) -> Work:
    """Grouped matrix multiplications of `load`; a token copy moves `copy_bytes`: in, between matrices, and out."""
    matrix = bank.matrix
    read = load.touched * matrix.weight_bytes
    kernel = GroupedGemm(
        load.tokens, load.copies, load.touched, bank.experts, bank.hidden, bank.inner, bank.gated,
        matrix.stored, matrix.dtype, matrix.blockwise,
    )  # fmt: skip
    return Work(2.0 * load.copies * matrix.elements, read + load.copies * copy_bytes, read, matrix.dtype, (kernel,))
