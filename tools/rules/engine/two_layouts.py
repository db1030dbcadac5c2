"""EN010: a replica that serves both phases is one engine process group, which has one layout.

It needs a plan that names its engine. Decode's ranks along the cache are tensor ranks, or prefill's ranks along the
sequence; replicas of one phase each may differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.degrees import PhaseDegrees, phase_degrees
from ...plan.document import PhaseStrategy
from ...plan.view import NodeView, PhaseView, PlanView
from ..base import Example, Finding, Rule, served_by
from ..legality import Conditions, Fault
from ..reading import label, named_engine

_PLAIN = ("attention_dp", "tp_ffn", "ep", "tp_expert")
_GROUP = ("tp", "sp", "kv_sp")


def _layout(degrees: PhaseDegrees) -> dict[str, object]:
    """The values that must be equal in both phases, by name; those that the graph does not show are left out."""
    layout: dict[str, object] = {}
    if degrees.cut is not None:
        layout["layers of the stages"] = list(degrees.cut)
    group = [degrees.usual(name) for name in _GROUP]
    if all(size is not None for size in group):
        layout["ranks of an attention group"] = (group[0] or 1) * (group[1] or 1) * (group[2] or 1)
    layout.update({name: size for name in _PLAIN if (size := degrees.usual(name)) is not None})
    return layout


def _weight_parts(prefill: tuple[int, int], decode: tuple[int, int]) -> tuple[int, int]:
    """The number of parts of attention's weights for prefill (`sp`, `tp`) and for decode (`kv_sp`, `tp`).

    Ranks along the sequence hold the same part. Ranks along the cache are these if prefill has some, else they are
    tensor ranks, as in vLLM's decode context parallelism.
    """
    (sp, tp), (kv_sp, decode_tp) = prefill, decode
    return tp, decode_tp if sp > 1 else decode_tp * kv_sp


def _loaded_twice(conditions: Conditions, prefill: PhaseStrategy, decode: PhaseStrategy) -> Iterator[Fault]:
    """The fault of a replica whose phases differ only in the ranks of an attention group."""
    parts, decode_parts = _weight_parts((prefill.sp, prefill.tp), (decode.kv_sp or 1, decode.tp))
    if conditions.engine is not None and parts != decode_parts:
        title = conditions.engine.title
        message = f"parts of attention's weights: prefill {parts}, decode {decode_parts}; {title} loads them once"
        yield Fault("two-layouts", message, decode_parts, parts)


def _weights(prefill: PhaseDegrees, decode: PhaseDegrees) -> tuple[int, int] | None:
    """`_weight_parts` of a replica; `None` if its graph does not show all these degrees."""
    sizes = [prefill.usual("sp"), prefill.usual("tp"), decode.usual("kv_sp"), decode.usual("tp")]
    if any(size is None for size in sizes):
        return None
    sp, tp, kv_sp, decode_tp = (size or 1 for size in sizes)
    return _weight_parts((sp, tp), (kv_sp, decode_tp))


def _pairs(view: PlanView) -> Iterator[tuple[NodeView, PhaseView, PhaseView]]:
    """Replicas with exactly one phase of each kind."""
    for phases in view.served.values():
        prefill, decode = phases.get("prefill", []), phases.get("decode", [])
        if len(prefill) == len(decode) == 1 and prefill[0].replica is not None:
            yield prefill[0].replica, prefill[0], decode[0]


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each replica whose phases have different layouts."""
    engine = named_engine(view)
    if engine is None:
        return
    for replica, prefill, decode in _pairs(view):
        degrees = phase_degrees(view, prefill), phase_degrees(view, decode)
        of_prefill, of_decode = map(_layout, degrees)
        parts = _weights(*degrees)
        if parts is not None:
            of_prefill["parts of attention's weights"], of_decode["parts of attention's weights"] = parts
        unlike = [name for name in of_prefill if name in of_decode and of_prefill[name] != of_decode[name]]
        if unlike:
            differences = "; ".join(f"{name}: prefill {of_prefill[name]}, decode {of_decode[name]}" for name in unlike)
            yield Finding(
                "two-layouts",
                f"replica {label(replica)} serves both phases with two layouts ({differences}); {engine.title} loads "
                "its weights once, in one",
                where=decode.node,
                nodes=(replica, prefill.node, decode.node),
                value={name: of_decode[name] for name in unlike},
                expected={name: of_prefill[name] for name in unlike},
            )


_VLLM = served_by("vllm")

RULE = Rule(
    id="EN010",
    name="two layouts in one engine",
    requirement=(
        "In a plan that names its engine, the phases of a replica that serves both have the same stages, the same "
        "ranks in an attention group (sp × kv_sp × tp), attention's weights in the same parts (tp; in decode tp × "
        "kv_sp, but for ranks that prefill takes along the sequence), and the same attention_dp, tp_ffn, ep and "
        "tp_expert."
    ),
    rationale=(
        "An engine places its weights when it starts; it cannot cut them one way for prefill and another for decode: "
        "attention's tensor degree is that of the group over its context ranks, in both phases. "
        "Two layouts are two engines: replicas of one phase each, and twice the weights."
    ),
    source=(
        "vLLM 0.33.0 config/parallel.py; SGLang 0.5.23 runtime_context.py; TensorRT-LLM mapping.py (one world for both "
        "phases)"
    ),
    fix="re-plan",
    remedy="give both phases one layout, or part them into prefill and decode replicas",
    check=check,
    pair_faults=_loaded_twice,
    good=Example("dense-pp2-tp2", (_VLLM,)),
    bad=Example("dense-pp2-decode-tp2", (_VLLM,)),
)
