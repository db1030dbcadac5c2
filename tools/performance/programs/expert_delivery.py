"""How tokens reach their experts and come back, and what the experts then compute: the faster of the engines' two ways.

Either copies of tokens are exchanged (dispatch and combine), or every device gets all tokens, computes its own experts'
part of them, and one sum adds the parts up. Where every device holds every token already (attention without data
parallelism) the second way needs no dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...catalog.architecture import MoESpec
from ...catalog.dtypes import element_bytes
from ..collectives import NO_TRANSFER, ExpertRoutes, Transfer
from ..operators.linear import NO_MATRIX
from ..operators.moe import ExpertBank, ExpertLoad, expert_work, slowest_load
from ..operators.work import Work
from .tensors import weights_by_role
from .writer import ProgramContext


@dataclass(frozen=True, slots=True)
class Delivery:
    """The collectives of one way, and the experts' work on what they bring.

    `is_joined`: the last collective sums over all devices of the stage, so partial sums need none of their own.
    """

    dispatch: Transfer
    combine: Transfer
    replicate: Transfer
    slices: Transfer
    experts: Work
    is_joined: bool

    @property
    def transfer_seconds(self) -> float:
        """All collectives, one after the other."""
        return self.dispatch.seconds + self.slices.seconds + self.combine.seconds + self.replicate.seconds


def expert_load(context: ProgramContext, spec: MoESpec) -> ExpertLoad:
    """Load of the slowest expert group of the stage."""
    shape = context.shape
    return slowest_load(
        float(context.load.all_tokens), spec.experts, spec.top_k, shape.hosted_experts, shape.expert_share, shape.ep
    )


def expert_bank(context: ProgramContext, spec: MoESpec) -> ExpertBank:
    """The routed experts as one device of the stage holds them.

    They may work in a narrower latent space than H (Nemotron 3): its width is what travels.
    """
    tp_expert = context.shape.tp_expert
    weights = weights_by_role(context.setting, spec.expert_tensors, tp_expert)
    up, down = weights.get("gate_up", NO_MATRIX), weights.get("down", NO_MATRIX)
    hidden = round(down.elements * tp_expert / spec.width)
    return ExpertBank(up + down, spec.experts, hidden, spec.width / tp_expert, spec.gated)


def bank_work(context: ProgramContext, spec: MoESpec, bank: ExpertBank, *, everywhere: bool = True) -> Work:
    """The experts' work on the slowest device; unless tokens are `everywhere` it sees only those sent to it."""
    load = expert_load(context, spec)
    if not everywhere:
        load = replace(load, tokens=min(load.tokens, load.copies))
    moved = (2 * bank.hidden + bank.inner * (3 if bank.gated else 2)) * context.element_bytes
    return expert_work(load, bank, moved)


def expert_delivery(context: ProgramContext, spec: MoESpec, bank: ExpertBank, own_tokens: float) -> Delivery:
    """The faster way for this pass, collectives and experts counted; a device dispatches `own_tokens`."""
    ways = (_exchange(context, spec, bank, own_tokens), _everywhere(context, spec, bank))
    return min(ways, key=lambda way: way.transfer_seconds + context.clock.time(way.experts).seconds)


def _exchange(context: ProgramContext, spec: MoESpec, bank: ExpertBank, own_tokens: float) -> Delivery:
    shape, links = context.shape, context.links
    limited = spec.topk_groups if spec.topk_groups < spec.groups else 0
    routes = ExpertRoutes(shape.stage_group, spec.top_k, limited)
    # Dispatch travels in the activations' format with fp8 scales per 128, combine in 16 bits.
    size = element_bytes(context.setting.precision.activations)
    out_bytes = bank.hidden * (size + (4 / 128 if size <= 1 else 0.0))
    back_bytes = bank.hidden * context.element_bytes
    slices = expert_load(context, spec).copies * back_bytes
    return Delivery(
        dispatch=links.expert_exchange("dispatch", own_tokens, out_bytes, routes),
        combine=links.expert_exchange("combine", own_tokens, back_bytes, routes),
        replicate=links.all_gather(context.token_bytes, shape.token_group),
        slices=links.all_reduce(slices, shape.expert_tp_group) if shape.tp_expert > 1 else NO_TRANSFER,
        experts=bank_work(context, spec, bank, everywhere=False),
        is_joined=False,
    )


def _everywhere(context: ProgramContext, spec: MoESpec, bank: ExpertBank) -> Delivery:
    shape, links = context.shape, context.links
    work = bank_work(context, spec, bank)
    if shape.attention_groups == 1:
        total = links.all_reduce(context.token_bytes, shape.stage_group)
        return Delivery(NO_TRANSFER, total, NO_TRANSFER, NO_TRANSFER, work, is_joined=True)
    whole = links.all_gather(context.token_bytes * shape.attention_groups, shape.stage_group)
    back = links.all_gather(context.token_bytes, shape.token_group)
    return Delivery(whole, whole, back, NO_TRANSFER, work, is_joined=True)
