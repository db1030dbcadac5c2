"""Stages in lines of words: a drawn tree, an outline of bullets, the labels of a Mermaid flowchart.

A line counts where it names a stage and its layers ("Stage 0: layers 0-39, GPUs 0-3"); the phase is that of the lines
above it, or of the nodes that lead to it. Outlines of several replicas, and charts in which a stage has no one phase,
are left alone.
"""

from __future__ import annotations

import re
from typing import Any

from .degree_words import degrees_in_prose
from .lexicon import PHASE_WORDS, folded

_MOST_CHARS = 50_000
_MOST_STAGES = 1_000
_LINE = re.compile(r"^[\s\u2500-\u257f|+`*>#.-]{0,80}(?:\d{1,2}[.)]\s)?\*{0,2}(?P<words>\S[^\n]{0,400})$", re.MULTILINE)
_PHASE = re.compile(
    rf"(?:(?P<prefill>{PHASE_WORDS['prefill']})|(?P<decode>{PHASE_WORDS['decode']}))(?![A-Za-z])", re.IGNORECASE
)
_REPLICA = re.compile(r"replica\s?#?(\d{1,6})", re.IGNORECASE)
_STAGE = re.compile(
    r"(?:(?:pipeline|pp|(?P<phase>prefill|decode))[ _-]?)?stage[ _]?#?(?P<index>\d{1,5})\b(?P<rest>.{1,300})",
    re.IGNORECASE,
)
_LAYERS = re.compile(r"layers?\s?\[?(\d{1,6})\s?(?:-|\u2013|to|\.\.|,)\s?(\d{1,6})", re.IGNORECASE)
_DEVICES = re.compile(
    r"(?:gpus?|devices?|cuda)[\s:=]{0,2}\[?(\d{1,6}(?:\s?(?:-|\u2013|,)\s?\d{1,6}){0,300})\]?(?!\s?(?:gpus|cards))",
    re.IGNORECASE,
)
_CHART = re.compile(r"^\s{0,20}(?:flowchart|graph)\s{1,4}(?:TD|TB|BT|LR|RL)\b", re.MULTILINE)
_NODE = re.compile(
    r"\b(\w{1,60})\s?[\[({>]{1,2}\"?([^\"\]\[(){}\n]{1,200}(?:\([^()\n]{0,100}\)[^\"\]\[(){}\n]{0,100})?)"
)
_LINK = re.compile(
    r"^\s{0,40}(\w{1,60})[^\n]{0,240}?(?:-->|---|==>|\.->)(?:\|[^|\n]{0,80}\|)?\s?(\w{1,60})", re.MULTILINE
)


def outline_of(text: str) -> dict[str, Any] | None:
    """The stages of an outline or a flowchart by phase, with the degrees that its phases state; `None` without any."""
    text = folded(text[:_MOST_CHARS])
    return _chart(text) if _CHART.search(text) else _lines(text)


def _lines(text: str) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    phase, replicas = "", set[str]()
    for match in _LINE.finditer(text):
        words = match["words"]
        if (named := _PHASE.match(words)) is not None:
            phase = str(named.lastgroup)
            found.setdefault(phase, {}).update(_degrees(words))
        elif (replica := _REPLICA.match(words)) is not None:
            replicas.add(replica[1])
            phase = ""
        elif (stage := _stage(words)) is not None:
            stages: list[Any] = found.setdefault(stage.pop("phase", None) or phase, {}).setdefault("stages", [])
            stages.append(stage)
    return _whole(found) if len(replicas) < 2 else None


def _degrees(words: str) -> dict[str, int]:
    said = degrees_in_prose(words)
    return next(iter(said.values())) if len(said) == 1 else {}


def _stage(words: str) -> dict[str, Any] | None:
    """What a line says of a stage, where it says its layers."""
    named = _STAGE.match(words)
    layers = _LAYERS.search(named["rest"]) if named is not None else None
    if named is None or layers is None:
        return None
    devices = _DEVICES.search(named["rest"])
    stage: dict[str, Any] = {"index": int(named["index"]), "layers": [int(layers[1]), int(layers[2])]}
    stage |= _degrees(named["rest"])
    if named["phase"]:
        stage["phase"] = named["phase"].lower()
    return stage if devices is None else {**stage, "devices": devices[1].replace("\u2013", "-")}


def _chart(text: str) -> dict[str, Any] | None:
    """The stages among the labels of a flowchart, each in the phase that is nearest upstream of it."""
    labels = {name: label.strip() for name, label in _NODE.findall(text)}
    above: dict[str, list[str]] = {}
    for source, target in _LINK.findall(text):
        above.setdefault(target, []).append(source)
    phases = {
        name: str(match.lastgroup) for name, label in labels.items() if (match := _PHASE.match(label)) is not None
    }
    found: dict[str, Any] = {phase: _degrees(labels[name]) for name, phase in phases.items()}
    for name, label in labels.items():
        stage = _stage(label)
        if stage is None:
            continue
        phase = stage.pop("phase", None) or _upstream(name, above, phases)
        if phase is None:
            return None
        found.setdefault(phase, {}).setdefault("stages", []).append(stage)
    return _whole(found)


def _upstream(name: str, above: dict[str, list[str]], phases: dict[str, str]) -> str | None:
    """The one phase that is nearest upstream of a node; `None` where there are two, or none."""
    seen, level = {name}, [name]
    while level:
        level = [source for node in level for source in above.get(node, ()) if source not in seen]
        seen.update(level)
        named = {phases[node] for node in level if node in phases}
        if named:
            return named.pop() if len(named) == 1 else None
    return None


def _whole(found: dict[str, Any]) -> dict[str, Any] | None:
    """What was found, where it holds stages: those of no phase stand for both."""
    stages = [stage for part in found.values() for stage in part.get("stages", ())]
    if not 1 <= len(stages) <= _MOST_STAGES:
        return None
    plain = found.pop("", {})
    return {**plain, **{phase: part for phase, part in found.items() if part}}
