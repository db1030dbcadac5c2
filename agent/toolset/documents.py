"""Tools' answers about documents of the desk: by handle, in counts and findings, never the document itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ...tools.plan.describe import describe
from ...tools.plan.document import Strategy
from ...tools.plan.reader import read_document
from ...tools.plan.view import as_list, as_mapping
from ...tools.validate import validate
from ..loop.feedback import Level, findings_told
from ..loop.judge import check_size, check_written_out
from ..loop.places import parents_first, right_already
from .tool import Bench

_MOST_STAGES = 8


def summary(document: Mapping[str, Any]) -> dict[str, Any]:
    """The strategy of a document in words, its size, and the ids of its first stages, which imply the others."""
    workload = as_mapping(document.get("workload"))
    content: dict[str, Any] = {
        "plan": _strategy_in_words(document.get("strategy")),
        "concurrency": workload.get("concurrency"),
        "nodes": len(as_list(document.get("nodes"))),
        "edges": len(as_list(document.get("edges"))),
    }
    return {name: value for name, value in content.items() if value is not None}


def outline(document: Mapping[str, Any]) -> list[str]:
    """The pipeline stages of a built document with their layers, for one replica each: ids that an edit may name."""
    nodes = [as_mapping(node) for node in as_list(document.get("nodes"))]
    phases = {str(node.get("id")): str(node.get("phase")) for node in nodes if node.get("type") == "PhaseNode"}
    lines: dict[str, str] = {}
    for node in nodes:
        if node.get("type") == "PipelineStageNode":
            layers = f"{phases.get(str(node.get('parent')))} layers {node.get('layers')}"
            lines.setdefault(layers, f"{node.get('id')}: {layers}")
    stages = list(lines.values())
    return stages if len(stages) <= _MOST_STAGES else [*stages[:_MOST_STAGES], "and so on"]


def _strategy_in_words(block: Any) -> str | None:
    try:
        return describe(Strategy.model_validate(block))
    except ValidationError:
        return None


def validated(document: Mapping[str, Any], level: Level) -> dict[str, Any]:
    """Whether a document is valid, and the feedback of `level` on its findings."""
    if level == "none":
        return {}
    report = validate(document)
    content: dict[str, Any] = {"valid": report.valid}
    if level != "bit":
        content |= {"errors": report.errors, "warnings": report.warnings}
    warnings = [f"{fault.rule}: {fault.message}" for fault in report.violations if fault.severity == "warning"]
    if report.valid and warnings and level in ("full", "patch"):
        content["warned"] = warnings[:4]
    violations = parents_first(report.violations, document)
    return content | findings_told(violations, right_already(violations, document), level)


def kept(bench: Bench, document: Mapping[str, Any]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Put a document with the request's blocks on the desk: its handle, the document there, and what was corrected.

    Raises:
        InputError: the desk is full, or the document is larger than any plan for this hardware.
    """
    question = bench.desk.question
    read = read_document(document)
    raw = document if read.raw is None else read.raw
    check_written_out(read)
    check_size(bench.desk, raw)
    pinned = question.pinned(bench.desk.hidden(raw))
    return bench.desk.put(pinned), pinned, question.contradictions(raw)
