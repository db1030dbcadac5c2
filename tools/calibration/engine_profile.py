"""What a serving engine adds to its kernels: host time, scheduling, and factors on the measured kernel times.

There is an entry for each engine, generation and class of accelerator with published end-to-end results; otherwise the
nearest entry stands in and the profile says so. Entries are written by the fit, never by hand.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from ..catalog.accelerators import Accelerator
from ..engines.engine import Engine
from ..engines.names import DEFAULT_ENGINE, ENGINES, engine_name
from ..errors import InputError
from ..frozen import Frozen
from ..input.files import shipped
from .error_ranges import ErrorRange

NonNegative = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Scale = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Mode = Literal["mixed", "prefill_first", "whole"]
Reserve = Literal["prompt", "full"]


class EngineConstants(Frozen):
    """Times that no kernel table has, and factors on those that they have (1: as measured in isolation)."""

    # Scheduling, sampling and output handling of one step: fixed, per sequence in it, and where it carries a prompt.
    host_step_ms: NonNegative
    host_sequence_us: NonNegative
    host_prefill_ms: NonNegative
    # Factors on kernel times: matmuls and element-wise kernels bound by memory, matmuls bound by arithmetic,
    # attention, the fixed part of a MoE layer and the rest of it, and collectives.
    memory_scale: Scale
    compute_scale: Scale
    attention_scale: Scale
    moe_fixed_scale: Scale
    moe_scale: Scale
    communication_scale: Scale
    # Nanoseconds in which one thread block goes over one cached token of one head in decode, where a kernel gives each
    # head of a sequence one block (as the first releases of TensorRT-LLM); 0 where blocks share a long sequence.
    head_token_ns: NonNegative = 0.0
    # What a recurrent layer takes beside its roofline in each pass: short convolution, gates, gated norm, launches.
    recurrent_layer_us: NonNegative = 0.0
    # What a client waits beside the engine before its first token: fixed, and per token of the prompt.
    client_ms: NonNegative
    client_token_us: NonNegative
    # Steps between the first token's step and its delivery, as servers run by default; and where the server was set to
    # stream at intervals, as the launch scripts of InferenceX do.
    first_token_steps: NonNegative
    interval_token_steps: NonNegative


class Scheduler(Frozen):
    """How the engine fills a step, beside its largest batch (`tools/engines`), where the plan does not say.

    `group_wait_steps`: how many steps a prompt is held back at most until every attention-DP group has one, as the
    engine's published recipes for attention DP set it; 0: not held back.
    `host_per_stage`: whether each stage of a pipeline is run by a host process that prepares every pass anew, as
    engines in Python do; else the host's time counts once for a pass through all stages.
    """

    mode: Mode
    reserve: Reserve
    memory_utilization: Annotated[float, Field(gt=0, le=1)]
    jitter_ms: NonNegative = 0.0
    group_wait_steps: Annotated[int, Field(ge=0, le=10**6)] = 0
    host_per_stage: bool = False


class EngineEntry(Frozen):
    """One fitted entry. `ranges` are those of its own runs, where it was fitted to a user's; what ships has a file."""

    engine: str
    generation: str
    accelerator_class: str
    constants: EngineConstants
    scheduler: Scheduler
    ranges: Annotated[tuple[ErrorRange, ...], Field(max_length=200)] = ()
    rows: int
    source: str
    fitted: str


class EngineProfile(Frozen):
    """The entry that stands for an engine on an accelerator. `notes` say what stood in for what was not measured."""

    entry: EngineEntry
    notes: tuple[str, ...] = ()
    # The engine itself, where another's constants stand in for its own.
    engine: str | None = None

    @property
    def facts(self) -> Engine:
        """What is known of the engine beside its constants."""
        return ENGINES[self.engine or self.entry.engine]

    @property
    def name(self) -> str:
        """For people: engine, generation and class of accelerator."""
        return f"{self.entry.engine} {self.entry.generation} on {self.entry.accelerator_class}"


SCALES = ("memory_scale", "compute_scale", "attention_scale", "moe_fixed_scale", "moe_scale", "communication_scale")
# A factor so small that only the time at datasheet rates remains.
_NEXT_TO_NOTHING = 1e-9


def neutral(profile: EngineProfile, **changes: float) -> EngineProfile:
    """The profile with every factor 1 and no host time, except for `changes`."""
    plain = dict.fromkeys(SCALES, 1.0) | {
        "host_step_ms": 0.0, "host_sequence_us": 0.0, "host_prefill_ms": 0.0, "client_ms": 0.0,
        "client_token_us": 0.0, "first_token_steps": 0.0, "interval_token_steps": 0.0, "head_token_ns": 0.0,
        "recurrent_layer_us": 0.0,
    }  # fmt: skip
    constants = EngineConstants(**(plain | changes))
    return profile.model_copy(update={"entry": profile.entry.model_copy(update={"constants": constants})})


def at_datasheet_rates(profile: EngineProfile) -> EngineProfile:
    """The profile of an engine without overhead, whose kernels run at the rates of the datasheet."""
    return neutral(profile, **dict.fromkeys(SCALES, _NEXT_TO_NOTHING))


def accelerator_class(accelerator: Accelerator) -> str:
    """The class of accelerators that share an engine's constants: the accelerator's architecture."""
    return accelerator.generation or "unknown"


@lru_cache(maxsize=1)
def all_entries() -> tuple[EngineEntry, ...]:
    """Every entry of the data file."""
    return tuple(map(EngineEntry.model_validate, shipped(__name__, "engines.json")["entries"]))


def engine_profile(engine: str | None, version: str | None, accelerator: Accelerator) -> EngineProfile:
    """The profile of `engine` at `version` on `accelerator`, or the nearest measured one.

    Nearest: the same engine and generation pooled over all accelerators, then the same engine. Raises InputError: there
    are no entries.
    """
    return _profile(engine, version, accelerator_class(accelerator))


@lru_cache(maxsize=256)
def _profile(engine: str | None, version: str | None, class_: str) -> EngineProfile:
    name = engine_name(engine)
    notes: list[str] = []
    if name is None:
        notes.append(
            f"no engine is named: timed as {ENGINES[DEFAULT_ENGINE].title}, whose rules judge a plan that names it"
            if not engine
            else f"engine {engine} was not measured"
        )
        name = DEFAULT_ENGINE
    wanted = (name, ENGINES[name].generation(version), class_)
    entry = _nearest(all_entries(), wanted)
    if entry is None:
        raise InputError("no engine profile is installed: the package's data file engines.json has no entry")
    actual = (entry.engine, entry.generation, entry.accelerator_class)
    if actual != wanted:
        notes.append(f"{' '.join(wanted)} was not measured: {' '.join(actual)} stands in")
    return EngineProfile(entry=entry, notes=tuple(notes), engine=name)


def _nearest(known: tuple[EngineEntry, ...], wanted: tuple[str, str, str]) -> EngineEntry | None:
    engine, generation_, class_ = wanted
    choices = (
        (engine, generation_, class_),
        (engine, generation_, "pooled"),
        (engine, None, class_),
        (engine, None, "pooled"),
        (DEFAULT_ENGINE, None, "pooled"),
    )
    for name, version, accelerators in choices:
        for entry in known:
            if name == entry.engine and version in (None, entry.generation) and accelerators == entry.accelerator_class:
                return entry
    return None
