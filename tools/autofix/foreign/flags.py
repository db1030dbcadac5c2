"""Reads launch commands as the strategy that they start, and loose flags and shell settings as an object."""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import Any

from ...catalog.models import find_model
from ...engines.names import ENGINES
from ...errors import InputError
from ...importing.deployment import deployment_of
from ...importing.group import stated_of
from ...importing.launch import is_launch, read_launch
from ...plan.document import PHASES
from ...plan.placement import is_disaggregated

_FLAG = re.compile(
    r"(?<![\w-])--([a-z][a-z0-9_-]{1,60})(?:[ \t]*=[ \t]*|[ \t]+(?!--))?(\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'"
    r"|[^\s\"'-][^\s\"']{0,200})?"
)
_SHORT_FLAG = re.compile(r"(?<![\w-])-(tp|pp|dp|dcp)(?:=|[ \t]+)(\d{1,6})(?![\w.])")
_SHORT_SWITCH = re.compile(r"(?<![\w-])-ep(?=[ \t]+-|[ \t]*$)", re.MULTILINE)
# Flags that take no value: a word after them belongs to the sentence around.
_SWITCH = re.compile(r"(?:enable|disable|no|use|trust)[-_]")
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SETTING = re.compile(
    r"^[ \t]{0,20}(?:export[ \t]+)?([A-Z][A-Z0-9_]{1,40})="
    r"([^\s\"'$]{1,200}|\"[^\s\"'$]{1,200}\"|'[^\s\"']{1,200}')[ \t]*$",
    re.MULTILINE,
)
_SERVE = re.compile(r"\b(vllm|sglang|trtllm)[ \t-]serve[ \t]+([^\s-]\S{0,200})")
_ENGINES = {
    "vllm": re.compile(r"\bvllm[ .]"),
    "sglang": re.compile(r"\bsglang[ .]"),
    "trtllm": re.compile(r"\btrtllm-"),
}


def command_flags(text: str) -> list[tuple[str, str]]:
    """Every flag of `text` with its value as written, less quotes."""
    return [(name, value.strip("\"'")) for name, value in (*_FLAG.findall(text), *_SHORT_FLAG.findall(text))]


def flags_in(text: str) -> dict[str, Any]:
    """Flags of engines' command lines and settings of shells in `text`, as an object."""
    joined = text.replace("\\\n", " ")
    flags: dict[str, Any] = {name.lower(): value.strip("\"'") for name, value in _SETTING.findall(joined)}
    for name, plain in command_flags(joined):
        if not plain.startswith("$"):
            setting = _BOOLEANS.get(plain.lower(), True) if _SWITCH.match(name) else plain or True
            flags.setdefault(name, setting)
    if flags and _SHORT_SWITCH.search(joined):
        flags.setdefault("enable-expert-parallel", True)
    if serve := _SERVE.search(joined):
        flags["model"] = serve[2]
    engine = next((name for name, pattern in _ENGINES.items() if pattern.search(joined)), None)
    if engine is not None and flags:
        flags["engine"] = engine
    flags.pop("workers", None)  # processes of a converter or a server, not replicas
    for dtype in ("bf16", "fp16", "fp8"):
        if flags.pop(dtype, None) is not None:
            flags["dtype"] = dtype
    return flags


def launched_in(text: str) -> dict[str, Any] | None:
    """The strategy that the launch commands of `text` start, in the words of plans; `None` if it is not known.

    That is if no engine is started, servers of a phase differ, or the model, which it depends on, is not known.
    """
    if not is_launch(text):
        return None
    try:
        launch = read_launch(text)
        deployment = deployment_of(launch, find_model(launch.model or "").architecture())
        stated = stated_of(launch.commands[0].flags)
    except InputError:
        return None
    if not launch.commands[0].process.words:  # a file of options, which says more than its commands would
        return None
    strategy, known = deployment.strategy, ENGINES[launch.engine].vocabulary.concepts
    beside = {name: value for name, value in flags_in(text).items() if name.replace("_", "-") not in known}
    settings = {
        "memory_utilization": stated.memory_share,
        "weights": stated.weights,
        "kv_cache": stated.kv_cache,
        "activations": stated.activations,
    }
    phases = {phase: getattr(strategy, phase).model_dump(exclude_none=True) for phase in PHASES}
    if is_disaggregated(strategy):
        groups = iter(deployment.devices)
        placed = {phase: list(chain(*islice(groups, degrees["replicas"]))) for phase, degrees in phases.items()}
        sides = {f"{phase} workers": {**degrees, "devices": placed[phase]} for phase, degrees in phases.items()}
    else:
        sides = {"strategy": {"dp": strategy.dp, **phases}}
    plain = {name: value for name, value in settings.items() if value is not None}
    return {**beside, **plain, "model": launch.model, "engine": launch.engine, **sides}
