"""Proposals in foreign shapes, the meaning expected of each, and where a reading differs from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from shardwright.tools.autofix.foreign.reader import ReadProposal

FOLDER = Path(__file__).parents[2] / "cases" / "foreign"
_TABLES = ("expected.json", "tolerated.json", "figures.json", "unread.json")
# The block of a document that holds each expectation; `_compared` looks up all others in its own way.
_BLOCKS = {
    "accelerator": "hardware", "nodes": "hardware", "gpus_per_node": "hardware", "dp": "strategy",
    "gpu_count": "strategy",
    "weights": "precision", "kv_cache": "precision", "input_tokens": "workload", "output_tokens": "workload",
    "concurrency": "workload", "ttft_ms_max": "workload", "tpot_ms_max": "workload", "objective": "workload",
    "engine": "serving", "memory_utilization": "policy", "relaxations": "policy",
}  # fmt: skip


class Proposal(Struct, frozen=True):
    """One proposal as somebody wrote it, and what it says."""

    name: str
    text: str
    expected: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    @property
    def says_a_graph(self) -> bool:
        """Whether it says what runs where, and not only the degrees."""
        return bool(_GRAPH.keys() & self.expected.keys())


def table(name: str) -> Any:
    """The table of that file name in the folder of proposals."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def proposals() -> list[Proposal]:
    """Every proposal of the folder."""
    expected = table("expected.json")
    files = {path.stem: path for path in FOLDER.iterdir() if path.name not in _TABLES}
    assert files.keys() == expected.keys()
    return [Proposal(name, files[name].read_text(encoding="utf-8"), row) for name, row in sorted(expected.items())]


def differences(read: ReadProposal, expected: dict[str, Any]) -> list[str]:
    """Each place where the reading of a proposal differs from what is expected, as text."""
    document = read.document or {}
    return [
        f"{name}: {actual!r}, not {wanted!r}"
        for name, actual, wanted in _compared(document, expected, read)
        if actual != wanted
    ]


def _compared(document: dict[str, Any], expected: dict[str, Any], read: ReadProposal) -> Iterator[tuple[str, Any, Any]]:
    for name, wanted in expected.items():
        if name == "model":
            yield name, document.get("model", {}).get("name"), wanted
        elif name in _BLOCKS:
            yield name, document.get(_BLOCKS[name], {}).get(name), wanted
        elif name == "degrees":
            for phase, degrees in wanted.items():
                phase_strategy = document.get("strategy", {}).get(phase, {})
                yield phase, {degree: phase_strategy.get(degree) for degree in degrees}, degrees
        elif name == "absent":
            for path in wanted:
                yield path, _at(document if path == "hardware" else document.get("strategy", {}), path), None
        elif name == "not_understood":
            notes = " ".join(note.where for note in read.notes if note.kind == "not_understood")
            yield name, [path for path in wanted if f"/{path.replace('.', '/')}" in notes], wanted
        elif name == "says":
            notes = " ".join(note.what for note in read.notes)
            yield name, [words for words in wanted if words in notes], wanted
        else:
            yield name, _GRAPH[name](_Graph(document)), wanted


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


class _Graph:
    """The nodes of a document with their children, and the devices below each in the order of the document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.nodes: list[dict[str, Any]] = document.get("nodes", [])
        self.by_id = {node["id"]: node for node in self.nodes}

    def of_type(self, name: str) -> list[dict[str, Any]]:
        return [node for node in self.nodes if node["type"] == name]

    def devices(self, node: dict[str, Any]) -> list[str]:
        below = [child for child in self.nodes if child["parent"] == node["id"]]
        devices = [*node.get("devices", ()), *(device for child in below for device in self.devices(child))]
        return list(dict.fromkeys(devices))

    def phase(self, node: dict[str, Any]) -> str:
        while node["type"] != "PhaseNode":
            node = self.by_id[node["parent"]]
        return node["phase"]

    def stages(self) -> dict[str, list[Any]]:
        stages_by_phase: dict[str, list[Any]] = {}
        for node in self.of_type("PipelineStageNode"):
            stages_by_phase.setdefault(self.phase(node), []).append([*node["layers"], self.devices(node)])
        return stages_by_phase

    def experts(self) -> dict[str, list[int]]:
        return {
            node["devices"][0]: [
                expert
                for entry in node["experts"]
                for expert in ([entry] if isinstance(entry, int) else range(entry[0], entry[1] + 1))
            ]
            for node in self.of_type("ExpertNode")
        }


_GRAPH: dict[str, Callable[[_Graph], Any]] = {
    "devices": lambda graph: sorted({device for node in graph.nodes for device in node.get("devices", ())}),
    "stages": lambda graph: graph.stages(),
    "experts": lambda graph: graph.experts(),
    "replica_devices": lambda graph: [graph.devices(node) for node in graph.of_type("ReplicaNode")],
}
