"""Flags of engines' command lines and settings of shells, as an object; two commands may be the two sides of one plan.

A command that says that it is the prefill or the decode server of disaggregated serving is a side: by a flag, by the
role in its KV transfer, or by the comment above it. Of commands that say no such thing the first counts.
"""

from __future__ import annotations

import re
from typing import Any

from .lexicon import DEGREE_NAMES, PHASE_WORDS, concept_of

_FLAG = re.compile(
    r"(?<![\w-])--([a-z][a-z0-9_-]{1,60})(?:[ \t]*=[ \t]*|[ \t]+(?!--))?(\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'"
    r"|[^\s\"'-][^\s\"']{0,200})?"
)
_SHORT_FLAG = re.compile(r"(?<![\w-])-(tp|pp|dp|dcp)(?:=|[ \t]+)(\d{1,6})(?![\w.])")
_SHORT_SWITCH = re.compile(r"(?<![\w-])-ep(?=[ \t]+-|[ \t]*$)", re.MULTILINE)
# Flags that take no value: a word behind them is of the sentence around.
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
_LAUNCH = re.compile(
    r"(?:\bvllm[ \t]+serve\b|\b(?:vllm|sglang|trtllm|dynamo)[\w.]{0,60}[.](?:launch_server|api_server)\b"
    r"|\bdynamo[.](?:vllm|sglang|trtllm)\b|\btrtllm-serve\b)"
)
_SIDES = {
    "prefill": re.compile(
        r"--disaggregation-mode[= \t]+[\"']?(?:prefill|context)|kv_producer|--is-prefill-worker\b|--prefill-worker\b"
    ),
    "decode": re.compile(
        r"--disaggregation-mode[= \t]+[\"']?(?:decode|generation)|kv_consumer|--is-decode-worker\b|--decode-worker\b"
    ),
}
_NAMED = {phase: re.compile(rf"(?:{words})", re.IGNORECASE) for phase, words in PHASE_WORDS.items()}
_VISIBLE = re.compile(r"\b(?:CUDA|HIP|ROCR|ASCEND_RT)_VISIBLE_DEVICES=[\"']?([\d,]{1,2000})")
_MOST_COMMANDS = 64


def command_flags(text: str) -> list[tuple[str, str]]:
    """Every flag of `text` with its value as written, less quotes."""
    return [(name, value.strip("\"'")) for name, value in (*_FLAG.findall(text), *_SHORT_FLAG.findall(text))]


def flags_in(text: str) -> dict[str, Any]:
    """Flags of engines' command lines and settings of shells in `text`, as an object."""
    joined = text.replace("\\\n", " ")
    flags: dict[str, Any] = {name.lower(): value.strip("\"'") for name, value in _SETTING.findall(joined)}
    for name, plain in command_flags(joined):
        if not plain.startswith("$"):
            read = _BOOLEANS.get(plain.lower(), True) if _SWITCH.match(name) else plain or True
            flags.setdefault(name, read)
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


def sides_in(text: str) -> dict[str, Any] | None:
    """The commands of `text` by the side that each says it is; `None` where not all do, or not both sides are there."""
    joined = text.replace("\\\n", " ")
    starts = [match.start() for match in _LAUNCH.finditer(joined)][:_MOST_COMMANDS]
    if len(starts) < 2:
        return None
    sides: dict[str, list[dict[str, Any]]] = {}
    for start, next_start in zip(starts, [*starts[1:], len(joined)], strict=True):
        begin = joined.rfind("\n", 0, start) + 1
        command = joined[begin:next_start].partition("\n")[0]
        side = _side_of(command, joined[joined.rfind("\n", 0, max(0, begin - 1)) + 1 : begin])
        if side is None:
            return None
        flags = flags_in(command)
        if devices := _VISIBLE.search(command):
            flags["devices"] = devices[1]
            flags.pop("cuda_visible_devices", None)
        sides.setdefault(side, []).append(flags)
    return _as_sides(sides) if len(sides) == 2 else None


def _side_of(command: str, before: str) -> str | None:
    """The side that a command is: what it says itself counts before the line above it."""
    for patterns, words in ((_SIDES, command), (_NAMED, before)):
        phases = [phase for phase, pattern in patterns.items() if pattern.search(words)]
        if len(phases) == 1:
            return phases[0]
    return None


def _as_sides(sides: dict[str, list[dict[str, Any]]]) -> dict[str, Any] | None:
    """One object with a server of each side, and how many of it there are; `None` where those of a side differ."""
    servers: dict[str, Any] = {}
    used: list[str] = []
    for side, commands in sides.items():
        names = {name for command in commands for name in command if concept_of(name) in DEGREE_NAMES}
        if any(command.get(name) != commands[0].get(name) for command in commands for name in names):
            return None
        devices = [device for command in commands for device in command.get("devices", "").split(",") if device]
        used += devices
        servers[f"{side} workers"] = {**commands[0], "replicas": len(commands), "devices": ",".join(devices)}
    if len(set(used)) < len(used):
        used = []  # numbers of different machines
    for server in servers.values():
        if not used or not server["devices"]:
            del server["devices"]
    models = {str(command["model"]) for commands in sides.values() for command in commands if "model" in command}
    return {**servers, **({"model": models.pop()} if len(models) == 1 else {})}
