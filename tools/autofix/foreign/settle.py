"""Turns the claims of a foreign proposal into blocks: counted hardware, degrees by phase, what engine switches imply.

Only arithmetic on claims and the documented meaning of switches; each step is noted. No degree is completed.
"""

from __future__ import annotations

from typing import Any

from ...catalog.architecture import Architecture
from ...catalog.config import read_architecture
from ...catalog.hardware import find_accelerator
from ...catalog.models import find_model
from ...errors import ShardwrightError
from ...plan.document import PHASES, PhaseStrategy
from ...plan.placement import phase_width
from ...plan.view import as_mapping
from ...rules.legality import RELAXATION_OF
from .claims import Facts
from .graph import Setting
from .notes import Notes

_USUAL_NODE = 8
_DEGREES = ("pp", "sp", "ep", "tp", "tp_ffn", "attention_dp", "tp_expert", "kv_sp", "stage_layers")
# Degrees that say how many devices a stage has.
_WIDE = ("pp", "sp", "ep", "tp", "tp_ffn")


def settle_model(facts: Facts, notes: Notes) -> tuple[dict[str, Any] | None, Architecture | None]:
    """The `model` block, with the catalogue's config if only a name was stated, and its architecture."""
    name, config = facts.get("model"), facts.get("config")
    if config is not None:
        try:
            architecture = read_architecture(config, where="the config")
        except ShardwrightError as error:
            notes.unclear(str(error), facts.where("config"))
        else:
            label = name or facts.get("unknown_model") or config.get("_name_or_path") or architecture.model_type
            return {"name": str(label)[:500], "config": config}, architecture
    if name is None:
        return None, None
    entry = find_model(name)
    notes.read(f"the model is {entry.name}", facts.where("model"))
    return {"name": entry.name, "config": dict(entry.config)}, entry.architecture()


