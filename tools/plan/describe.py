"""Writes and reads a strategy in the field's shorthand, `DP2 × PP2 × TP8`, each phase apart if they differ.

Only a text that is wholly of this form is read; any other gives `None`. The family of a strategy is the kinds of
parallelism that it combines: `DP × PP × TP`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from .document import PhaseStrategy, PrecisionBlock, Strategy
from .placement import is_disaggregated

# Degrees of a phase in the shorthand, in its order, and as kinds of parallelism; the FFN's TP is none.
NAMES = {
    "pp": "PP", "sp": "SP", "ep": "EP", "attention_dp": "attention-DP", "kv_sp": "KV-SP", "tp": "TP",
    "tp_expert": "expert-TP", "tp_ffn": "FFN-TP",
}  # fmt: skip
_KINDS = {
    "pp": "PP", "sp": "SP", "ep": "EP", "attention_dp": "attention DP", "kv_sp": "KV-SP", "tp": "TP",
    "tp_expert": "TP in experts",
}  # fmt: skip


def number(value: float) -> str:
    """`value` to four significant figures, without an exponent from 1,000 to 10^9."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def billed_text(gpus: int) -> str:
    """A sentence on how many GPUs are paid for if not all of them are used, and why."""
    return f"{gpus:,} GPUs billed: nodes are rented whole"


def describe_phase(phase: PhaseStrategy, *, has_split_ffn: bool | None = None) -> str:
    """The degrees of one phase above 1, and the FFN's TP if it is not attention's.

    `has_split_ffn`: whether the model has a dense FFN or a shared expert; if unknown (`None`), a strategy that splits
    no experts counts as one of a dense model.
    """
    if has_split_ffn is None:
        has_split_ffn = phase.ep == (phase.tp_expert or 1) == 1
    parts = [f"{NAMES[name]}{degree}" for name in _KINDS if (degree := getattr(phase, name) or 1) > 1]
    if phase.tp_ffn != phase.tp and (phase.tp_ffn > 1 or has_split_ffn):
        parts.append(f"{NAMES['tp_ffn']}{phase.tp_ffn}")
    return _joined(parts)


def describe(strategy: Strategy, *, has_split_ffn: bool | None = None) -> str:
    """The whole strategy on one line, without the number of GPUs; `has_split_ffn` as in `describe_phase`."""
    prefill, decode = (
        describe_phase(phase, has_split_ffn=has_split_ffn) for phase in (strategy.prefill, strategy.decode)
    )
    cuts = dict.fromkeys(text for text in map(_cut, (strategy.prefill, strategy.decode)) if text)
    return _shape(strategy, prefill, decode) + (f" (layers {' / '.join(cuts)})" if cuts else "")


def family(strategy: Strategy) -> str:
    """The kinds of parallelism of `strategy`, each phase apart if a replica serves only one."""
    prefill, decode = _kinds(strategy.prefill), _kinds(strategy.decode)
    if is_disaggregated(strategy):
        return f"prefill {_joined(prefill)} + decode {_joined(decode)}"
    return _joined((*(("DP",) if strategy.dp > 1 else ()), *dict.fromkeys((*prefill, *decode))))


def precision_name(precision: PrecisionBlock) -> str:
    """Number formats for a table: `fp8`, and unusual ones of cache and activations: `fp8 KV-fp8`, `int4 A-bf16`."""
    parts: list[str] = [precision.weights]
    if precision.activations != precision.weights:
        parts.append(f"A-{precision.activations}")
    if precision.kv_cache not in ("bf16", "fp16"):
        parts.append(f"KV-{precision.kv_cache}")
    return " ".join(parts)


def in_format(precision: PrecisionBlock | None) -> str:
    """The end of a strategy in words, ` in fp8`; empty for `None`."""
    return "" if precision is None else f" in {precision_name(precision)}"


def _kinds(phase: PhaseStrategy) -> list[str]:
    """The kinds of parallelism of a phase; the FFN's TP counts as TP."""
    kinds = {kind: getattr(phase, name) or 1 for name, kind in _KINDS.items()} | {"TP": max(phase.tp, phase.tp_ffn)}
    return [kind for kind, degree in kinds.items() if degree > 1]


