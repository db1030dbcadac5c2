"""What a program states as arguments, as `Said`, which words, briefs and flags are read into as well.

Values are checked here; what is left out is completed later, with stated assumptions, as for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel, ValidationError

from ...tools.catalog.config_file import read_config_file
from ...tools.engines.names import KNOWN, known_engine
from ...tools.errors import InputError, expect
from ...tools.input.strict_values import check_text, check_value
from ...tools.language.said import NO_ENGINE, OpenPrecisions, Said, SaidTrace, StatedPrecision
from ...tools.plan.document import (
    HardwareBlock,
    Objective,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    Statistic,
    WorkloadBlock,
)
from ...tools.plan.kv_offload import KVOffload
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ...tools.plan.lengths import Arrivals, RequestLengths
from ...tools.plan.prefixes import SharedPrefixes
from ...tools.traffic.trace import Trace, read_trace
from ..intent.cluster import named_accelerator, said_hardware
from ..intent.formats import said_weights
from .constraints import ConstraintArgument, stated_constraints
from .curve import CurveArgument, stated_curve

ModelArgument = str | Path | Mapping[str, object]
HardwareArgument = str | HardwareBlock | Mapping[str, object]
PrecisionArgument = str | PrecisionBlock | Mapping[str, str]
WorkloadArgument = WorkloadBlock | Mapping[str, object]

_Model = TypeVar("_Model", bound=BaseModel)
# Lengths that stand in while the stated fields of a workload are checked.
_LENGTHS = {"input_tokens": 1, "output_tokens": 1}
_APART: tuple[tuple[str, type[BaseModel]], ...] = (
    ("lengths", RequestLengths),
    ("prefixes", SharedPrefixes),
    ("arrivals", Arrivals),
)
# Limits by the names of the options.
_LIMITS = {limit.figure: limit.field for limit in LATENCY_LIMITS}
# Each of them is a search of its own.
_MOST_PRECISIONS = 20
_AS_STATED = ("reserve_replicas", "headroom", "memory_utilization", "disaggregated", "rules", "usd_per_gpu_hour")
_PRECISIONS = ("weights", "kv_cache", "activations")


class LoadArguments(TypedDict, total=False):
    """The fields of a workload, stated one by one."""

    input_tokens: int
    output_tokens: int
    concurrency: int
    ttft_ms: float
    tpot_ms: float
    end_to_end_ms: float
    ttft_ms_max: float
    tpot_ms_max: float
    end_to_end_ms_max: float
    ttft_statistic: Statistic
    tpot_statistic: Statistic
    end_to_end_statistic: Statistic
    request_rate: float
    min_tokens_per_second: float
    prefix_cache_hit_rate: float
    expert_imbalance: float
    input_tokens_range: tuple[int, int]
    output_tokens_range: tuple[int, int]
    lengths: RequestLengths | Mapping[str, Any]
    prefixes: SharedPrefixes | Mapping[str, Any]
    arrivals: Arrivals | Mapping[str, Any]
    objective: Objective


TraceArgument = Trace | str | Path


class Arguments(LoadArguments, total=False):
    """What may be stated beside model, hardware and workload.

    `precision` names the weights' format, or all three; `any` or a list of these leaves it to the search.
    `trace` is the path of a file of requests, or what was read of one: its lengths, and how its requests come.
    `rate_curve` are the requests/s of a day: 24 numbers, steps (`0-8=2,8-18=20,18-24=5`), words, the path of a file, or
    `trace`, its hours; `reserve_replicas` may be lost, `headroom` is a share of each rate that may come besides.
    `constraints` are lines such as `tp <= 4` (`stated_constraints.FORMS`), or objects of `policy.constraints`.
    """

    precision: PrecisionArgument | Sequence[PrecisionArgument]
    relaxations: Iterable[Relaxation]
    memory_utilization: float
    disaggregated: bool
    engine: str
    rules: Literal["strict", "engine"]
    serving: ServingBlock | Mapping[str, object]
    kv_offload: KVOffload | Mapping[str, object]
    constraints: Iterable[ConstraintArgument]
    usd_per_gpu_hour: float
    trace: TraceArgument
    rate_curve: CurveArgument
    reserve_replicas: int
    headroom: float


def said_of_arguments(
    model: ModelArgument | None,
    hardware: HardwareArgument | None,
    workload: WorkloadArgument | None,
    arguments: Arguments,
) -> Said | None:
    """All that is stated, or `None` where nothing is.

    Raises:
        InputError: a value that cannot be, or an unknown model, accelerator or engine.
    """
    fields = {**_model(model), **_hardware(hardware)}
    single = {name: value for name, value in arguments.items() if name in LoadArguments.__annotations__}
    of_block = _stated_of(workload)
    fields |= _workload({**of_block, **single}, single)
    fields["readings"] = tuple(_replaced(of_block, single)) or None
    trace = arguments.get("trace")
    read = None if trace is None else traced(trace)
    if read is not None:
        fields |= said_trace(read)
    if (curve := arguments.get("rate_curve")) is not None:
        fields["rate_curve"] = stated_curve(curve, read)
    fields |= _precision(arguments.get("precision"))
    fields |= {name: arguments.get(name) for name in _AS_STATED}
    fields["constraints"] = stated_constraints(arguments.get("constraints"))
    fields["relaxations"] = _relaxations(arguments.get("relaxations"))
    serving = arguments.get("serving")
    if serving is not None:
        block = checked(ServingBlock, serving, "serving")
        fields |= {name: getattr(block, name) for name in ("engine", "engine_version", "kv_offload")}
    if (offload := arguments.get("kv_offload")) is not None:
        fields["kv_offload"] = checked(KVOffload, offload, "kv_offload")
    fields |= said_engine(arguments.get("engine"))
    fields = {name: value for name, value in fields.items() if value is not None}
    if "memory_utilization" in fields:
        checked(PolicyBlock, {"memory_utilization": fields["memory_utilization"]}, "policy")
    return checked(Said, fields, "the request") if fields else None


def checked(kind: type[_Model], value: Any, where: str, written: Mapping[str, str] | None = None) -> _Model:
    """`value` as a `kind`; errors call a field what it is `written` as, else by its name at `where`.

    Raises:
        InputError: it is none; the message says which field, and why.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        where = (written or {}).get(place) or ": ".join(filter(None, (where, place)))
        message = f"{where}: {first['msg']}"[:320]
        raise InputError("".join(letter if letter.isprintable() else "?" for letter in message)) from None


