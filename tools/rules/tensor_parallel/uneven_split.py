"""TP005: the degrees divide what they split: query and KV heads, the heads of linear attention, FFN widths.

The degree is that of the graph's shards, the sizes are the model's; nothing is said where the model cannot be read.
MLA has one latent for all heads, so its cache sets no bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...catalog.architecture import AttentionSpec, LayerSpec
from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..layer_specs import operator_specs
from ..sharding import SEQUENCE_ROLES, misranked_dimension, sequence_degree, tensor_degree

_MAX_NAMED = 64


@dataclass(frozen=True, slots=True)
class _Fault:
    """A degree that does not divide a size: what is split, in how many parts, and of how many there are."""

    what: str
    size: int
    degree: str
    parts: int


def _head_faults(spec: AttentionSpec, tp: int) -> Iterator[_Fault]:
    if spec.kind == "linear" and spec.linear_key_heads and spec.linear_value_heads:
        heads = {"key heads": spec.linear_key_heads, "value heads": spec.linear_value_heads}
        for what, size in heads.items():
            if size % tp:
                yield _Fault(f"{what} of linear attention", size, "tp", tp)
        return
    if spec.query_heads % tp:
        yield _Fault(f"query heads of {spec.kind} attention", spec.query_heads, "tp", tp)
    elif spec.kind != "mla" and spec.kv_heads % tp and tp % spec.kv_heads:
        yield _Fault(f"KV heads of {spec.kind} attention", spec.kv_heads, "tp", tp)


def _attention_faults(operator: NodeView, spec: AttentionSpec) -> Iterator[_Fault]:
    tp, sp = tensor_degree(operator), sequence_degree(operator)
    faults = list(_head_faults(spec, tp))
    yield from faults
    exchanges = any(node.role in SEQUENCE_ROLES for node in operator.children_of_type("AllToAllNode"))
    if exchanges and sp > 1 and not faults and spec.kind != "linear" and spec.query_heads % (sp * tp):
        yield _Fault(f"query heads of {spec.kind} attention", spec.query_heads, "sp × tp", sp * tp)


def _faults(operator: NodeView, layer: LayerSpec, *, relaxed: bool) -> Iterator[tuple[NodeView, _Fault]]:
    if operator.type == "AttentionNode" and layer.attention is not None:
        for fault in _attention_faults(operator, layer.attention):
            yield operator, fault
    if operator.type == "FFNNode" and layer.ffn is not None:
        yield from _width_fault(operator, "the FFN", layer.ffn.width, "tp_ffn")
    if operator.type == "MoENode" and layer.moe is not None:
        for shared in operator.children_of_type("FFNNode"):
            if layer.moe.shared is not None:
                yield from _width_fault(shared, "the shared expert", layer.moe.shared.width, "tp_ffn")
        # Without `tp_in_expert` a split expert is TP006's.
        for expert in operator.children_of_type("ExpertNode") if relaxed else ():
            yield from _width_fault(expert, "an expert", layer.moe.width, "tp_expert")


def _width_fault(operator: NodeView, what: str, width: int, degree: str) -> Iterator[tuple[NodeView, _Fault]]:
    parts = tensor_degree(operator)
    if width % parts:
        yield operator, _Fault(f"columns of {what}", width, degree, parts)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each degree of a phase that does not divide what it splits, with the operators that it splits."""
    found: dict[tuple[str, _Fault], dict[int, NodeView]] = {}
    for phase in view.phases:
        for operator, specs in operator_specs(view, phase):
            for _, layer in specs:
                for node, fault in _faults(operator, layer, relaxed="tp_in_expert" in view.relaxations):
                    # Ranks that do not fit together show no degree (TP002, SP002).
                    if misranked_dimension(node) is None:
                        found.setdefault((phase.phase or "", fault), {})[node.position] = node
    for (phase_name, fault), operators in found.items():
        nodes = list(operators.values())
        yield Finding(
            f"{phase_name}: {fault.degree} {fault.parts} does not divide the {fault.size} {fault.what}",
            where=nodes[0],
            nodes=nodes[:_MAX_NAMED],
            value={fault.degree: fault.parts, fault.what: fault.size},
            expected=f"a divisor of {fault.size}" + (" or a multiple of it" if fault.what.startswith("KV") else ""),
            lacks=("ShardNode",),
        )


_BASE = "dense-tp4"

RULE = Rule(
    id="TP005",
    name="uneven split",
    severity="error",
    requirement=(
        "tp divides the query heads of each attention kind; its KV heads are divisible by tp, or tp by them (not MLA); "
        "for linear attention tp divides its key and value heads; tp_ffn divides the width of each FFN that it splits; "
        "with AllToAll SP, sp × tp divides the query heads."
    ),
    rationale=(
        "A head or a column is computed on one device. A degree that does not divide them leaves shards of unequal "
        "shape, which no collective and no kernel takes."
    ),
    source="003 §2.2",
    fix="re-plan",
    remedy="choose a degree that divides the size",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set_top", field="/model/config/intermediate_size", value=1022),)),
)
