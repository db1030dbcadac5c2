"""Any document is judged; a valid one is usable and fits its hardware, an invalid one is mended.

Ids, layers, devices and memory are counted here, independently of the code under attack.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import shardwright
from shardwright import FixResult, ValidationReport
from shardwright.agent.fix_api import fixed
from shardwright.agent.report.fix import render_fix
from shardwright.agent.report.validation import render_validation
from shardwright.tools.autofix.autofix import Chosen, read_text_anyhow
from shardwright.tools.autofix.result import certificate
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.draw.svg import svg
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.reader import read_text
from shardwright.tools.verify import verify

from .probe import Case, FailedError, Probe, Refused
from .seeds import seed_text

_DEVICE_LEAVES = ("ShardNode", "ExpertNode", "EmbeddingNode", "LMHeadNode")


def check_document(case: Case, probe: Probe) -> None:
    """Do with the document of `case` everything that the package does with documents."""
    report = probe.must(
        "validate", lambda: shardwright.validate(case.text), "validate reports whatever a document holds"
    )
    _each(probe, lambda: _printable(report, probe))
    raw = read_text(case.text).raw
    if report.valid and raw is not None:
        _check_valid(case, raw, probe)
    else:
        _check_invalid(case, raw, probe)


def _each(probe: Probe, *checks: Any) -> None:
    for check in checks:
        try:
            check()
        except FailedError:
            continue


def _printable(report: ValidationReport, probe: Probe) -> None:
    probe.call("validate --format json", lambda: report.model_dump_json(indent=2))
    probe.call(
        "validate --format text",
        lambda: render_validation(report, title="plan.json", width=100).encode(errors="replace"),
    )


def _check_valid(case: Case, raw: dict[str, Any], probe: Probe) -> None:
    for fault in impossible(raw):
        probe.wrong("validate", f"valid, though {fault}", fault)
    _each(
        probe,
        lambda: _check_estimate(case.text, probe),
        lambda: probe.must("expand prefill", lambda: _expanded(raw, "prefill"), "the plan is valid"),
        lambda: probe.must("expand decode", lambda: _expanded(raw, "decode"), "the plan is valid"),
        lambda: probe.must("compare", lambda: shardwright.compare(case.text, seed_text(case.seed)), "both are valid"),
        lambda: _check_picture(raw, probe),
        lambda: probe.must("content_hash", lambda: content_hash(raw), "the plan is valid"),
        lambda: _check_unchanged(case.text, raw, probe),
    )


def _expanded(raw: dict[str, Any], phase: Any) -> str:
    return expand_plan(raw, phase, fold=True).model_dump_json()


def _check_estimate(text: str, probe: Probe) -> None:
    figures = probe.must("estimate", lambda: shardwright.estimate(text), "the plan is valid")
    written = probe.must("estimate --format json", lambda: json.loads(figures.model_dump_json()), "it was estimated")
    for path, value in _numbers(written):
        if not math.isfinite(value) or value < 0:
            probe.wrong("estimate", f"a figure is {value}", path)
            break
    for device in figures.memory.per_device:
        if device.total_bytes > device.usable_bytes:
            probe.wrong("estimate", "valid, though a device holds more than it has", device)
            break


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, value
    for key, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _numbers(member, f"{path}/{key}")


def _check_picture(raw: dict[str, Any], probe: Probe) -> None:
    import xml.etree.ElementTree as ET

    text = probe.must("draw", lambda: svg(raw), "any document can be drawn")
    probe.call("draw: XML", lambda: ET.fromstring(text.encode()))


def _check_unchanged(text: str, raw: dict[str, Any], probe: Probe) -> None:
    result = _fixed(text, probe)
    if not result.valid or result.fixes or result.document != raw:
        probe.wrong("autofix", "changes what is valid", [fix.description for fix in result.fixes])


def _fixed(text: str, probe: Probe) -> FixResult:
    """The repair of `text`; it is printed in both forms and its certificate is verified."""

    def repair() -> FixResult:
        return fixed(read_text_anyhow(text), None, Chosen())

    result = probe.must("autofix", repair, "autofix answers whatever a document holds")
    probe.call("fix --format json", lambda: result.model_dump_json(indent=2))
    probe.call("fix --format text", lambda: render_fix(result, title="plan.json", width=100).encode(errors="replace"))
    if result.read is None:
        # Nothing was read: there is nothing to certify.
        return result
    proved = probe.must("certificate", lambda: certificate(text, result), "there is a result")
    proof = probe.must("verify", lambda: verify(json.loads(json.dumps(proved))), "the certificate is as it was made")
    if not proof.confirmed:
        wrong = [check.what for check in proof.checks if not check.holds]
        probe.wrong("verify", "does not confirm a certificate as it was made", wrong)
    if proof.valid != result.valid:
        messages = [violation.message for violation in result.remaining]
        probe.wrong("verify", f"says valid is {proof.valid}, autofix said {result.valid}", messages)
    return result


def _check_invalid(case: Case, raw: dict[str, Any] | None, probe: Probe) -> None:
    _each(
        probe,
        lambda: _check_mended(case.text, probe),
        lambda: probe.call("estimate", lambda: shardwright.estimate(case.text)),
        lambda: probe.call("compare", lambda: shardwright.compare(case.text, seed_text(case.seed))),
        lambda: probe.must("content_hash", lambda: content_hash(raw), "any document has a hash"),
        lambda: _check_picture(raw or {}, probe),
        lambda: probe.call("expand prefill", lambda: _expanded(raw or {}, "prefill")),
    )


def _check_mended(text: str, probe: Probe) -> None:
    result = _fixed(text, probe)
    if not result.valid:
        if not (result.remaining or result.unfixed or result.infeasible or result.withheld):
            probe.wrong("autofix", "neither mends nor says why not", result.notes)
        return
    again = json.dumps(result.document)
    if not probe.must("validate", lambda: shardwright.validate(again), "it was mended").valid:
        probe.wrong("autofix", "what it calls valid is not", [fix.description for fix in result.fixes])
    for fault in impossible(result.document or {}):
        probe.wrong("autofix", f"calls it valid, though {fault}", fault)
    estimate = probe.call("estimate of the mended", lambda: shardwright.estimate(again))
    if isinstance(estimate, Refused):
        probe.wrong("autofix", "what it calls valid is refused by estimate", estimate.message)


def impossible(raw: dict[str, Any]) -> Iterator[str]:
    """Reasons, by counting, why a document cannot be a plan on its hardware."""
    hardware, nodes, edges = raw["hardware"], raw["nodes"], raw["edges"]
    if isinstance(hardware["accelerator"], str):
        try:
            find_accelerator(hardware["accelerator"])
        except ValueError:
            yield "its accelerator is in no catalogue"
    ids = Counter(node["id"] for node in nodes)
    if max(ids.values(), default=0) > 1:
        yield "two nodes have one id"
    if any(node["parent"] is not None and node["parent"] not in ids for node in nodes):
        yield "a parent is not there"
    if any(edge[end] not in ids for edge in edges for end in ("source", "target")):
        yield "an end of an edge is not there"
    used = {device for node in nodes for device in node.get("devices", ())}
    for device in used:
        node, gpu = (int(part[1:]) for part in device.split("."))
        if node >= hardware["nodes"] or gpu >= hardware["gpus_per_node"]:
            yield "it uses a device that there is not"
            break
    if len(used) != raw["strategy"]["gpu_count"]:
        yield "gpu_count is not the count of its devices"
    yield from _uncovered(raw)


def _uncovered(raw: dict[str, Any]) -> Iterator[str]:
    """The first branch whose stages, or stage whose blocks, do not hold each layer exactly once."""
    config = raw["model"]["config"]
    layers = config.get("num_hidden_layers") or config.get("text_config", {}).get("num_hidden_layers")
    by_parent: dict[Any, list[Any]] = {}
    for node in raw["nodes"]:
        by_parent.setdefault(node["parent"], []).append(node)
    for node in raw["nodes"]:
        if node["type"] not in ("PhaseNode", "PipelineStageNode"):
            continue
        kind = "PipelineStageNode" if node["type"] == "PhaseNode" else "LayerBlockNode"
        ranges = sorted(child["layers"] for child in by_parent.get(node["id"], ()) if child["type"] == kind)
        layers_held = [layer for first, last in ranges for layer in range(first, min(last, 10**5) + 1)]
        expected = (
            range(int(layers or 0)) if kind == "PipelineStageNode" else range(node["layers"][0], node["layers"][1] + 1)
        )
        if layers_held != list(expected):
            yield f"a {node['type']} does not hold each layer once"
            return
