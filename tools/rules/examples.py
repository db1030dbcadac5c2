"""The small plans that the rules' examples start from, and how an example is made out of one.

A base plan is written by the builder from a tiny model; an `Example` names a base and the edits that make it good or
bad. Nothing here judges a plan. Edits name nodes by id and are a fault of the example where no such node exists.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..errors import InputError, UnknownNameError
from ..plan.builder import BuildRequest, build_plan
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.placement import gpu_count
from .base import Edit, Example

DENSE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 1024,
    "vocab_size": 1024,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
# Shapes that three devices divide, the vocabulary padded to 64 included.
_DENSE_BY_3: dict[str, Any] = {
    **DENSE,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 1152,
}
MOE: dict[str, Any] = {
    **DENSE,
    "model_type": "qwen3_moe",
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_MOE_SHARED: dict[str, Any] = {**MOE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 512}
MLA: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "q_lora_rank": 128,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "vocab_size": 1024,
    "max_position_embeddings": 65536,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
# So few KV heads that ranks repeat them, which lets vLLM cut a cache.
_DENSE_OF_2_KV_HEADS: dict[str, Any] = {**DENSE, "num_key_value_heads": 2}
# Every other layer attends to a window alone.
_SLIDING: dict[str, Any] = {**DENSE, "model_type": "gemma2", "sliding_window": 4096, "query_pre_attn_scalar": 64}
# Three layers of linear attention to one of full attention, experts in all of them.
_HYBRID: dict[str, Any] = {
    **_MOE_SHARED,
    "model_type": "qwen3_next",
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
}
# A prompt that sequence parallelism is worth its communication for (004 §4.5).
_LONG_PROMPT_TOKENS = 16384


@dataclass(frozen=True, slots=True)
class _Base:
    """A base plan: the model and the degrees of both phases; `decode` says only what differs from `prefill`."""

    config: Mapping[str, Any]
    prefill: Mapping[str, Any] = field(default_factory=dict[str, Any])
    decode: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dp: int = 1
    relaxations: tuple[str, ...] = ()
    redundant_experts: int = 0
    nodes: int = 1
    gpus_per_node: int = 8


_TP2 = {"tp": 2, "tp_ffn": 2}
_BASES: dict[str, _Base] = {
    "dense-1": _Base(DENSE),
    "dense-tp2": _Base(DENSE, _TP2),
    "dense-tp4": _Base(DENSE, {"tp": 4, "tp_ffn": 4}),
    "dense-pp2-tp2": _Base(DENSE, {**_TP2, "pp": 2}),
    "dense-tp3": _Base(_DENSE_BY_3, {"tp": 3, "tp_ffn": 3}),
    "dense-pp3": _Base(DENSE, {"pp": 3}),
    "dense-pp3-two-nodes": _Base({**DENSE, "num_hidden_layers": 9}, {"pp": 3}, nodes=2, gpus_per_node=2),
    "dense-pp4": _Base(DENSE, {"pp": 4}),
    "dense-pp2-decode-tp2": _Base(DENSE, {"pp": 2}, {**_TP2, "pp": 1}),
    "dense-dp2-tp2": _Base(DENSE, _TP2, dp=2),
    "dense-dp2-pp2": _Base(DENSE, {"pp": 2}, dp=2),
    "dense-sp2": _Base(DENSE, {"sp": 2, "tp_ffn": 2}, {"sp": 1, "tp": 2}),
    "dense-sp2-tp2": _Base(DENSE, {"sp": 2, "tp": 2, "tp_ffn": 4}, {"sp": 1, "tp": 4}),
    "dense-ulysses2-tp2": _Base(
        DENSE, {"sp": 2, "tp": 2, "tp_ffn": 4, "sp_kind": "ulysses"}, {"sp": 1, "tp": 4, "sp_kind": None}
    ),
    "moe-1": _Base(MOE),
    "moe-ep2": _Base(MOE, {"tp": 2, "ep": 2}),
    "moe-dp2-ep2": _Base(MOE, {"tp": 2, "ep": 2}, dp=2),
    "moe-ep4": _Base(MOE, {"tp": 4, "ep": 4}),
    "moe-shared-tp2-ep4": _Base(_MOE_SHARED, {**_TP2, "ep": 4}),
    "moe-shared-tp4-ep4": _Base(_MOE_SHARED, {"tp": 4, "tp_ffn": 4, "ep": 4}),
    "mla-tp2-ep2-pp2": _Base(MLA, {**_TP2, "ep": 2, "pp": 2}),
    "sliding-tp2": _Base(_SLIDING, _TP2),
    "hybrid-tp2-ep2-pp2": _Base(_HYBRID, {**_TP2, "ep": 2, "pp": 2}),
    "dense-pp3-uneven": _Base(DENSE, {"pp": 3, "stage_layers": (2, 3, 3)}),
    "disaggregated-moe": _Base(MOE, {"tp": 2, "ep": 2, "replicas": 2}, {"tp": 4, "ep": 4, "replicas": 1}, dp=3),
    "disaggregated-tp2": _Base(DENSE, {**_TP2, "replicas": 1}, dp=2),
    "disaggregated-pp2": _Base(DENSE, {"pp": 2, "replicas": 1}, dp=2),
    "relaxed-attention-dp2-ep4": _Base(
        _MOE_SHARED, {"attention_dp": 2, "tp": 2, "tp_ffn": 2, "ep": 4}, relaxations=("attention_dp",)
    ),
    "relaxed-attention-dp4": _Base(
        DENSE, {"attention_dp": 4, "tp": 1, "tp_ffn": 4}, relaxations=("attention_dp",)
    ),
    "relaxed-attention-dp2-pp2-two-nodes": _Base(
        MOE, {"attention_dp": 2, "ep": 2, "pp": 2}, relaxations=("attention_dp",), nodes=2, gpus_per_node=2
    ),
    "relaxed-tp-in-expert": _Base(
        MOE, {"tp": 4, "ep": 2, "tp_expert": 2}, relaxations=("tp_in_expert",)
    ),
    "relaxed-kv-sp2": _Base(
        DENSE, {"tp": 4, "tp_ffn": 4}, {"tp": 2, "kv_sp": 2}, relaxations=("kv_sequence_decode",)
    ),
    "relaxed-sp2-kv-sp2": _Base(
        _DENSE_OF_2_KV_HEADS,
        {"sp": 2, "tp": 2, "tp_ffn": 4},
        {"sp": 1, "tp": 2, "kv_sp": 2},
        relaxations=("kv_sequence_decode",),
    ),
    "relaxed-vocab-parallel": _Base(DENSE, _TP2, relaxations=("vocab_parallel",)),
    "relaxed-redundant-experts": _Base(
        MOE, {"tp": 4, "ep": 4}, relaxations=("redundant_experts",), redundant_experts=4
    ),
}  # fmt: skip


def base_names() -> tuple[str, ...]:
    """The names that `base_plan` knows."""
    return tuple(_BASES)


@cache
def _built(name: str) -> dict[str, Any]:
    base = _BASES[name]
    prefill = PhaseStrategy.model_validate(base.prefill)
    decode = PhaseStrategy.model_validate({**base.prefill, **base.decode})
    strategy = Strategy(dp=base.dp, gpu_count=1, prefill=prefill, decode=decode)
    request = BuildRequest(
        model=ModelBlock(name=f"tiny {base.config['model_type']}", config=dict(base.config)),
        hardware=HardwareBlock(accelerator="h100-sxm", nodes=base.nodes, gpus_per_node=base.gpus_per_node),
        workload=WorkloadBlock(input_tokens=_LONG_PROMPT_TOKENS, output_tokens=64, concurrency=4),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        policy=PolicyBlock.model_validate({"relaxations": base.relaxations}),
        redundant_experts=base.redundant_experts,
    )
    return build_plan(request).model_dump(mode="json")


def base_plan(name: str) -> dict[str, Any]:
    """A fresh copy of the base plan of that name, as a JSON object.

    Raises UnknownNameError: there is no such base plan.
    """
    if name not in _BASES:
        raise UnknownNameError("base plan", name, tuple(_BASES))
    return copy.deepcopy(_built(name))


def apply(example: Example) -> dict[str, Any]:
    """The document of `example`: its base plan after its edits, in order.

    Raises InputError: an edit names a node, an edge or a place that the document does not have; UnknownNameError: there
    is no such base plan.
    """
    return edited(base_plan(example.base), example.edits)


def edited(document: dict[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """`document`, changed by `edits` in order.

    Raises InputError: an edit names a node, an edge or a place that the document does not have.
    """
    for edit in edits:
        _EDITORS[edit.action](document, edit)
    return document


def _find_node(document: dict[str, Any], edit: Edit) -> dict[str, Any]:
    for node in document["nodes"]:
        if node.get("id") == edit.id:
            return node
    raise InputError(f"edit {edit.action!r}: the plan has no node {edit.id!r}")


def _add_node(document: dict[str, Any], edit: Edit) -> None:
    document["nodes"].append(copy.deepcopy(edit.value))


def _remove_node(document: dict[str, Any], edit: Edit) -> None:
    gone = {_find_node(document, edit)["id"]}
    while True:
        below = {node["id"] for node in document["nodes"] if node["parent"] in gone} - gone
        if not below:
            break
        gone |= below
    document["nodes"] = [node for node in document["nodes"] if node["id"] not in gone]
    document["edges"] = [
        edge for edge in document["edges"] if edge["source"] not in gone and edge["target"] not in gone
    ]


def _set(document: dict[str, Any], edit: Edit) -> None:
    _find_node(document, edit)[edit.field] = copy.deepcopy(edit.value)


def _add_edge(document: dict[str, Any], edit: Edit) -> None:
    document["edges"].append(copy.deepcopy(edit.value))


def _remove_edge(document: dict[str, Any], edit: Edit) -> None:
    """Remove the edges that have all the fields of `edit.value`."""
    wanted = edit.value.items()
    kept = [edge for edge in document["edges"] if not wanted <= edge.items()]
    if len(kept) == len(document["edges"]):
        raise InputError(f"edit 'remove_edge': the plan has no edge {edit.value!r}")
    document["edges"] = kept


def _set_top(document: dict[str, Any], edit: Edit) -> None:
    place, key = _place(document, edit)
    place[key] = copy.deepcopy(edit.value)


def _scale(document: dict[str, Any], edit: Edit) -> None:
    place, key = _place(document, edit)
    place[key] *= edit.value


def _evaluate(document: dict[str, Any], _: Edit) -> None:
    # Few examples need the performance model.
    from ..performance.estimate import estimate

    document["performance"] = estimate(document).model_dump(mode="json", exclude_none=True)


def _place(document: dict[str, Any], edit: Edit) -> tuple[Any, str | int]:
    """What holds the value at the JSON Pointer of `edit`, and under which key; a list must have the place already."""
    *parents, last = edit.field.removeprefix("/").split("/")
    place: Any = document
    try:
        for key in parents:
            place = place[_key(place, key)]
        key = _key(place, last)
        if isinstance(key, int) or edit.action == "scale":
            place[key]
    except (KeyError, IndexError, ValueError):
        raise InputError(f"edit {edit.action!r}: the plan has nothing at {edit.field!r}") from None
    return place, key


def _key(place: object, text: str) -> str | int:
    return int(text) if isinstance(place, list) else text


_EDITORS = {
    "add_node": _add_node,
    "remove_node": _remove_node,
    "set": _set,
    "add_edge": _add_edge,
    "remove_edge": _remove_edge,
    "set_top": _set_top,
    "evaluate": _evaluate,
    "scale": _scale,
}
