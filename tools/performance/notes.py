"""Notes of an estimate: assumptions that carry weight, and what R12 asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from ..calibration.chip import chip_assumptions
from ..engines.defaults import engine_relaxations
from ..plan.load import longest_stated
from ..plan.placement import vocabulary_shards
from .collectives import group_of, spread_of
from .host_memory import without_effect
from .layout import LoadedLayout
from .operation import TokenLoad
from .pass_loads import prefill_loads
from .schedule import host_seconds
from .setting import DEFAULT_PREFILL_CHUNK_TOKENS
from .timing import StageTimer


def estimate_notes(layout: LoadedLayout, transfer_seconds: float, imbalance: float | None) -> tuple[str, ...]:
    """The notes of an estimate, most important first; `imbalance` is that of experts in a decode step."""
    return (
        *_formats(layout),
        *_in_force(layout),
        *_vocabulary(layout),
        *_experts(layout, imbalance),
        *_transfer(layout, transfer_seconds),
        *_load(layout),
        *_general(layout),
    )


def _formats(layout: LoadedLayout) -> Iterator[str]:
    """Number formats for which the accelerator has no units but others of the same width."""
    precision, accelerator = layout.setting.precision, layout.setting.hardware.accelerator
    supported = precision.on(accelerator)
    named = [name.replace("_", " ") for name, wanted in precision if getattr(supported, name) != wanted]
    if named:
        yield (
            f"{', '.join(named)} in bf16, for which {accelerator.id} has no units: engines refuse it there or compute "
            "in fp32, slower than the times given; state fp16"
        )


def _in_force(layout: LoadedLayout) -> Iterator[str]:
    """R15: relaxations that the engine always applies are in force, whether the plan's policy names them or not."""
    engine = layout.setting.serving.engine
    for name, reason in engine_relaxations(engine, layout.setting.architecture).items():
        yield f"{name} is in force with {engine}: {reason}"


def _vocabulary(layout: LoadedLayout) -> Iterator[str]:
    """R12: engines split the vocabulary by themselves; a strict plan does not."""
    setting, phase = layout.setting, layout.phase("decode")
    last = phase.stages[-1]
    shards = vocabulary_shards(phase.degrees)
    if last.vocab_shards > 1 or shards == 1 or not last.head_devices:
        return
    requests = math.ceil(layout.requests_of_replica("decode") / phase.attention_groups)
    load = TokenLoad(max(1, requests), 1, 0, phase.attention_groups)
    whole = StageTimer(setting, phase, last).head(load).seconds
    split = StageTimer(setting, phase, replace(last, vocab_shards=shards)).head(load).seconds
    table = setting.tensor_bytes(setting.architecture.embedding_tensors).total
    head = setting.tensor_bytes(setting.architecture.lm_head_tensors).total
    if len(phase.stages) > 1 or setting.architecture.tied_embeddings:
        saved = max(table, head) * (1 - 1 / shards)
    else:
        saved = (table + head) * (1 - 1 / shards)
    change = "less" if split <= whole else "more"
    yield (
        f"vocabulary whole on each of the {last.width} devices of a stage: under the relaxation vocab_parallel a "
        f"device would hold {saved / 1e9:.1f} GB less and a decode step take {abs(whole - split) * 1e3:.2f} ms {change}"
    )


def _experts(layout: LoadedLayout, imbalance: float | None) -> Iterator[str]:
    if imbalance is None:
        return
    stated = layout.setting.workload.expert_imbalance
    source = (
        "a measured skew of routing and chance among few tokens; state workload.expert_imbalance where yours is known"
        if stated is None
        else f"the workload states {stated:g}"
    )
    yield (
        f"experts: the busiest of {layout.phase('decode').degrees.ep} expert groups is taken at {imbalance:.2f} times "
        f"the mean load of a decode step ({source})"
    )


