"""Plans of all kinds for exporters: the rows of `tests/cases/exports.json`, laid out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import shardwright
from shardwright.agent.plan_of_words import plan_of_words
from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export, Launch
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.document import Plan
from shardwright.tools.plan.reader import read_document

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "cases" / "exports.json").read_text(encoding="utf-8"))
ENGINES = ("vllm", "sglang", "trtllm")
REFUSED = [(name, target) for name, targets in CASES["refused"].items() for target in targets]
EXPORTED = [(name, target) for name in CASES["plans"] for target in ENGINES if (name, target) not in REFUSED]
BY_MPIRUN = [(name, "trtllm") for name in CASES["by_mpirun"]]
WITHOUT_MPIRUN = [row for row in EXPORTED if row not in BY_MPIRUN]
OF_VLLM = [row for row in EXPORTED if row[1] == "vllm"]

# Programs that stand for the engines: each writes down how it was called.
_PROGRAMS = ("vllm", "python3", "trtllm-serve", "mpirun")


def askable() -> Iterator[tuple[str, str, Launch]]:
    """The commands of engines whose own code can be asked for them: an id, the plan's name, and the command."""
    for name, target in EXPORTED:
        if target != "trtllm":
            for place, launch in enumerate(exported(name, target).launches):
                yield f"{name} > {target} #{place}", name, launch


@cache
def plan_named(name: str) -> Plan:
    """The plan of a row."""
    row = CASES["plans"][name]
    stated = {name: row[name] for name in ("precision", "serving") if name in row}
    base = shardwright.plan(
        model=row["model"], hardware=row["hardware"], input_tokens=1024, output_tokens=128, concurrency=8, **stated
    )
    assert base.plan is not None
    return plan_of_words(row["words"], base.plan)


@cache
def exported(name: str, target: str) -> Export:
    """The plan of a row, exported."""
    return export(plan_named(name), target)


@cache
def formed(name: str, engine: str, form: str) -> Export:
    """The plan of a row in a form, as one that names the engine."""
    return export({**plan_named(name).model_dump(mode="json"), "serving": {"engine": engine}}, form)


def hostile(model: str, name: str = "tensor") -> Plan:
    """The plan of a row with a model of this name."""
    plan = plan_named(name)
    return plan.model_copy(update={"model": plan.model.model_copy(update={"name": model})})


def devices_of(name: str) -> set[str]:
    """The devices of the plan of a row."""
    layout = layout_from_view(read_document(plan_named(name)).view)
    return {device for replica in layout.replicas for stage in replica.phases[0].stages for device in stage.devices}


def run_script(script: str, node: str, folder: Path, **environment: str) -> tuple[str, list[list[str]]]:
    """What the script says, and the calls that it makes, with programs in place of the engines."""
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
    done = subprocess.run(
        ["bash", "-c", script, "script", node],
        env={"PATH": path, "CALLS": str(calls), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = calls.read_text(encoding="utf-8").split("\x1e")[:-1] if calls.exists() else []
    return done.stderr, [line.split("\0")[:-1] for line in said]
