"""`inspect_dag`: the tools' answers on a document of the desk: findings, figures, a comparison, launch commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from ...tools.compare import compare
from ...tools.comparison.result import Comparison, LimitCheck
from ...tools.comparison.side import judged
from ...tools.engines.names import JUDGED, engine_of, engine_or_usual
from ...tools.errors import InputError
from ...tools.export.export import export, target_named
from ...tools.export.result import Launch
from ...tools.plan.elements import as_mapping, as_str
from ...tools.plan.performance import PerformanceEstimate
from ..loop.shorten import rounded
from .documents import summary, validated
from .tool import Answer, Arguments, Bench, Tool

_MOST_COMMANDS = 8
_MOST_CHANGES = 16


class InspectArguments(Arguments):
    """Which document, and what of it."""

    handle: str = Field(description="handle of a document")
    what: Literal["findings", "figures", "comparison", "commands"]
    other: str | None = Field(default=None, description="comparison: another handle; commands: vllm, sglang or trtllm")


def _findings(bench: Bench, arguments: InspectArguments) -> Answer:
    document = bench.desk.get(arguments.handle)
    return Answer({"handle": arguments.handle, **summary(document), **validated(document, bench.level)})


def _figures(bench: Bench, arguments: InspectArguments) -> Answer:
    """The performance model's figures of the document: times, rates, memory, cost, limits.

    Raises:
        InputError: no such document, or it is no plan document.
    """
    handle, intent = arguments.handle, bench.desk.question.intent
    document = bench.desk.get(handle)
    result = judged(document, handle, intent.calibration, intent.usd_per_gpu_hour)
    side = result.side
    content: dict[str, Any] = {"handle": handle, "plan": side.summary, "gpus": side.gpus}
    if bench.level != "none":
        content["valid"] = side.valid
    if result.estimate is None:
        return Answer({**content, "message": f"no estimate: {side.not_estimated}"}, "infeasible")
    limits = [_limit(check) for check in side.limits]
    content |= _parts(result.estimate)
    content["limits"] = limits or "none asked for"
    content["waits_for"] = {bind.phase: f"{bind.resource} ({bind.share_pct:.0f}%)" for bind in side.binds}
    return Answer(rounded(content))


def _parts(figures: PerformanceEstimate) -> dict[str, Any]:
    fullest = max(figures.memory.per_device, key=lambda device: device.total_bytes, default=None)
    content: dict[str, Any] = {
        "latency": figures.latency.model_dump(mode="json"),
        "throughput": figures.throughput.model_dump(mode="json"),
        "fullest_device": None if fullest is None else fullest.model_dump(mode="json"),
        "max_concurrency": figures.memory.max_concurrency,
        "cost": None if figures.cost is None else figures.cost.model_dump(mode="json", exclude_none=True),
        "calibration": {"profile": figures.calibration.profile},
        # 90% of measurements of such deployments lie inside.
        "ranges": figures.ranges.model_dump(mode="json", exclude_none=True) or None,
    }
    return {name: value for name, value in content.items() if value is not None}


def _limit(check: LimitCheck) -> dict[str, Any]:
    return check.model_dump(mode="json", exclude={"unit"}) | {"unit": check.unit}


def _comparison(bench: Bench, arguments: InspectArguments) -> Answer:
    """The document and `other` compared: their differences, their figures, and the better one.

    Raises:
        InputError: no such handle, or no second one.
    """
    if arguments.other is None:
        raise InputError("`other` is missing: the handle to compare with, such as `reference`")
    intent, desk = bench.desk.question.intent, bench.desk
    names = (arguments.handle, arguments.other)
    compared = compare(
        desk.get(names[0]),
        desk.get(names[1]),
        titles=names,
        calibration=intent.calibration,
        usd_per_gpu_hour=(intent.usd_per_gpu_hour, intent.usd_per_gpu_hour),
    )
    return Answer(rounded(_compared(compared, names)))


def _compared(compared: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    sides = {
        letter: {"handle": name, "plan": side.summary, "valid": side.valid}
        for letter, name, side in zip("AB", names, (compared.a, compared.b), strict=True)
    }
    undecided = "undecided: the difference is within the error of the figures"
    better = {"a": names[0], "b": names[1], "undecided": undecided}.get(compared.better or "", compared.better)
    return {
        **sides,
        "better": better or "undecided: one of them is not valid or cannot be compared",
        "verdict": list(compared.verdict),
        "differs": [[line.what, line.a, line.b] for line in (*compared.question, *compared.changes)][:_MOST_CHANGES],
        "figures": [
            [row.title, row.unit, row.a, row.b] for row in compared.figures if row.better != "same" and row.a != row.b
        ],
    }


def _commands(bench: Bench, arguments: InspectArguments) -> Answer:
    """The launch commands of the document for the engine `other`, else for the one that it names, else the usual one.

    Raises:
        InputError: no such document, or no such engine.
    """
    handle, engine = arguments.handle, arguments.other
    document = bench.desk.get(handle)
    if engine is not None and engine not in JUDGED:
        raise InputError(f"no engine {engine[:40]!r}: {', '.join(JUDGED)}")
    plan_engine = as_str(as_mapping(document.get("serving")).get("engine"))
    named = engine or engine_of(plan_engine) or engine_or_usual(plan_engine)
    exported = export(document, target_named(named))
    content: dict[str, Any] = {"handle": handle, "engine": f"{exported.engine} {exported.engine_version}"}
    if exported.refused:
        return Answer({**content, "refused": list(exported.refused), "nearest": exported.nearest}, "infeasible")
    more = len(exported.launches) - _MOST_COMMANDS
    content["commands"] = [_command(launch) for launch in exported.launches[:_MOST_COMMANDS]]
    if more > 0:
        content["more_commands"] = more
    files = {file.name: file.text for file in exported.files[:_MOST_COMMANDS]}
    return Answer({**content, **({"files": files} if files else {}), "mind": list(exported.remarks)})


def _command(launch: Launch) -> str:
    settings = [f"{name}={value}" for name, value in launch.environment.items()]
    return f"{launch.node}: {' '.join([*settings, shlex.join(launch.arguments)])}"


_WAYS: dict[str, Callable[[Bench, InspectArguments], Answer]] = {
    "findings": _findings,
    "figures": _figures,
    "comparison": _comparison,
    "commands": _commands,
}

INSPECT_DAG = Tool(
    name="inspect_dag",
    description=(
        "Look at a document: its findings; its figures with their parts, memory and limits; a comparison with another; "
        "the commands that start it."
    ),
    arguments=InspectArguments,
    run=lambda bench, arguments: _WAYS[arguments.what](bench, arguments),
)