def settle_hardware(facts: Facts, notes: Notes) -> dict[str, Any]:
    """The `hardware` block as far as it was stated; a total of GPUs fills nodes of the accelerator's usual size."""
    nodes, per_node, total = facts.get("nodes"), facts.get("gpus_per_node"), facts.get("total")
    where, usual = facts.where("total"), _usual_node(facts)
    if total is None:
        if nodes is not None and per_node is None and facts.get("accelerator"):
            per_node = usual
            size = f"a node holds {usual} GPUs, as is usual with this card ({nodes} x {usual})"
            notes.assumed(size, facts.where("nodes"))
    elif nodes is None and per_node is None:
        if total <= usual or total % usual == 0:
            nodes, per_node = max(1, total // usual), min(total, usual)
            notes.assumed(f"{total} GPUs are {nodes} x {per_node}", where)
        else:
            notes.unclear(f"{total} GPUs do not fill nodes of {usual}", where)
    elif nodes is None:
        nodes = total // per_node if total % per_node == 0 else None
    elif per_node is None:
        per_node = total // nodes if total % nodes == 0 else None
    elif total > nodes * per_node:
        notes.unclear(f"{total} GPUs are more than {nodes} x {per_node}", where)
    stated = {"accelerator": facts.get("accelerator"), "nodes": nodes, "gpus_per_node": per_node}
    return {name: value for name, value in stated.items() if value is not None}


def _usual_node(facts: Facts) -> int:
    name = facts.get("accelerator")
    return (find_accelerator(name).typical_node_accelerators or _USUAL_NODE) if name else _USUAL_NODE


def settle_strategy(facts: Facts, architecture: Architecture | None, notes: Notes) -> dict[str, Any]:
    """The `strategy` block: what was stated for a phase, else for both."""
    _engine_switches(facts, architecture, notes)
    strategy: dict[str, Any] = {}
    for phase in PHASES:
        # A disputed figure of a phase is not replaced by that of both.
        scopes = {name: phase if facts.has(f"{phase}.{name}") else "any" for name in _DEGREES}
        degrees = {name: facts.get(f"{scope}.{name}") for name, scope in scopes.items()}
        absent = [name for name, value in degrees.items() if value is None or (name in RELAXATION_OF and value == 1)]
        for name in absent:
            del degrees[name]
        says_less = facts.get("attention_only") or facts.get("enable_dp_attention")
        if architecture is not None and "tp" in degrees and "tp_ffn" not in degrees and not says_less:
            degrees["tp_ffn"] = degrees["tp"] if architecture.has_split_ffn else 1
            facts.put("assumed", **{phase: True})
            if degrees["tp_ffn"] > 1:
                notes.assumed("tensor parallelism that names no operator is that of attention and of the FFN", phase)
        if "stage_layers" in degrees and not facts.has(f"{phase}.pp") and not facts.has("any.pp"):
            degrees["pp"] = len(degrees["stage_layers"])
        if degrees:
            strategy[phase] = degrees
    _replicas(facts, strategy, notes)
    if strategy and facts.get("used") is not None:
        strategy["gpu_count"] = facts.get("used")
    if strategy:
        notes.read(f"degrees: {_in_words(strategy)}", "/strategy")
    return strategy


def _in_words(strategy: dict[str, Any]) -> str:
    """The degrees in words: "prefill tp 4, pp 1; decode tp 2; dp 1"."""
    parts: list[str] = []
    for name, value in strategy.items():
        degrees = as_mapping(value)
        parts.append(f"{name} {', '.join(f'{key} {degree}' for key, degree in degrees.items()) or value}")
    return "; ".join(parts)


def _engine_switches(facts: Facts, architecture: Architecture | None, notes: Notes) -> None:
    """Apply engine switches: SGLang's DP attention divides TP, vLLM's expert parallelism spans TP x DP."""
    tp, dp = facts.get("any.tp"), facts.get("any.dp")
    if facts.get("enable_dp_attention") and dp and dp > 1:
        if tp is not None and tp % dp == 0:
            notes.read(f"DP attention: {dp} groups of {tp // dp} inside of TP {tp}", facts.where("any.dp"))
            facts.put("any", attention_dp=dp, tp=tp // dp, dp=1)
        else:
            notes.unclear(f"DP attention of {dp} in TP {tp}", facts.where("any.dp"))
    elif facts.get("enable_ep"):
        for scope in (*PHASES, "any"):
            _expert_parallel(scope, facts, architecture, notes)


def _expert_parallel(scope: str, facts: Facts, architecture: Architecture | None, notes: Notes) -> None:
    """vLLM's `--enable-expert-parallel` in one scope: the experts are spread over all TP x DP devices.

    Attention is data parallel in that group ("Data Parallel Deployment" in the documentation of vLLM).
    """
    where, stated = facts.where("enable_ep"), {name: facts.get(f"{scope}.{name}") for name in ("tp", "dp", "ep")}
    tp, dp = stated["tp"], stated["dp"]
    if scope != "any" and (tp or dp):
        tp, dp = tp or facts.get("any.tp"), dp or facts.get("any.dp")
    if tp is None and dp is not None and not facts.has(f"{scope}.tp") and facts.get("engine") == "vllm":
        notes.assumed("tensor parallelism 1, as vLLM has it where none is stated", where)
        tp = 1
        facts.put(scope, tp=tp)
    if tp is None:
        return
    if architecture is not None and all(layer.moe is None for layer in architecture.layers):
        notes.unclear("expert parallelism is on, but the model has no experts", where)
    elif dp in (None, 1):
        if stated["ep"] is None:
            facts.put(scope, ep=tp)
    elif stated["ep"] not in (None, tp * dp) or architecture is None or facts.get("engine") not in (None, "vllm"):
        notes.unclear("expert parallelism together with data parallelism: attention is replicated, or all is", where)
    else:
        notes.read(f"expert parallelism over TP {tp} x DP {dp}: attention is data parallel in one group", where)
        facts.put(scope, attention_dp=dp, ep=tp * dp, dp=1)
        facts.claim("attention_only", True, where)


def _replicas(facts: Facts, strategy: dict[str, Any], notes: Notes) -> None:
    """Set `dp`, and the replicas of each phase if the phases have their own."""
    by_phase = {phase: facts.get(f"{phase}.replicas") or facts.get(f"{phase}.dp") for phase in PHASES}
    whole = facts.get("any.replicas") or facts.get("any.dp")
    is_apart = (facts.get("separate") and whole is None) or _are_apart(facts, strategy, whole)
    if not is_apart and None not in by_phase.values() and by_phase["prefill"] != by_phase["decode"]:
        is_apart = True
        notes.assumed("phases with replicas of their own are disaggregated", facts.where("prefill.dp"))
    if is_apart:
        for phase, count in by_phase.items():
            strategy.setdefault(phase, {})["replicas"] = count or 1
        strategy["dp"] = sum(count or 1 for count in by_phase.values())
    elif dp := whole or by_phase["prefill"] or by_phase["decode"]:
        strategy["dp"] = dp


def _are_apart(facts: Facts, strategy: dict[str, Any], whole: int | None) -> bool:
    """Whether both phases state their own replicas, as the format writes disaggregated ones.

    Not if the replicas, or the GPUs, of the whole plan fit replicas that serve both.
    """
    if not all(facts.is_stated(f"{phase}.replicas") for phase in PHASES):
        return False
    counts: list[int] = [facts.get(f"{phase}.replicas") for phase in PHASES]
    if whole is not None:
        return whole == sum(counts)
    degrees = [{name: strategy.get(phase, {}).get(name, 1) for name in _WIDE} for phase in PHASES]
    widest = max(phase_width(PhaseStrategy(**widths)) for widths in degrees)
    return counts[0] != counts[1] or facts.get("total") != counts[0] * widest


def state_as_is(facts: Facts, strategy: dict[str, Any]) -> None:
    """Put illegal degrees and unknown dimensions into `strategy` as stated, so that rules report them.

    Without any other degree of a phase they are no strategy and are left out, unless one is negative.
    """
    claims = [(scope, name, value) for scope in ("any", *PHASES) for name, value in facts.of(f"{scope}.as_stated")]
    says_split = "dp" in strategy or any(phase in strategy for phase in PHASES)
    if says_split or any(value < 0 for _, _, value in claims):
        for scope, name, value in claims:
            if name in ("dp", "replicas") and scope == "any":
                strategy["dp"] = value
                continue
            for phase in PHASES if scope == "any" else (scope,):
                strategy.setdefault(phase, {})[name] = value


def relaxations(facts: Facts, strategy: dict[str, Any]) -> list[str]:
    """The relaxations that were named, and those that the stated degrees need."""
    named = list(facts.get("relaxations") or [])
    used = [RELAXATION_OF[name] for phase in PHASES for name in strategy.get(phase, {}) if name in RELAXATION_OF]
    return list(dict.fromkeys([*named, *used]))


def graph_setting(
    facts: Facts, strategy: dict[str, Any], hardware: dict[str, Any], architecture: Architecture | None
) -> Setting:
    """What reading the nodes needs."""
    moe = [] if architecture is None else [i for i, layer in enumerate(architecture.layers) if layer.moe is not None]
    is_run = bool(moe) and moe == list(range(moe[0], moe[-1] + 1))
    return Setting(
        layers=None if architecture is None else architecture.num_layers,
        moe_layers=(moe[0], moe[-1]) if is_run else None,
        gpus_per_node=hardware.get("gpus_per_node") or _usual_node(facts),
        degrees={phase: strategy.get(phase, {}) for phase in PHASES},
    )
