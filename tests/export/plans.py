"""Plans of all kinds for exporters, built from the rows of `tests/cases/exports.json`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from shardwright.agent.planning.plan_of_words import plan_of_words
from shardwright.agent.stated.arguments import said_of_arguments
from shardwright.agent.stated.request import stated_intent
from shardwright.agent.stated.search_request import hardware_block, search_request
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export, Launch
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import ModelBlock, PhaseStrategy, Plan, Strategy
from shardwright.tools.plan.reader import read_document

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "cases" / "exports.json").read_text(encoding="utf-8"))
ENGINES = ("vllm", "sglang", "trtllm")
REFUSED = [(name, target) for name, targets in CASES["refused"].items() for target in targets]
EXPORTED = [(name, target) for name in CASES["plans"] for target in ENGINES if (name, target) not in REFUSED]
BY_MPIRUN = [(name, "trtllm") for name in CASES["by_mpirun"]]
WITHOUT_MPIRUN = [row for row in EXPORTED if row not in BY_MPIRUN]
OF_VLLM = [row for row in EXPORTED if row[1] == "vllm"]

# Programs that stand in for the engines: each records how it was called.
_PROGRAMS = ("vllm", "python3", "trtllm-serve", "mpirun")


def askable() -> Iterator[tuple[str, str, Launch]]:
    """Id, plan name and command of each launch whose engine's own parser can check it."""
    for name, target in EXPORTED:
        if target != "trtllm":
            for place, launch in enumerate(exported(name, target).launches):
                yield f"{name} > {target} #{place}", name, launch


@cache
def plan_named(name: str) -> Plan:
    """The plan of a row."""
    row = CASES["plans"][name]
    stated = {name: row[name] for name in ("precision", "serving") if name in row}
    return laid_out(row["words"], model=row["model"], hardware=row["hardware"], **stated)


def laid_out(words: str, *, model: str, hardware: str, **stated: Any) -> Plan:
    """The plan of the strategy `words` for a small load, as stated: nothing is searched for."""
    load = {"input_tokens": 1024, "output_tokens": 128, "concurrency": 8}
    intent = stated_intent(
        None, said_of_arguments(model, hardware, None, {**load, **stated}), stated={**load, **stated}
    )
    assert intent.hardware is not None and intent.hardware.nodes is not None
    architecture = read_architecture(intent.model.config)
    asked = search_request(intent, architecture, hardware_block(intent.hardware, intent.hardware.nodes))
    single = Strategy(dp=1, gpu_count=1, prefill=PhaseStrategy(), decode=PhaseStrategy())
    base = build_plan(
        BuildRequest(
            model=ModelBlock(name=intent.model.name, config=intent.model.config),
            hardware=asked.hardware,
            workload=asked.workload,
            precision=asked.precision,
            strategy=single,
            policy=asked.policy,
            serving=asked.serving,
        )
    )
    return plan_of_words(words, base)


@cache
def exported(name: str, target: str) -> Export:
    """The export of a row's plan."""
    return export(plan_named(name), target)


@cache
def formed(name: str, engine: str, form: str) -> Export:
    """The export of a row's plan, with `engine` named in it, to `form`."""
    return export({**plan_named(name).model_dump(mode="json"), "serving": {"engine": engine}}, form)


def hostile(model: str, name: str = "tensor") -> Plan:
    """The plan of a row with `model` as the name of its model."""
    plan = plan_named(name)
    return plan.model_copy(update={"model": plan.model.model_copy(update={"name": model})})


def devices_of(name: str) -> set[str]:
    """The devices of the plan of a row."""
    layout = layout_from_view(read_document(plan_named(name)).view)
    return {device for replica in layout.replicas for stage in replica.phases[0].stages for device in stage.devices}


def run_script(script: str, node: str, folder: Path, **environment: str) -> tuple[str, list[list[str]]]:
    """Standard error of the script and the calls that it makes, with stand-ins for the engines."""
    programs, calls = folder / "bin", folder / "calls"
    programs.mkdir(exist_ok=True)
    calls.unlink(missing_ok=True)
    for name in _PROGRAMS:
        program = programs / name
        program.write_text(
            '#!/bin/sh\n{ printf "%s\\0" "$CUDA_VISIBLE_DEVICES" "' + name + '" "$@"; printf "\\036"; } >> "$CALLS"\n'
        )
        program.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-c", script, "script", node],
        env={"PATH": path, "CALLS": str(calls), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    records = calls.read_text(encoding="utf-8").split("\x1e")[:-1] if calls.exists() else []
    return process.stderr, [line.split("\0")[:-1] for line in records]
