"""PP005: the stages and blocks fit the layers that the model has.

Reports a phase with no stage or with more stages than layers, a stage that holds nothing, a block that is no whole
number of its periods, and operators that a layer does not have in the model. A run that lumps dense and MoE layers
together is named here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...catalog.architecture import LayerSpec
from ...catalog.attention.grouped import GroupedQueryAttention
from ...catalog.attention.kinds import kind_named, word_of
from ...plan.view import OPERATOR_TYPES, NodeView, PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..layer_specs import specs_by_offset
from ..reading import MAX_LAYERS, clipped, label, tiles_layers

# Names of how heads share K and V, which do not say what a layer attends to.
_HEAD_SHARING = frozenset(
    {"mha", "mqa", "gqa", "multi_head", "multi_query", "grouped_query", "group_query", "self", "softmax"}
)


# Of these one says how many KV heads there are.
_ONE_KV_HEAD = frozenset({"mqa", "multi_query"})


def kind_fits(written: str | None, actual: str) -> bool:
    """Whether `written` names the kind of attention `actual`; `None` fits all."""
    if written is None:
        return True
    has, named = kind_named(actual), kind_named(written)
    if word_of(written) in _HEAD_SHARING:
        return has is not None and issubclass(has, GroupedQueryAttention)
    return named is not None and named is has


def _slots(block: NodeView) -> dict[int, list[NodeView]]:
    """The operators of a block for each layer of its period."""
    slots: dict[int, list[NodeView]] = {}
    for node in block.children_of_type(*OPERATOR_TYPES):
        slots.setdefault(node.offset, []).append(node)
    return slots


class _Fault(Struct, frozen=True):
    """What a slot has for a layer (`written`) and what the model has (`actual`); `node` is the faulty one."""

    message_id: str
    text: str
    written: str | None
    actual: str | None
    node: NodeView | None = None

    def finding(self, layer: int, block: NodeView) -> Finding:
        """The finding at `layer` in `block`; if a node is lacking, a misplaced one may be the fault."""
        return Finding(
            self.message_id,
            f"layer {layer} in {label(block)} {self.text}",
            where=self.node or block,
            nodes=(block,),
            value=self.written,
            expected=self.actual,
            lacks=(self.actual,) if self.node is None and self.actual is not None else (),
        )


def _fault(slot: Sequence[NodeView], layer: LayerSpec, *, like: bool) -> _Fault | None:
    """The first difference of `slot` from `layer`, if any; `like`: the slot covers layers of one kind."""
    attention, ffn, moe = ([node for node in slot if node.type == kind] for kind in OPERATOR_TYPES)
    for name, nodes in (("attention", attention), ("FFN", ffn), ("MoE", moe)):
        if len(nodes) > 1:
            return _Fault(
                "two-operators", f"has two {name} operators", f"{len(nodes)} operators", "1 operator", nodes[1]
            )
    return _attention_fault(attention, layer) or _ffn_fault(ffn, moe, layer, like=like)


def _attention_fault(written: Sequence[NodeView], layer: LayerSpec) -> _Fault | None:
    if layer.attention is None:
        if not written:
            return None
        return _Fault(
            "strange-attention",
            "has an attention operator, the model has none there",
            "AttentionNode",
            None,
            written[0],
        )
    actual = layer.attention.kind
    if not written:
        return _Fault(
            "no-attention", f"has no attention operator, the model has {actual} attention there", None, "AttentionNode"
        )
    kind, kv_heads, heads = written[0].kind, layer.attention.kv_heads, ""
    if kind_fits(kind, actual):
        if kv_heads == 1 or kind is None or word_of(kind) not in _ONE_KV_HEAD:
            return None
        heads = f" with {kv_heads} KV heads"
    return _Fault(
        "other-attention-kind",
        f"has attention of kind {kind!r:.80}, the model has {actual!r}{heads} there",
        kind,
        actual,
        written[0],
    )


def _ffn_fault(ffn: Sequence[NodeView], moe: Sequence[NodeView], layer: LayerSpec, *, like: bool) -> _Fault | None:
    if layer.ffn is not None and not ffn and not moe:
        return _Fault("no-ffn", "has no FFN operator, the model has a dense FFN there", None, "FFNNode")
    if layer.ffn is not None and moe and not ffn and not like:
        return _Fault(
            "moe-for-dense", "has a MoE operator, the model has a dense FFN there", "MoENode", "FFNNode", moe[0]
        )
    if layer.ffn is None and ffn and (layer.moe is None or moe):
        return _Fault("strange-ffn", "has a dense FFN, the model has none there", "FFNNode", None, ffn[0])
    if layer.moe is not None and ffn and not moe and not like:
        return _Fault(
            "dense-for-moe", "has a dense FFN, the model has a MoE operator there", "FFNNode", "MoENode", ffn[0]
        )
    return None


def _block_faults(view: PlanView, block: NodeView, layers: range) -> Iterator[Finding]:
    slots = _slots(block)
    for offset, slot in slots.items():
        if offset >= block.period:
            node = min(slot, key=lambda operator: OPERATOR_TYPES.index(operator.type))
            yield Finding(
                "beyond-period", f"{label(node)} stands at offset {offset} of a period of {block.period}",
                where=node, nodes=(block,), value=offset, expected=f"0 to {block.period - 1}",
            )  # fmt: skip
    if any(offset >= block.period for offset in slots):
        # The layer that the operator is meant for lacks it too: one fault.
        return
    for offset, covered in specs_by_offset(view, block, layers).items():
        slot = slots.get(offset, ())
        like = len({spec.moe is not None for _, spec in covered}) == 1
        for layer, spec in covered:
            fault = _fault(slot, spec, like=like)
            if fault is not None:
                yield fault.finding(layer, block)
                break


def _structure(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    # Each layer is compared once: a block over layers that another block holds already is PP004's.
    seen = bytearray(MAX_LAYERS if view.num_layers is None else view.num_layers)
    for stage in phase.stages:
        # If blocks do not tile the stage, one of them states wrong layers (PP004).
        for block in stage.distinct_blocks if tiles_layers(stage) else ():
            if block.layers is None:
                continue
            count = block.layers[1] - block.layers[0] + 1
            if count > 0 and count % block.period:
                yield Finding(
                    "broken-period",
                    f"block {label(block)} holds {count} layers, no whole number of its periods of {block.period}",
                    where=block, value=count, expected=f"a multiple of {block.period}",
                )  # fmt: skip
                continue
            layers = clipped(block.layers, len(seen))
            if not layers or seen[layers[0]] or seen[layers[-1]]:
                continue
            seen[layers.start : layers.stop] = b"\x01" * len(layers)
            yield from _block_faults(view, block, layers)


def _stages(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    total = view.num_layers
    if total is not None and len(phase.stages) > total:
        yield Finding(
            "more-stages-than-layers",
            f"{label(phase.node)} has {len(phase.stages)} stages, the model has {total} layers",
            where=phase.node, value=len(phase.stages), expected=total,
        )  # fmt: skip
        return
    for stage in phase.stages:
        if not stage.blocks or (stage.layers is not None and stage.layers[1] < stage.layers[0]):
            yield Finding(
                "empty-stage", f"stage {label(stage.node)} holds no layer", where=stage.node, value=stage.layers,
                lacks=() if stage.blocks else ("LayerBlockNode",),
            )  # fmt: skip


def decide(view: PlanView, phase: PhaseView) -> Iterator[Finding]:
    """Yield the stages and blocks of a phase that do not fit the model's layers."""
    # A second decode branch of a replica is one fault, with everything that it lacks.
    if phase.phase == "decode" and phase.replica and view.served[phase.replica.position]["decode"][0] is not phase:
        return
    if phase.stages:
        yield from _stages(view, phase)
        yield from _structure(view, phase)
    else:
        yield Finding(
            "no-stage", f"{label(phase.node)} has no stage", where=phase.node, value=0, expected="at least 1",
            lacks=("PipelineStageNode",),
        )  # fmt: skip


RULE = Rule(
    id="PP005",
    name="ignored layer structure",
    requirement=(
        "1 ≤ pp ≤ num_hidden_layers and no stage is empty; every block holds a whole number of its periods, and what "
        "its children say of each layer is what the model has there."
    ),
    rationale=(
        "Memory, KV cache and time of a layer follow from its operators: a plan that says other ones is a plan of "
        "another model."
    ),
    source="003 §7",
    fix="re-plan",
    remedy="cut the blocks where the kind of layer changes, and describe each layer as the model has it",
    visits="phase",
    decide=decide,
    bad=Example("dense-pp2-tp2", (Edit("set", "r0.decode.s1.b0.attn", "kind", "sliding"),)),
)
