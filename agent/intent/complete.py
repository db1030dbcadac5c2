"""Completes statements to a whole `Intent`: later statements win, the rest is filled by stated assumptions.

Every value that nobody stated is listed in `Intent.assumptions` with its reason. It refuses what cannot be completed
without a guess (no model), and lengths that the model cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ...tools.catalog.architecture import Architecture
from ...tools.catalog.config import with_positions
from ...tools.catalog.entry import ModelEntry
from ...tools.catalog.models import is_name_of, load_model, read_as
from ...tools.catalog.names import named_format
from ...tools.engines.defaults import engine_relaxations, possible_relaxations
from ...tools.engines.names import DEFAULT_ENGINE, ENGINES, JUDGED, EngineName, engine_name, engine_of
from ...tools.frozen import Frozen
from ...tools.language.merge import merge_said, refusal
from ...tools.language.said import NO_ENGINE, Said
from ...tools.performance.host_memory import without_effect
from ...tools.plan.constraints import BudgetConstraint, Constraint
from ...tools.plan.document import Relaxation, ServingBlock
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ...tools.plan.peak import beside_peak
from .formats import complete_precision
from .hardware import assumed_variant, complete_hardware, hardware_choices, named_accelerator
from .intent import Intent, ModelChoice
from .load import asked_day, check_lengths, complete_workload, with_trace, within_context
from .notes import Notes

DEFAULT_MEMORY_UTILIZATION = 0.90


def complete(*said: Said, positions: int | None = None) -> Intent:
    """The intent that the statements make together; later ones (flags) win over earlier ones (the request).

    `positions`: those that the model is given in place of its own.

    Raises:
        RequestError: no model, or lengths beyond the model's, or counts that fit no cluster.
        UnknownNameError: a model or an accelerator that the catalogue does not have.
        InputError: a model config that cannot be read.
    """
    merged, notes = merge_said(said), Notes()
    entry = _model(merged)
    if positions is not None:
        entry = replace(entry, config=with_positions(entry.config, positions))
    architecture = entry.architecture()
    _note_assumed(merged, entry, notes)
    choices = hardware_choices(merged, notes)
    accelerator = None if choices else named_accelerator(merged, notes)
    hardware = choices[0] if choices else None if accelerator is None else complete_hardware(merged, accelerator, notes)
    day = asked_day(merged, notes)
    if day is not None:
        merged = merged.model_copy(update={"request_rate": day.curve.peak_per_s})
    merged, trace = with_trace(merged, architecture, notes), merged.trace
    workload, concurrency_open = complete_workload(merged, notes)
    workload = within_context(merged, workload, architecture, notes)
    check_lengths(merged, workload, entry, architecture)
    # If a checkpoint is not known, the config is its base's, and the format is the one that its name states.
    named = None if entry.unknown is None else named_format(entry.name)
    formats = complete_precision(merged, named or architecture.native_precision, accelerator)
    notes.assumptions.extend(formats.assumptions)
    for reason in architecture.assumptions:
        notes.assume("model.config", None, reason)
    if entry.unknown is not None:
        notes.assume("model", None, entry.unknown)
    if hardware is None:
        notes.assume("hardware", None, "no accelerator was named: the smallest that does")
    return Intent(
        model=ModelChoice(name=entry.name, config=dict(entry.config), source=entry.source),
        hardware=hardware,
        hardware_choices=choices,
        workload=workload,
        concurrency_open=concurrency_open,
        day=day,
        precision=formats.precision,
        precisions=formats.precisions,
        memory_utilization=_utilization(merged, notes),
        relaxations=_relaxations(merged, architecture, notes),
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


def _note_assumed(merged: Said, entry: ModelEntry, notes: Notes) -> None:
    """Say under which entry the stated model is planned, and what a reader assumed."""
    if merged.model is not None and "model" not in merged.assumed and not is_name_of(merged.model, entry):
        notes.assume("model", entry.name, read_as(merged.model, entry))
    for name, reason in {**assumed_variant(merged), **merged.assumed}.items():
        field_name = "hardware.accelerator" if name == "accelerator" else name
        notes.assume(field_name, _plain(getattr(merged, name)), reason)


def _utilization(merged: Said, notes: Notes) -> float:
    """The share of memory that the engine is given."""
    if merged.memory_utilization is not None:
        return merged.memory_utilization
    usual, name = "the usual share of memory that engines are given", engine_of(merged.engine)
    if name is not None and (engine := ENGINES[name]).computes_share:
        usual += f"; without {engine.vocabulary.flag('memory_share')} {engine.title} computes one of its own"
    return notes.assume("memory_utilization", DEFAULT_MEMORY_UTILIZATION, usual)


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_none=True) if isinstance(value, Frozen) else value


def _relaxations(said: Said, architecture: Architecture, notes: Notes) -> tuple[Relaxation, ...]:
    """The relaxations that were named and those that a named engine brings; under its rules, all that it supports."""
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
    """Statements on a server, on a limit or beside a load, that change nothing here."""
    for limit in LATENCY_LIMITS:
        if getattr(said, limit.statistic) not in (None, "mean") and getattr(said, limit.field) is None:
            yield f"{said.words.get(limit.statistic, limit.statistic)!r}: no limit on {limit.name} is stated"
    for name in ("reserve_replicas", "headroom"):
        if getattr(said, name) is not None and said.rate_curve is None and said.request_rate is None:
            yield f"{said.words.get(name, name)!r}: a reserve is sized for a rate of requests, and none is stated"
    if said.kv_offload is not None:
        engine = ENGINES[engine_name(said.engine) or DEFAULT_ENGINE]
        if (why := without_effect(said.kv_offload, engine, said.prefixes)) is not None:
            yield f"{said.words.get('kv_offload', 'kv_offload')!r}: {why}"


def _assumed_engine(said: Said, notes: Notes) -> EngineName | None:
    """The engine that must be able to start the plan if none was named, or one whose rules are not known."""
    if said.engine == NO_ENGINE or engine_of(said.engine) is not None:
        return None
    title, named_engine = JUDGED[DEFAULT_ENGINE].title, engine_name(said.engine)
    unnamed = "no engine was named" if said.engine is None else f"what {said.engine} starts is not known"
    timed = ENGINES[named_engine].title if named_engine else title
    reason = f"{unnamed}: timed as {timed}, and only what {title} starts is proposed"
    return notes.assume("engine", DEFAULT_ENGINE, reason)


def _model(said: Said) -> ModelEntry:
    if said.model_config_object is not None:
        return load_model(said.model_config_object)
    if said.model is None:
        raise refusal(said, "no model is named; name one (`shardwright models` lists them) or give its config")
    return load_model(said.model)


def _priced(said: Said) -> tuple[Constraint, ...]:
    """The constraints; budgets take the price of a GPU hour that was stated."""
    price = said.usd_per_gpu_hour
    return tuple(
        constraint.model_copy(update={"usd_per_gpu_hour": price})
        if isinstance(constraint, BudgetConstraint) and constraint.usd_per_gpu_hour is None
        else constraint
        for constraint in said.constraints
    )
