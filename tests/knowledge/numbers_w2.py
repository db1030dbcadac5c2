"""Worked numbers of modules, scheduling, failure modes and repair.

A deployment is written as five words: model, accelerator, NODESxGPUS, degrees of both phases (`tp8.pp2.ep16`; with
`m4` for microbatches, `c2048` for the prefill chunk, `two-batch` for overlap), and INPUT/OUTPUT/CONCURRENCY.
"""

from __future__ import annotations

import re

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.distance import WEIGHTS
from shardwright.tools.catalog.architecture import Architecture, MoESpec
from shardwright.tools.catalog.attention.spec import AttentionSpec
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.dtypes import WeightTensor
from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.collectives import Group, Links
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.performance.memory import max_concurrency
from shardwright.tools.performance.operation import COLLECTIVES
from shardwright.tools.performance.pass_loads import dealt_out
from shardwright.tools.performance.programs.writer import share_on_device
from shardwright.tools.performance.request_memory import heads_share
from shardwright.tools.performance.schedule import PhaseTimer, decode_load
from shardwright.tools.plan.document import (
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import StageDegrees, even_cut, evening_copies, gpu_count
from shardwright.tools.rules.examples import apply
from shardwright.tools.rules.judge import DegreeJudge
from shardwright.tools.rules.legality import Conditions
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.rules.tensor_parallel.uneven_split import divides

from .registry import number

_DEGREE = re.compile(r"(tp_ffn|tp_expert|attention_dp|kv_sp|pp|tp|ep|sp)(\d+)")


def _architecture(model: str) -> Architecture:
    entry = find_model(model)
    return read_architecture(entry.config, where=entry.name)


def _attention(model: str) -> AttentionSpec:
    """The first attention that keeps a cache (hybrid models have linear ones before it)."""
    specs = [layer.attention for layer in _architecture(model).layers if layer.attention is not None]
    return next(spec for spec in specs if spec.kind != "linear")


def _moe(model: str) -> MoESpec:
    return next(layer.moe for layer in _architecture(model).layers if layer.moe is not None)


def _degrees(words: list[str]) -> PhaseStrategy:
    degrees = {name: int(size) for name, size in (m.groups() for m in map(_DEGREE.fullmatch, words) if m)}
    return PhaseStrategy.model_validate(degrees)


def _relaxations(degrees: PhaseStrategy) -> PolicyBlock:
    names = {
        "attention_dp": degrees.attention_dp,
        "kv_sequence_decode": degrees.kv_sp,
        "tp_in_expert": degrees.tp_expert,
    }
    return PolicyBlock.model_validate({"relaxations": [name for name, used in names.items() if used]})


def _layout(model: str, accelerator: str, cluster: str, layout: str, load: str, precision: str) -> LoadedLayout:
    nodes, gpus = map(int, cluster.split("x"))
    input_tokens, output_tokens, concurrency = map(int, load.split("/"))
    words = layout.split(".")
    degrees = _degrees(words)
    serving = ServingBlock(
        microbatches=next((int(word[1:]) for word in words if re.fullmatch(r"m\d+", word)), None),
        prefill_chunk_tokens=next((int(word[1:]) for word in words if re.fullmatch(r"c\d+", word)), None),
        overlap="two_batch" if "two-batch" in words else None,
    )
    architecture = _architecture(model)
    weights, kv, activations = (precision.split("/") * 3)[:3]
    strategy = Strategy(dp=1, gpu_count=1, prefill=degrees, decode=degrees)
    strategy = strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
    setting = make_setting(
        architecture,
        hardware_facts(accelerator, nodes, gpus),
        WorkloadBlock(input_tokens=input_tokens, output_tokens=output_tokens, concurrency=concurrency),
        PrecisionBlock.model_validate({"weights": weights, "kv_cache": kv, "activations": activations}),
        _relaxations(degrees),
        serving,
    )
    return make_layout(setting, strategy)


def _timer(layout: LoadedLayout, phase: str) -> PhaseTimer:
    return PhaseTimer(layout.setting, layout.phase("prefill" if phase == "prefill" else "decode"))


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


@number("prefill-ms")
def prefill_ms(*deployment: str) -> str:
    """Prefill of one prompt alone, in ms."""
    return _ms(estimate_layout(_layout(*_six(deployment)), ()).latency.prefill_ms or 0.0)


@number("step-ms")
def step_ms(*deployment: str) -> str:
    """One decode step with all requests in flight, in ms."""
    parts = estimate_layout(_layout(*_six(deployment)), ()).latency.decode_step
    assert parts is not None
    return _ms(
        sum(getattr(parts, name) or 0.0 for name in ("compute_ms", "memory_ms", "communication_ms", "bubble_ms"))
    )


@number("part-ms")
def part_ms(phase: str, part: str, *deployment: str) -> str:
    """One part (compute, memory, communication, bubble) of `prefill` or `decode_step`, in ms."""
    latency = estimate_layout(_layout(*_six(deployment)), ()).latency
    return _ms(getattr(getattr(latency, phase), f"{part}_ms") or 0.0)


def _six(words: tuple[str, ...]) -> tuple[str, str, str, str, str, str]:
    model, accelerator, cluster, layout, load, *weights = words
    return model, accelerator, cluster, layout, load, weights[0] if weights else "bf16"


@number("collectives-per-pass")
def collectives_per_pass(op: str, phase: str, *deployment: str) -> str:
    """Collectives of one kind in one pass of a replica (`ALL`: of any kind)."""
    layout = _layout(*_six(deployment))
    timer = _timer(layout, phase)
    load = decode_load(layout, timer, 1)[0]
    count = 0
    for stage in range(len(timer.stages)):
        for piece in timer.stage_pass(stage, load).pieces:
            wanted = [step for step in piece.operations if step.op == op or (op == "ALL" and step.op in COLLECTIVES)]
            count += len(wanted) * (piece.layers or piece.count)
    return f"{count:,}"


@number("collective-us")
def collective_us(op: str, size_bytes: str, ranks: str, domains: str, accelerator: str) -> str:
    """A collective of `size_bytes` by the arithmetic of links alone (no measured table), in microseconds."""
    links = Links(hardware_facts(accelerator, max(1, int(domains)), 8))
    group = Group(int(ranks), int(domains), int(ranks) // int(domains))
    transfer = (
        links.all_reduce(float(size_bytes), group) if op == "all_reduce" else links.all_gather(float(size_bytes), group)
    )
    return f"{float(transfer.seconds) * 1e6:,.0f}"


@number("legal-tp")
def legal_tp(model: str, most: str) -> str:
    """Attention degrees up to `most` that rule TP005 allows."""
    architecture = _architecture(model)
    return "/".join(str(tp) for tp in range(1, int(most) + 1) if divides(architecture, "tp", tp))


@number("legal-tp-ffn")
def legal_tp_ffn(model: str, most: str) -> str:
    """FFN degrees up to `most` that rule TP005 and the checkpoint's FP8 blocks allow."""
    architecture = _architecture(model)
    judge = DegreeJudge(Conditions(architecture, weights=architecture.native_precision))
    return "/".join(map(str, judge.legal("tp_ffn", range(1, int(most) + 1), StageDegrees())))


@number("kv-copies")
def kv_copies(model: str, tp: str) -> str:
    """Copies of each KV head (or the latent) in a TP group."""
    return f"{int(tp) * heads_share(int(tp), _attention(model).cache_shards):g}"


def _elements(tensors: tuple[WeightTensor, ...], tp: int, kv_heads: int) -> float:
    return sum(tensor.elements * share_on_device(tensor, tp, kv_heads) for tensor in tensors)


@number("attention-millions")
def attention_millions(model: str, tp: str) -> str:
    """Attention weights of one layer on one of `tp` devices, in millions of elements."""
    spec = _attention(model)
    return f"{_elements(spec.tensors, int(tp), spec.kv_heads) / 1e6:.1f}"


@number("ffn-millions")
def ffn_millions(model: str, tp: str) -> str:
    """Dense FFN weights of one layer on one of `tp` devices, in millions of elements."""
    spec = next(layer.ffn for layer in _architecture(model).layers if layer.ffn is not None)
    return f"{_elements(spec.tensors, int(tp), 1) / 1e6:.1f}"


@number("uneven-group-sizes")
def uneven_group_sizes(model: str, ep: str) -> str:
    """Sizes of the smallest and the largest expert group, and the redundant copies that would even them."""
    experts = _moe(model).experts
    return f"{experts // int(ep)}–{-(-experts // int(ep))}"


@number("evening-copies")
def copies_to_even(model: str, ep: str) -> str:
    """The fewest redundant experts with which all groups are of equal size."""
    return str(evening_copies(_moe(model).experts, int(ep)))


@number("vocab-gb")
def vocab_gb(model: str, tables: str, element_bytes: str) -> str:
    """`tables` vocabulary tables (embedding, LM head), in GB."""
    shape = _architecture(model)
    return f"{int(tables) * shape.vocab_size * shape.hidden_size * float(element_bytes) / 1e9:.2f}"


@number("head-layers")
def head_layers(model: str) -> str:
    """Weights of the LM head over those of the last layer."""
    shape = _architecture(model)
    last = shape.layers[-1]
    parts = [spec.tensors for spec in (last.attention, last.ffn) if spec is not None]
    return f"{shape.vocab_size * shape.hidden_size / sum(t.elements for tensors in parts for t in tensors):.1f}"


@number("padded-vocabulary")
def padded_vocabulary(model: str) -> str:
    """The vocabulary padded to a multiple of 64, as vLLM and SGLang shard it."""
    return f"{-(-_architecture(model).vocab_size // 64) * 64:,}"


@number("stage-cut")
def stage_cut(model: str, stages: str) -> str:
    """Layers of each stage if no cut is stated."""
    return "/".join(str(size) for size in even_cut(_architecture(model).num_layers, int(stages)))


@number("dealt-out")
def sequences_dealt(batch: str, microbatches: str, together: str) -> str:
    """Sequences of a microbatch if `together` prompts arrive together."""
    return str(dealt_out(int(batch), int(microbatches), int(together))[0])


@number("fix-rounds")
def fix_rounds(rule: str) -> str:
    """Rounds in which the bad example of a rule is mended."""
    return str(autofix(apply(find_rule(rule).bad)).rounds)


@number("fix-patch-operations")
def fix_patch_operations(rule: str) -> str:
    """JSON Patch operations that mend the bad example of a rule."""
    return str(sum(len(fix.patch) for fix in autofix(apply(find_rule(rule).bad)).fixes))


@number("attention-heads")
def attention_heads(model: str) -> str:
    """Query heads and KV heads."""
    spec = _attention(model)
    return f"{spec.query_heads}/{spec.kv_heads}"


@number("tpot-ms")
def tpot_ms(*deployment: str) -> str:
    """Mean time per output token, prompts of other requests included, in ms."""
    return _ms(estimate_layout(_layout(*_six(deployment)), ()).latency.tpot_ms or 0.0)


@number("batch-fits")
def batch_fits(*deployment: str) -> str:
    """The most requests that fit into memory at once."""
    return f"{max_concurrency(_layout(*_six(deployment))):,}"


@number("distance-weight")
def distance_weight(name: str) -> str:
    """Weight of a doubling of a degree, or of another change of a strategy, in the distance of re-planning."""
    return f"{WEIGHTS[name]:g}"