def _joined(parts: Iterable[str]) -> str:
    return " × ".join(parts) or "one device"


def _cut(phase: PhaseStrategy) -> str:
    """The layers of each stage, runs folded: `2×12+8`; empty for the even cut."""
    runs = [(layers, len(list(run))) for layers, run in groupby(phase.stage_layers or ())]
    return "+".join(f"{count}×{layers}" if count > 1 else str(layers) for layers, count in runs)


def _shape(strategy: Strategy, prefill: str, decode: str) -> str:
    if is_disaggregated(strategy):
        return f"{strategy.prefill.replicas} prefill of {prefill} + {strategy.decode.replicas} decode of {decode}"
    shape = prefill if prefill == decode else f"prefill {prefill}, decode {decode}"
    return f"DP{strategy.dp} of {shape}" if strategy.dp > 1 else shape


_NAMES = {name.lower(): field for field, name in NAMES.items()}
_DEGREE = re.compile(r"(attention-dp|kv-sp|expert-tp|ffn-tp|pp|sp|ep|tp)(\d{1,6})", re.IGNORECASE)
# An x joins only between degrees, since "expert-TP" contains one.
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
# Degrees of a phase that does not name them: these are never taken from the other phase.
_ALONE = {"pp": 1, "sp": 1, "tp": 1}


def read_shorthand(text: str) -> dict[str, Any] | None:
    """The degrees that `text` names, by phase; EP and the FFN's TP only if named. `None` if it is no shorthand."""
    text = " ".join(text.split())
    whole = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    if whole is None:
        return None
    degrees = _apart(whole["shape"]) if whole["dp"] is None else None
    degrees = degrees or _together(whole["shape"], whole["dp"])
    return degrees if degrees is None or whole["cuts"] is None else _read_cut(degrees, whole["cuts"])


def _together(shape: str, dp: str | None) -> dict[str, Any] | None:
    two = _TWO.fullmatch(shape)
    phases = (two["prefill"], two["decode"]) if two is not None else (shape, shape)
    prefill, decode = (_phase(text) for text in phases)
    if prefill is None or decode is None:
        return None
    degrees: dict[str, Any] = {"prefill": prefill, "decode": decode}
    return degrees if dp is None else {"dp": int(dp), **degrees}


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
    degrees: dict[str, Any] = {}
    for part in _JOIN.split(text.strip()):
        match = _DEGREE.fullmatch(part)
        name = _NAMES[match[1].lower()] if match is not None else ""
        if match is None or name in degrees:
            return None
        degrees[name] = int(match[2])
    return {**_ALONE, **degrees} if degrees else None


def _read_cut(degrees: dict[str, Any], cuts: str) -> dict[str, Any] | None:
    """`degrees` with the layers of each stage, for each phase with as many stages; `None` if `cuts` is malformed."""
    for text in cuts.split(" / "):
        layers: list[int] = []
        for run in text.split("+"):
            match = _RUN.fullmatch(run.strip())
            if match is None or int(match[1] or 1) > 1000:
                return None
            layers += [int(match[2])] * int(match[1] or 1)
        for phase in (degrees["prefill"], degrees["decode"]):
            if phase["pp"] == len(layers) and "stage_layers" not in phase:
                phase["stage_layers"] = layers
    return degrees


def to_say(words: str, argument: str, *, value: bool) -> str:
    """How to ask for a setting: words of a request, and the argument of a Python call.

    For clients with neither `agent/operations/wording.py` names the field.
    """
    return f"say '{words}', in Python {argument}={value}"


SAY_TOGETHER = to_say("no disaggregation", "disaggregated", value=False)
SAY_APART = to_say("disaggregated", "disaggregated", value=True)
# The way out if KV caches would need a network between nodes.
OR_TOGETHER = f", or have prefill and decode share replicas ({SAY_TOGETHER})"
