"""From what was said to a whole `Intent`: later statements win, the rest is filled by stated assumptions.

Every value that nobody stated is listed in `Intent.assumptions` with its reason. It refuses what cannot be completed
without a guess (no model), and lengths that the model cannot hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.architecture import Architecture
from ...tools.catalog.cluster import SAY_NETWORK, facts_of
from ...tools.catalog.hardware import find_accelerator, variant_taken
from ...tools.catalog.models import ModelEntry, is_name_of, load_model, read_as
from ...tools.catalog.names import named_format
from ...tools.engines.defaults import engine_relaxations, possible_relaxations
from ...tools.engines.names import DEFAULT_ENGINE, ENGINES, JUDGED, EngineName, engine_name, engine_of
from ...tools.language.merge import merge_said, refusal
from ...tools.language.said import NO_ENGINE, FrozenModel, Said
from ...tools.performance.host_memory import without_effect
from ...tools.plan.constraints import BudgetConstraint, Constraint, chosen_kinds
from ...tools.plan.document import Objective, Relaxation, ServingBlock, WorkloadBlock
from ...tools.plan.lengths import Side, check_arrivals, check_means
from ...tools.plan.load import longest_stated
from ...tools.plan.peak import beside_peak
from ...tools.plan.prefixes import SharedPrefixes, check_prefixes
from ...tools.plan.rate_curve import DayAsked
from .formats import complete_precision
from .intent import Assumption, HardwareChoice, Intent, ModelChoice

DEFAULT_INPUT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
DEFAULT_NODE_SIZE = 8
DEFAULT_ACCELERATOR = "h100-sxm"
DEFAULT_MEMORY_UTILIZATION = 0.90
_CONTEXT = re.compile(r"context|ctx|max.model.len|seq|上下文|序列", re.IGNORECASE)


@dataclass(slots=True)
class _Notes:
    """The assumptions made so far."""

    assumptions: list[Assumption] = field(default_factory=list[Assumption])

    def assume(self, name: str, value: Any, reason: str) -> Any:
        """Record an assumption and return its value."""
        self.assumptions.append(Assumption(field=name, value=value, reason=reason))
        return value


def complete(*said: Said) -> Intent:
    """The intent that the statements make together; later ones (flags) win over earlier ones (the request).

    Raises:
        RequestError: no model, or lengths beyond the model's, or counts that fit no cluster.
        UnknownNameError: a model or an accelerator that the catalogue does not have.
        InputError: a model config that cannot be read.
    """
    merged = merge_said(said)
    entry = _model(merged)
    architecture = entry.architecture()
    notes = _Notes()
    if merged.model is not None and not is_name_of(merged.model, entry):
        notes.assume("model", entry.name, read_as(merged.model, entry))
    for name, reason in {**_variant(merged), **merged.assumed}.items():
        field_name = "hardware.accelerator" if name == "accelerator" else name
        notes.assume(field_name, _plain(getattr(merged, name)), reason)
    choices = _choices(merged, notes)
    accelerator = None if choices else _accelerator(merged, notes)
    hardware = choices[0] if choices else None if accelerator is None else _hardware(merged, accelerator, notes)
    day = _day(merged, notes)
    if day is not None:
        merged = merged.model_copy(update={"request_rate": day.curve.peak_per_s})
    merged, trace = _with_trace(merged, architecture, notes), merged.trace
    workload, concurrency_open = _workload(merged, notes)
    workload = _within_context(merged, workload, architecture, notes)
    _check_lengths(merged, workload, entry, architecture)
    # Of a checkpoint that is not known the config is its base's: the format is what its name states.
    named = None if entry.unknown is None else named_format(entry.name)
    formats = complete_precision(merged, named or architecture.native_precision, accelerator)
    notes.assumptions.extend(formats.assumptions)
    for reason in architecture.assumptions:
        notes.assume("model.config", None, reason)
    if entry.unknown is not None:
        notes.assume("model", None, entry.unknown)
    if hardware is None:
        notes.assume("hardware", None, "no accelerator was named: the smallest that does")
    utilization = merged.memory_utilization
    if utilization is None:
        utilization = notes.assume(
            "memory_utilization", DEFAULT_MEMORY_UTILIZATION, "the usual share of memory that engines are given"
        )
    return Intent(
        model=ModelChoice(name=entry.name, config=dict(entry.config), source=entry.source),
        hardware=hardware,
        hardware_choices=choices,
        workload=workload,
        concurrency_open=concurrency_open,
        day=day,
        precision=formats.precision,
        precisions=formats.precisions,
        relaxations=_relaxations(merged, architecture, notes),
        memory_utilization=utilization,
        disaggregated=merged.disaggregated,
        serving=_serving(merged),
        assumed_engine=_assumed_engine(merged, notes),
        usd_per_gpu_hour=merged.usd_per_gpu_hour,
        strategy=merged.strategy,
        compared=merged.compared,
        constraints=_priced(merged),
        words=merged.words,
        assumptions=tuple(notes.assumptions),
        readings=merged.readings,
        unread=(*merged.unread, *_without_effect(merged)),
        trace=None if trace is None else beside_peak(trace.description, trace.peak, merged.request_rate, "planned"),
    )


def _variant(said: Said) -> dict[str, str]:
    """Why the variant of the accelerator was taken, where its words leave that open."""
    words = said.words.get("accelerator")
    if said.accelerator is None or said.accelerator_object is not None or words is None:
        return {}
    reason = variant_taken(words, find_accelerator(said.accelerator))
    return {} if reason is None else {"accelerator": reason}


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_none=True) if isinstance(value, FrozenModel) else value


def _relaxations(said: Said, architecture: Architecture, notes: _Notes) -> tuple[Relaxation, ...]:
    """The relaxations that were named, and those that a named engine brings with it; all that it has by its rules."""
    if said.rules == "engine" and said.engine == NO_ENGINE:
        raise refusal(
            said, "a plan on paper has no engine whose rules could hold; name an engine or leave out its rules"
        )
    if said.rules == "engine":
        brought = possible_relaxations(said.engine or DEFAULT_ENGINE, architecture)
    else:
        brought = engine_relaxations(said.engine, architecture)
    for name, reason in brought.items():
        if name not in said.relaxations:
            notes.assume("relaxations", name, reason)
    return tuple(sorted({*said.relaxations, *brought}))


def _serving(said: Said) -> ServingBlock | None:
    settings = {name: getattr(said, name) for name in ("max_batch", "prefill_chunk_tokens", "overlap", "kv_offload")}
    if said.engine not in (None, NO_ENGINE):
        return ServingBlock(engine=said.engine, engine_version=said.engine_version, **settings)
    return ServingBlock(**settings) if any(settings.values()) else None


def _without_effect(said: Said) -> Iterator[str]:
    """What was said of a server and changes nothing here."""
    if said.kv_offload is not None:
        engine = ENGINES[engine_name(said.engine) or DEFAULT_ENGINE]
        if (why := without_effect(said.kv_offload, engine, said.prefixes)) is not None:
            yield f"{said.words.get('kv_offload', 'kv_offload')!r}: {why}"


def _assumed_engine(said: Said, notes: _Notes) -> EngineName | None:
    """The engine that must be able to start the plan although none was named, or none whose rules are known."""
    if said.engine == NO_ENGINE or engine_of(said.engine) is not None:
        return None
    title, own = JUDGED[DEFAULT_ENGINE].title, engine_name(said.engine)
    unnamed = "no engine was named" if said.engine is None else f"what {said.engine} starts is not known"
    timed = ENGINES[own].title if own else title
    reason = f"{unnamed}: timed as {timed}, and only what {title} starts is proposed"
    return notes.assume("engine", DEFAULT_ENGINE, reason)


def _model(said: Said) -> ModelEntry:
    if said.model_config_object is not None:
        return load_model(said.model_config_object)
    if said.model is None:
        raise refusal(said, "no model is named; name one (`shardwright models` lists them) or give its config")
    return load_model(said.model)


def _priced(said: Said) -> tuple[Constraint, ...]:
    """The constraints, a budget at the price of a GPU hour that was stated beside it."""
    price = said.usd_per_gpu_hour
    return tuple(
        one.model_copy(update={"usd_per_gpu_hour": price})
        if isinstance(one, BudgetConstraint) and one.usd_per_gpu_hour is None
        else one
        for one in said.constraints
    )


def _choices(said: Said, notes: _Notes) -> tuple[HardwareChoice, ...]:
    """Hardware of each kind that was named to choose from; none where one kind was named, or no number was stated."""
    kinds = chosen_kinds(said.constraints)
    if not kinds or said.accelerator is not None or said.accelerator_object is not None:
        return ()
    if said.gpus_of_kinds is not None and len(said.gpus_of_kinds) == len(kinds):
        each = [said.model_copy(update={"gpus": gpus}) for gpus in said.gpus_of_kinds]
        return tuple(_hardware(one, find_accelerator(kind), _Notes()) for one, kind in zip(each, kinds, strict=True))
    if said.gpus is None and said.nodes is None and said.gpus_per_node is None:
        return ()
    # What is assumed of counts is said once, of the first kind.
    first, *others = (find_accelerator(kind) for kind in kinds)
    return _hardware(said, first, notes), *(_hardware(said, other, _Notes()) for other in others)


def _accelerator(said: Said, notes: _Notes) -> Accelerator | None:
    """The accelerator that was named. A count without a kind is read as the most usual kind, and says so."""
    if said.accelerator_object is not None:
        return said.accelerator_object
    if said.accelerator is not None:
        return find_accelerator(said.accelerator)
    if said.gpus is None and said.nodes is None and said.gpus_per_node is None:
        return None
    notes.assume("hardware.accelerator", DEFAULT_ACCELERATOR, "GPUs were counted but no kind was named")
    return find_accelerator(DEFAULT_ACCELERATOR)


def _hardware(said: Said, accelerator: Accelerator, notes: _Notes) -> HardwareChoice:
    nodes, per_node = _counts(said, accelerator, notes)
    links = said.intra_node_bw_gb_s, said.inter_node_bw_gb_s
    if nodes is not None and not facts_of(accelerator, nodes, per_node, *links).crosses_nodes:
        notes.assumptions.append(inside_nodes(accelerator.id))
    return HardwareChoice(
        accelerator=accelerator if said.accelerator_object is not None else accelerator.id,
        nodes=nodes,
        gpus_per_node=per_node,
        intra_node_bw_gb_s=said.intra_node_bw_gb_s,
        inter_node_bw_gb_s=said.inter_node_bw_gb_s,
    )


def inside_nodes(accelerator: str) -> Assumption:
    """That only replicas that stay in a node are looked at, since nobody named the network between nodes."""
    reason = (
        f"how fast nodes of {accelerator} send to each other is not known: only replicas that stay in a node were "
        f"looked at; {SAY_NETWORK} to have all"
    )
    return Assumption(field="hardware.inter_node_bw_gb_s", value=None, reason=reason)


def _counts(said: Said, accelerator: Accelerator, notes: _Notes) -> tuple[int | None, int]:
    """Nodes (`None`: open) and GPUs per node. Stated counts win over "as few as needed"."""
    nodes, per_node, gpus = said.nodes, said.gpus_per_node, said.gpus
    if gpus is not None and nodes is not None:
        return nodes, _divided(said, gpus, nodes, "nodes")
    if gpus is not None and per_node is not None:
        if gpus < per_node:
            return 1, gpus
        return _divided(said, gpus, per_node, "GPUs per node"), per_node
    usual = _usual_size(accelerator, notes) if per_node is None else per_node
    if gpus is not None:
        return _filled_nodes(gpus, usual, notes)
    if nodes is not None:
        if per_node is None:
            notes.assume("hardware.gpus_per_node", usual, f"the usual node of {accelerator.id} holds {usual}")
        return nodes, usual
    if per_node is not None and not said.gpus_open:
        return notes.assume("hardware.nodes", 1, "a node was named and no number of nodes"), per_node
    if per_node is None:
        notes.assume("hardware.gpus_per_node", usual, f"the usual node of {accelerator.id} holds {usual}")
    if not said.gpus_open:
        notes.assume("hardware.nodes", None, "no number of GPUs was named: the fewest that do")
    return None, usual


def _divided(said: Said, gpus: int, by: int, what: str) -> int:
    if gpus % by:
        raise refusal(said, f"{gpus} GPUs do not divide evenly by {by} {what}; mend one of the two")
    return gpus // by


def _usual_size(accelerator: Accelerator, notes: _Notes) -> int:
    if accelerator.typical_node_accelerators is not None:
        return accelerator.typical_node_accelerators
    return notes.assume(
        "hardware.typical_node", DEFAULT_NODE_SIZE, f"{accelerator.id} states no usual node; most servers hold 8"
    )


def _filled_nodes(gpus: int, usual: int, notes: _Notes) -> tuple[int, int]:
    """A bare count: part of one node, whole usual nodes, or else the fewest nodes that share it evenly."""
    if gpus <= usual:
        nodes = 1
        reason = f"{gpus} GPUs fit in one node of the usual {usual}"
    elif gpus % usual == 0:
        nodes = gpus // usual
        reason = f"{gpus} GPUs fill {nodes} nodes of the usual {usual}"
    else:
        nodes = next(n for n in range(-(-gpus // usual), gpus + 1) if gpus % n == 0)
        reason = f"{gpus} GPUs do not fill nodes of the usual {usual}: the fewest nodes that share them evenly"
    notes.assume("hardware.nodes", nodes, reason)
    return nodes, gpus // nodes


def _workload(said: Said, notes: _Notes) -> tuple[WorkloadBlock, bool]:
    input_tokens, output_tokens = _length(said, "input", notes), _length(said, "output", notes)
    _check_stated(said, input_tokens, output_tokens)
    objective = said.objective if said.objective is not None else _objective(said, notes)
    wants_rate = said.request_rate is not None or said.min_tokens_per_second is not None
    concurrency_open = said.concurrency is None and (objective != "latency" or wants_rate)
    if said.concurrency is None:
        reason = (
            "no concurrency was named: as many requests in flight as the stated rate takes"
            if concurrency_open and objective == "latency"
            else f"no concurrency was named and the objective is {objective}: the most that fits"
            if concurrency_open
            else "no concurrency was named and the objective is latency: one request in flight"
        )
        notes.assume("concurrency", None if concurrency_open else 1, reason)
    elif said.request_rate is not None and said.concurrency > 1:
        reason = (
            f"{said.concurrency:,} requests at once were stated beside a rate: they come at that rate whatever is in "
            "flight, so the number is only room in memory"
        )
        notes.assume("request_rate", said.request_rate, reason)
    workload = WorkloadBlock(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=said.concurrency or 1,
        ttft_ms_max=said.ttft_ms_max,
        tpot_ms_max=said.tpot_ms_max,
        end_to_end_ms_max=said.end_to_end_ms_max,
        ttft_statistic=said.ttft_statistic or "mean",
        tpot_statistic=said.tpot_statistic or "mean",
        end_to_end_statistic=said.end_to_end_statistic or "mean",
        request_rate=said.request_rate,
        min_tokens_per_second=said.min_tokens_per_second,
        prefix_cache_hit_rate=said.prefix_cache_hit_rate,
        expert_imbalance=said.expert_imbalance,
        input_tokens_range=said.input_tokens_range,
        output_tokens_range=said.output_tokens_range,
        lengths=said.lengths,
        prefixes=said.prefixes,
        arrivals=said.arrivals,
        objective=objective,
    )
    return workload, concurrency_open


def _with_trace(said: Said, architecture: Architecture, notes: _Notes) -> Said:
    """What is said with the rate of its trace, unless a rate or a number of users is; bursts are those of the trace.

    Requests that are longer than the model's positions are left out: no server of it takes them.
    """
    if said.trace is None:
        return said
    fields: dict[str, Any] = {}
    if said.request_rate is None and said.concurrency is None and said.trace.request_rate is not None:
        fields["request_rate"] = said.trace.request_rate
    if (fields or said.request_rate is not None) and said.arrivals is None:
        fields["arrivals"] = said.trace.arrivals
    lengths, limit = said.lengths, architecture.max_position_embeddings
    longest = 0 if lengths is None else lengths.spread(1, 1).longest_request
    if lengths is not None and longest > limit and (kept := lengths.within(limit)) is not None:
        reason = f"the trace has requests of up to {longest:,} tokens; those beyond the model's {limit:,} are left out"
        notes.assume("lengths", f"at most {limit:,} tokens", reason)
        fields["lengths"] = kept
        if said.prefixes is not None and lengths.pairs is not None:
            fields["prefixes"] = said.prefixes.of_kept([sum(pair) <= limit for pair in lengths.pairs])
    if said.prefix_cache_hit_rate is not None and said.prefixes is not None and said.prefixes.replay is not None:
        # What somebody states of his caches goes before what a trace tells.
        fields["prefixes"] = None
    return said.model_copy(update=fields)


def _length(said: Said, side: Side, notes: _Notes) -> int:
    """A length: as stated, else the mean of those stated, or the upper end of their range, else the default."""
    name: Literal["input_tokens", "output_tokens"] = "input_tokens" if side == "input" else "output_tokens"
    stated: int | None = getattr(said, name)
    if stated is not None:
        return _with_system_prompt(said, stated, notes) if side == "input" else stated
    if said.lengths is not None and said.lengths.covers(side):
        mean = said.lengths.spread(1, 1).means[side == "output"]
        whose = "stated" if said.trace is None else "trace's"
        return notes.assume(name, max(1, round(mean)), f"the mean of the {whose} lengths")
    span: tuple[int, int] | None = getattr(said, f"{name}_range")
    if span is not None:
        return notes.assume(name, span[1], f"a range of {span[0]} to {span[1]} was stated: planned for its upper end")
    if side == "input" and said.prefixes is not None:
        return _shared_input(said, said.prefixes, notes)
    return notes.assume(name, _DEFAULTS[name], "no length was named: a chat-like request")


def _with_system_prompt(said: Said, stated: int, notes: _Notes) -> int:
    """The whole prompt: a length that cannot hold the system prompt is what each request adds to it."""
    system = None if said.prefixes is None or said.prefixes.turns is not None else said.prefixes.system_tokens
    if system is None or stated > system:
        return stated
    reason = f"{stated:,} tokens cannot hold the system prompt of {system:,}: read as what each request adds to it"
    return notes.assume("input_tokens", system + stated, reason)


def _shared_input(said: Said, prefixes: SharedPrefixes, notes: _Notes) -> int:
    """The mean prompt where what is shared is named and no length: what is new of it is a chat-like request."""
    answer = said.output_tokens or DEFAULT_OUTPUT_TOKENS
    tokens = prefixes.mean_input(DEFAULT_INPUT_TOKENS, answer)
    turns = "" if prefixes.turns is None else " in each turn, and all turns before it"
    beside = "" if prefixes.system_tokens is None else " beside the system prompt"
    reason = f"no length was named: {DEFAULT_INPUT_TOKENS:,} new tokens{beside}{turns}, on average"
    return notes.assume("input_tokens", tokens, reason)


_DEFAULTS = {"input_tokens": DEFAULT_INPUT_TOKENS, "output_tokens": DEFAULT_OUTPUT_TOKENS}


def _check_stated(said: Said, input_tokens: int, output_tokens: int) -> None:
    """See that what is said of lengths, prefixes and arrivals agrees with the means and with the rate.

    Raises:
        InputError: it does not.
    """
    try:
        if said.lengths is not None:
            check_means(said.lengths, {**dict(said), "input_tokens": input_tokens, "output_tokens": output_tokens})
        if said.prefixes is not None:
            check_prefixes(said.prefixes, {**dict(said), "input_tokens": input_tokens, "output_tokens": output_tokens})
        if said.arrivals is not None:
            has_turns = said.prefixes is not None and said.prefixes.turns is not None
            check_arrivals(said.arrivals, said.request_rate, has_turns=has_turns)
    except PydanticCustomError as error:
        raise refusal(said, error.message() + ", or leave out the trace" * (said.trace is not None)) from None


# Replicas that may be lost, and the share of a rate that may come besides, where nobody says otherwise: Kubernetes'
# autoscaler lets a load be a tenth above what is wanted (`--horizontal-pod-autoscaler-tolerance`).
DEFAULT_RESERVE_REPLICAS = 1
DEFAULT_HEADROOM = 0.1


def _day(said: Said, notes: _Notes) -> DayAsked | None:
    """The day that is asked for, with what is kept beside its rates; its peak is what is planned for."""
    curve, rate = said.rate_curve, said.request_rate
    if curve is None:
        kept = next((name for name in ("reserve_replicas", "headroom") if getattr(said, name) is not None), None)
        if kept is not None:
            raise refusal(said, f"{kept} is stated and no rate curve: it says what is kept beside the rates of a day")
        return None
    if rate is not None and not any(isclose(rate, one, rel_tol=0.01) for one in (curve.peak_per_s, curve.mean_per_s)):
        raise refusal(
            said,
            f"{rate:g} requests/s are stated beside a rate curve of {curve.mean_per_s:g} on average and "
            f"{curve.peak_per_s:g} at the peak; keep one",
        )
    notes.assume("request_rate", curve.peak_per_s, "the peak of the rate curve")
    if curve.assumed is not None:
        notes.assume("rate_curve", None, curve.assumed)
    reserve, headroom = said.reserve_replicas, said.headroom
    if reserve is None:
        reason = "no reserve was named: one replica may be lost (N+1)"
        reserve = notes.assume("reserve_replicas", DEFAULT_RESERVE_REPLICAS, reason)
    if headroom is None:
        reason = "no headroom was named: what an autoscaler lets a load be above what is wanted"
        headroom = notes.assume("headroom", DEFAULT_HEADROOM, reason)
    return DayAsked(curve=curve, reserve_replicas=reserve, headroom_share=headroom)


def _objective(said: Said, notes: _Notes) -> Objective:
    if said.rate_curve is not None:
        return notes.assume("objective", "cost", "a rate curve asks what a day takes and no objective was named")
    if said.min_tokens_per_second is not None:
        return notes.assume("objective", "throughput", "a rate of tokens to reach was named and no objective")
    if said.request_rate is not None:
        return notes.assume("objective", "latency", "no objective was named: the stated rate, served as fast as can be")
    return notes.assume("objective", "latency", "no objective was named")


def _within_context(said: Said, workload: WorkloadBlock, architecture: Architecture, notes: _Notes) -> WorkloadBlock:
    """A context that fills the model's positions leaves room for the assumed output: the input is the rest."""
    limit, context = architecture.max_position_embeddings, said.input_tokens
    if context is None or said.output_tokens is not None or said.output_tokens_range is not None:
        return workload
    is_context = _CONTEXT.search(said.words.get("input_tokens", "")) is not None
    if not is_context or not workload.output_tokens < context <= limit or context + workload.output_tokens <= limit:
        return workload
    reason = f"a context of {context} holds the {workload.output_tokens} output tokens too"
    tokens = notes.assume("input_tokens", context - workload.output_tokens, reason)
    return workload.model_copy(update={"input_tokens": tokens})


def _check_lengths(said: Said, workload: WorkloadBlock, entry: ModelEntry, architecture: Architecture) -> None:
    longest_in, longest_out = longest_stated(workload)
    limit = architecture.max_position_embeddings
    if longest_in + longest_out > limit:
        raise refusal(
            said,
            f"{longest_in} input + {longest_out} output tokens are more than the {limit} positions of "
            f"{entry.name} (max_position_embeddings); shorten them, or give a config.json that has more (--model FILE)",
        )