def _refuse_unknown(names: Iterable[str], known: Collection[str], noun: str) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(str(name)[:80], known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
            raise InputError(f"no {noun} {str(name)[:80]!r}{hint}")


def _model(model: ModelArgument | None) -> dict[str, Any]:
    if model is None:
        return {}
    if isinstance(model, str):
        return {"model": check_text(model, "model")}
    config = read_config_file(model) if isinstance(model, Path) else model
    check_value(config, "model")
    return {"model_config_object": dict(config)}


def _hardware(hardware: HardwareArgument | None) -> dict[str, Any]:
    if hardware is None:
        return {}
    if isinstance(hardware, str):
        return said_hardware(check_text(hardware, "hardware"))
    block = checked(HardwareBlock, hardware, "hardware")
    fields = block.model_dump(exclude={"accelerator"}, exclude_none=True)
    if isinstance(block.accelerator, str):
        return {**fields, **named_accelerator(block.accelerator)}
    return {**fields, "accelerator_object": block.accelerator}


def _stated_of(workload: WorkloadArgument | None) -> dict[str, Any]:
    if isinstance(workload, WorkloadBlock):
        return {name: getattr(workload, name) for name in workload.model_fields_set}
    expect(workload, (Mapping, NoneType), "workload", "a block or some of its fields are expected")
    return dict(workload or {})


def _replaced(block: Mapping[str, Any], single: Mapping[str, Any]) -> Iterator[str]:
    """That a field of the workload gives way to an argument of its own."""
    stated = {_LIMITS.get(name, name): (name, value) for name, value in block.items() if value is not None}
    for name, value in single.items():
        other, replaced = stated.get(_LIMITS.get(name, name), (name, value))
        if value is not None and value != replaced:
            yield f"{name} {value} wins over workload.{other} {replaced}"


def _workload(fields: dict[str, Any], single: Collection[str]) -> dict[str, Any]:
    """The fields of a workload; errors name each as in `fields`, those of `single` as arguments."""
    _refuse_unknown(fields, (*WorkloadBlock.model_fields, *_LIMITS), "field of a workload")
    stated = {_LIMITS.get(name, name): value for name, value in fields.items() if value is not None}
    written = {_LIMITS.get(name, name): name if name in single else f"workload.{name}" for name in fields}
    # Whether they agree with means and rates is known only when everything is.
    apart = {name: checked(kind, stated.pop(name), written[name]) for name, kind in _APART if name in stated}
    block = checked(WorkloadBlock, {**_LENGTHS, **stated}, "workload", written)
    return {name: getattr(block, name) for name in stated} | apart


def traced(trace: TraceArgument) -> Trace:
    """A trace, or what is read of the path of one.

    Raises:
        InputError: it cannot be read.
    """
    expect(trace, (Trace, str, Path), "trace", "the path of a file is expected, or what read_trace made of it")
    return trace if isinstance(trace, Trace) else read_trace(Path(trace))


def said_trace(trace: Trace) -> dict[str, Any]:
    """The fields of `Said` that a trace states."""
    said = SaidTrace(
        description=trace.describe(),
        request_rate=trace.planned_rate_per_s,
        peak=trace.peak,
        arrivals=trace.arrivals,
    )
    stated = {"trace": said, "lengths": trace.lengths}
    return stated if trace.prefixes is None else {**stated, "prefixes": trace.prefixes}


def _precision(precision: PrecisionArgument | Sequence[PrecisionArgument] | None) -> dict[str, Any]:
    if precision is None:
        return {}
    if isinstance(precision, str):
        return said_weights(precision)
    if isinstance(precision, Sequence):
        return _choice(precision)
    stated = precision.model_dump() if isinstance(precision, PrecisionBlock) else dict(precision)
    _refuse_unknown(stated, _PRECISIONS, "field of a precision")
    return stated


def _choice(precisions: Sequence[PrecisionArgument]) -> dict[str, Any]:
    """Several precisions to choose from; a list of one states it."""
    for choice in precisions[: _MOST_PRECISIONS + 1]:
        expect(choice, (str, PrecisionBlock, Mapping), "precision", "the name of a format, or all three, is expected")
    listed = [_precision(choice) for choice in precisions[: _MOST_PRECISIONS + 1]]
    if not 1 <= len(listed) <= _MOST_PRECISIONS or any("precisions" in fields for fields in listed):
        raise InputError(f'precision: a list holds one to {_MOST_PRECISIONS} formats, each by itself; or write "any"')
    if len(listed) == 1:
        return listed[0]
    named = tuple(checked(StatedPrecision, fields, "precision") for fields in listed)
    return {"precisions": OpenPrecisions(named=named)}


def _relaxations(names: Iterable[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    expect(names, Iterable, "relaxations", "names are expected")
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        expect(name, str, "relaxations", "names are expected")
    return tuple(dict.fromkeys(listed)) or None


def said_engine(text: str | None) -> dict[str, str]:
    """The fields of `Said` that `NAME`, `NAME==VERSION` or `none` (a plan on paper) states.

    Raises:
        InputError: it is no engine that is known.
    """
    expect(text, (str, NoneType), "engine", "a name is expected")
    if text is None:
        return {}
    name, _, version = (part.strip() for part in text.partition("=="))
    if known_engine(name) is None and name != NO_ENGINE:
        raise InputError(f"engine {name[:80]!r} is none of {', '.join(KNOWN)}, {NO_ENGINE}")
    return {"engine": name, **({"engine_version": version} if version else {})}
