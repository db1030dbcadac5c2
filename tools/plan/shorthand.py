"""Reads a strategy in the shorthand that `describe` writes: `DP2 of PP2 × TP8`, `1 prefill of … + 2 decode of …`.

It reads nothing else: what is not wholly of this form gives `None`, never a part of it.
"""

from __future__ import annotations

import re
from typing import Any

from .describe import NAMES

_NAMES = {name.lower(): field for field, name in NAMES.items()}
_DEGREE = re.compile(r"(attention-dp|kv-sp|expert-tp|ffn-tp|pp|sp|ep|tp)(\d{1,6})", re.IGNORECASE)
# An x joins between degrees alone: there is one in "expert-TP".
_JOIN = re.compile(r"\s*[×*,]\s*|\s+x\s+|(?<=\d)x(?=[a-z])|\s+", re.IGNORECASE)
_WHOLE = re.compile(r"(?:DP(?P<dp>\d{1,6}) of )?(?P<shape>[^()]+?)(?: \(layers (?P<cuts>[^()]+)\))?", re.IGNORECASE)
_APART = re.compile(
    r"(?P<prefills>\d{1,6}) prefill of (?P<prefill>[^+]+) \+ (?P<decodes>\d{1,6}) decode of (?P<decode>[^+]+)",
    re.IGNORECASE,
)
_TWO = re.compile(r"prefill (?P<prefill>.+), decode (?P<decode>.+)", re.IGNORECASE)
_RUN = re.compile(r"(?:(\d{1,4})×)?(\d{1,4})")
_ONE_DEVICE = re.compile(
    r"(?:(?:a )?single|one|1) (?:device|gpu|card)|(?:单|一|1) ?(?:张|块|个)? ?(?:卡|gpu)", re.IGNORECASE
)
_LONGEST = 400
# Degrees that a phase has although it does not name them: they are never those of the other phase.
_ALONE = {"pp": 1, "sp": 1, "tp": 1}


def read_shorthand(text: str) -> dict[str, Any] | None:
    """The degrees that `text` names, for each phase; EP and the FFN's TP only where they are named."""
    text = " ".join(text.split())
    whole = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    if whole is None:
        return None
    found = _apart(whole["shape"]) if whole["dp"] is None else None
    found = found or _together(whole["shape"], whole["dp"])
    return found if found is None or whole["cuts"] is None else _cut(found, whole["cuts"])


def _together(shape: str, dp: str | None) -> dict[str, Any] | None:
    two = _TWO.fullmatch(shape)
    phases = (two["prefill"], two["decode"]) if two is not None else (shape, shape)
    prefill, decode = (_phase(one) for one in phases)
    if prefill is None or decode is None:
        return None
    found: dict[str, Any] = {"prefill": prefill, "decode": decode}
    return found if dp is None else {"dp": int(dp), **found}


def _apart(shape: str) -> dict[str, Any] | None:
    match = _APART.fullmatch(shape)
    prefill, decode = (_phase(match["prefill"]), _phase(match["decode"])) if match else (None, None)
    if match is None or prefill is None or decode is None:
        return None
    return {
        "prefill": {**prefill, "replicas": int(match["prefills"])},
        "decode": {**decode, "replicas": int(match["decodes"])},
    }


def _phase(text: str) -> dict[str, Any] | None:
    if _ONE_DEVICE.fullmatch(text.strip()):
        return dict(_ALONE)
    found: dict[str, Any] = {}
    for part in _JOIN.split(text.strip()):
        match = _DEGREE.fullmatch(part)
        name = _NAMES[match[1].lower()] if match is not None else ""
        if match is None or name in found:
            return None
        found[name] = int(match[2])
    return {**_ALONE, **found} if found else None


def _cut(found: dict[str, Any], cuts: str) -> dict[str, Any] | None:
    """`found` with the layers of each stage, in each phase that has as many stages."""
    for text in cuts.split(" / "):
        layers: list[int] = []
        for run in text.split("+"):
            match = _RUN.fullmatch(run.strip())
            if match is None or int(match[1] or 1) > 1000:
                return None
            layers += [int(match[2])] * int(match[1] or 1)
        for phase in (found["prefill"], found["decode"]):
            if phase["pp"] == len(layers) and "stage_layers" not in phase:
                phase["stage_layers"] = layers
    return found
