"""The operations of one MoE operator: norm, router, routing, dispatch, experts, combine, and the shared expert beside.

The shared expert has no edge to the routed fan-out but runs on the same devices: its matmuls stand before the experts
in the compute stream, and its collective before the combine on the links, so what overlaps is dispatch with the
shared expert, nothing more.
"""

from __future__ import annotations

import math

from ...catalog.architecture import MoESpec
from ...catalog.dtypes import element_bytes
from ..collectives import ExpertRoutes
from ..operation import Operation
from ..operators.linear import linear
from ..operators.moe import ExpertLoad, expert_work, slowest_load
from ..operators.norm import norm
from ..operators.router import aggregate, routing
from .ffn_program import write_matrices
from .tensors import NO_WEIGHTS, weights_by_role
from .writer import ProgramContext, ProgramWriter, shape_of


def expert_load(context: ProgramContext, spec: MoESpec) -> ExpertLoad:
    """Load of the slowest expert group of the stage."""
    shape = context.shape
    return slowest_load(
        float(context.load.all_tokens), spec.experts, spec.top_k, shape.hosted_experts, shape.expert_share, shape.ep
    )


class MoEProgram:
    """Writes one MoE operator into a `ProgramWriter`."""

    def __init__(self, writer: ProgramWriter, spec: MoESpec) -> None:
        self.writer = writer
        self.context = writer.context
        self.spec = spec
        shape, load = self.context.shape, self.context.load
        self.experts = weights_by_role(self.context.setting, spec.expert_tensors, shape.tp_expert)
        self.gates = weights_by_role(self.context.setting, spec.router_tensors, 1)
        down = self.experts.get("down", NO_WEIGHTS)
        # Experts may work in a narrower latent space than H (Nemotron 3): that is what travels.
        self.copy_width = round(down.elements * shape.tp_expert / spec.width)
        self.exchanges = shape.ep > 1
        # Tokens that a device dispatches: those of its group are on several devices, each sends its share.
        self.own_tokens = float(load.all_tokens)
        if self.exchanges:
            self.own_tokens = load.tokens * shape.attention_groups / shape.width
        self.hidden = shape_of(load.sequences, load.new_tokens, "hidden", self.context.hidden)

    def write(self) -> None:
        """All operations of the operator; its result is on every device of the stage."""
        context, load = self.context, self.context.load
        vectors = self.gates.get(None, NO_WEIGHTS)
        self.writer.compute(
            Operation("moe.norm", "Norm", "moe", "stage", self.hidden, self.hidden),
            norm(load.tokens, context.hidden, vectors.weight_bytes, context.element_bytes),
        )
        self._route()
        if self.exchanges:
            self._exchange("dispatch")
        shared = self._shared(before=self.writer.operations[-1].name)
        self._experts()
        if context.shape.tp_expert > 1:
            self._reduce_slices()
        if self.exchanges:
            self._exchange("combine")
            self._replicate()
        self._finish(shared)

    def _route(self) -> None:
        context, spec, load = self.context, self.spec, self.context.load
        gate = self.gates.get("router", NO_WEIGHTS)
        scores = shape_of(load.sequences, load.new_tokens, "experts", spec.experts)
        work = linear(
            load.tokens,
            gate.elements,
            gate.weight_bytes,
            context.hidden + spec.experts,
            context.element_bytes,
            gate.dtype,
        )
        self.writer.compute(Operation("moe.router", "Linear", "moe", "stage", self.hidden, scores, role="router"), work)
        chosen = self._copies(self.own_tokens * spec.top_k)
        work = routing(self.own_tokens, spec.experts, spec.top_k, self.copy_width, context.element_bytes)
        self.writer.compute(Operation("moe.routing", "Routing", "moe", "stage", scores, chosen), work)

    def _copies(self, copies: float) -> tuple[tuple[str, int], ...]:
        return ("copies", max(1, math.ceil(copies))), ("hidden", self.copy_width)

    def _exchange(self, role: str) -> None:
        """Dispatch (in the activations' format, with fp8 scales per 128) or combine (in 16 bits)."""
        context, spec, shape = self.context, self.spec, self.context.shape
        limited = spec.topk_groups if spec.topk_groups < spec.groups else 0
        routes = ExpertRoutes(shape.stage_group, spec.top_k, limited)
        size = element_bytes(context.setting.precision.activations)
        bytes_per_element = context.element_bytes if role == "combine" else size + (4 / 128 if size <= 1 else 0.0)
        transfer = context.links.expert_exchange(self.own_tokens, self.copy_width * bytes_per_element, routes)
        there = self._copies(expert_load(context, spec).copies)
        back = shape_of(context.load.sequences, math.ceil(self._own_seq()), "hidden", context.hidden)
        here = self.writer.operations[-1].output_shape
        operation = Operation(
            f"moe.{role}", "AllToAll", "moe", "stage_all", here, there if role == "dispatch" else back,
            inputs=(self.writer.operations[-1].name,),
        )  # fmt: skip
        self.writer.transfer(operation, transfer)

    def _own_seq(self) -> float:
        """New tokens of each sequence that one device owns after the combine."""
        return self.own_tokens / self.context.load.sequences

    def _shared(self, before: str) -> tuple[str, ...]:
        """The shared expert, read from the norm; returns the names written and leaves the routed stream as last."""
        if self.spec.shared is None:
            return ()
        start = len(self.writer.operations)
        self.writer.last = "moe.norm"
        write_matrices(self.writer, self.spec.shared, "shared", "stage")
        self.writer.last = before
        return tuple(operation.name for operation in self.writer.operations[start:])

    def _experts(self) -> None:
        context, load = self.context, expert_load(self.context, self.spec)
        up, down = self.experts.get("gate_up", NO_WEIGHTS), self.experts.get("down", NO_WEIGHTS)
        inner = self.spec.width / context.shape.tp_expert * (3 if self.spec.gated else 2)
        moved = (2 * self.copy_width + inner) * context.element_bytes
        work = expert_work(load, up.elements + down.elements, up.weight_bytes + down.weight_bytes, moved, up.dtype)
        copies = self._copies(load.copies) if self.exchanges else self._copies(self.own_tokens * self.spec.top_k)
        source = self.writer.last or "moe.routing"
        self.writer.compute(Operation("moe.expert", "Expert", "moe", "stage", copies, copies, inputs=(source,)), work)

    def _reduce_slices(self) -> None:
        context = self.context
        here = self.writer.operations[-1].output_shape
        size = expert_load(context, self.spec).copies * self.copy_width * context.element_bytes
        self.writer.transfer(
            Operation("moe.slices", "AllReduce", "moe", "expert_tp", here, here),
            context.links.all_reduce(size, context.shape.expert_tp_group),
        )

    def _replicate(self) -> None:
        """Brings each token's result back to every device that holds the token."""
        context, group = self.context, self.context.shape.token_group
        if group.is_trivial:
            return
        here = self.writer.operations[-1].output_shape
        self.writer.transfer(
            Operation("moe.gather", "AllGather", "moe", "tokens", here, self.hidden),
            context.links.all_gather(context.token_bytes, group),
        )

    def _finish(self, shared: tuple[str, ...]) -> None:
        """The weighted sum of the experts' results, and the shared expert's beside it."""
        context, load = self.context, self.context.load
        last = self.writer.operations[-1]
        if not self.exchanges:
            work = aggregate(load.tokens, self.spec.top_k, context.hidden, context.element_bytes)
            name = self.writer.compute(
                Operation("moe.weigh", "Aggregate", "moe", "stage", last.output_shape, self.hidden), work
            )
        else:
            name = last.name
        if shared:
            work = aggregate(load.tokens, 2, context.hidden, context.element_bytes)
            self.writer.compute(
                Operation("moe.sum", "Aggregate", "moe", "stage", self.hidden, self.hidden, inputs=(name, shared[-1])),
                work,
            )