def _transfer(layout: LoadedLayout, seconds: float) -> Iterator[str]:
    if seconds > 0.0:
        yield f"TTFT includes {seconds * 1e3:.1f} ms for the KV cache's way from prefill to decode, none of it hidden"
    if not layout.is_disaggregated:
        return
    handoff_s, engine = layout.setting.engine.facts.handoff_s, layout.setting.engine.facts.name
    if handoff_s is None:
        yield f"how long {engine} takes to hand a request from prefill to decode is not known, and counted as nothing"
    elif handoff_s > 0.0:
        yield f"TTFT includes {handoff_s * 1e3:.0f} ms in which {engine} hands a request from prefill to decode"


def _load(layout: LoadedLayout) -> Iterator[str]:
    setting = layout.setting
    workload, limit = setting.workload, setting.architecture.max_position_embeddings
    if sum(longest_stated(workload)) > limit:
        yield f"input and output exceed the model's {limit:,} positions: the estimate stops there"
    if workload.prefixes is not None and layout.is_disaggregated:
        yield (
            "prefix caches are those of the prefill replicas: a decode replica gets the whole cache of each prompt, "
            "and what it adds to it is computed again where a later prompt repeats it"
        )
    yield from _host_memory(layout)
    replicas, replicas_in_all = len(layout.decode_replicas), len(layout.replicas)
    if workload.concurrency < replicas:
        yield (
            f"throughput over all replicas takes each of the {replicas} as busy; {workload.concurrency} requests in "
            "flight keep fewer at work"
        )
    kinds = {replica.kind for replica in layout.replicas}
    if not layout.replicas_alike and len({_spread(layout, index) for index in range(replicas_in_all)}) > len(kinds):
        yield "replicas are placed differently over the nodes: times are those of the first"


def _host_memory(layout: LoadedLayout) -> Iterator[str]:
    """How memory of the host for the KV cache is counted, or why it is not."""
    setting, engine = layout.setting, layout.setting.engine.facts
    if setting.serving.kv_offload is None:
        return
    if (why := without_effect(setting.serving.kv_offload, engine, setting.workload.prefixes)) is not None:
        yield f"not acted on: {why}"
    else:
        blocks = "a copy of what is computed" if engine.keeps_in_host == "copies" else "what the GPU lets go of"
        waits = "the pass of its prompt" if layout.is_disaggregated else "a prompt, while others go on,"
        yield (
            f"the host's memory gets {blocks}; {waits} waits until its blocks are back over the link, at its peak: "
            "engines that load layer by layer hide a part of that"
        )


def _spread(layout: LoadedLayout, index: int) -> tuple[object, ...]:
    """How the stages of a replica are spread over domains."""
    replica, hardware = layout.replicas[index], layout.setting.hardware
    return tuple(
        (phase.phase, *spread_of(stage.devices, hardware)) for phase in replica.phases for stage in phase.stages
    )


def _general(layout: LoadedLayout) -> Iterator[str]:
    yield from chip_assumptions(layout.setting.hardware.accelerator)
    if layout.setting.serving.prefill_chunk_tokens is None:
        groups, engine = layout.phase("prefill").attention_groups, layout.setting.engine.facts.title
        budget = layout.setting.token_budget(groups)
        chunks = prefill_loads(layout.setting, groups)
        tokens = sum(chunk.new_tokens for chunk in chunks)
        cut = f", in chunks of up to {DEFAULT_PREFILL_CHUNK_TOKENS:,}" if len(chunks) > 1 else ""
        yield (
            f"no chunk of prompts is stated: steps of the simulated run take up to {budget:,} tokens ({engine}'s own), "
            f"the prefill pass that is taken apart the {tokens:,} of one prompt{cut}"
        )
    hardware = layout.setting.hardware
    stages = (stage.devices for replica in layout.replicas for phase in replica.phases for stage in phase.stages)
    if hardware.island_gpus is not None and any(group_of(devices, hardware).over_host for devices in stages):
        yield (
            f"fast links join {hardware.island_gpus} {hardware.accelerator.id} each: groups of more GPUs of a node are "
            f"counted at PCIe's {hardware.over_host().intra_bw_bytes_s / 1e9:g} GB/s"
        )
    host_ms = host_seconds(layout.setting, TokenLoad(1, 1, 0), 0.0) * 1e3
    how = ", as far as the GPUs are done sooner" if layout.setting.hides_host else ""
    yield f"{host_ms:.2g} ms of host time are counted for each pass{how}"
