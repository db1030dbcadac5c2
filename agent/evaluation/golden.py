"""The strategy of a golden as people write it: in words, as an object of degrees, or in an engine's form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ...tools.autofix.autofix import read_anything
from ...tools.errors import InputError
from ...tools.language.request import read_words
from ...tools.language.said import StatedDegrees
from ...tools.plan.describe import read_shorthand
from ...tools.plan.document import PhaseStrategy, Strategy
from ..loop.question import Question
from ..stated.strategy import MAX_STATED_GPUS, read_block, read_strategy

_PHASES = ("prefill", "decode")
# Fields of a phase beside the degrees that engines have.
_FURTHER = ("tp_expert", "kv_sp", "sp_kind", "stage_layers")
_DEGREES = tuple(StatedDegrees.model_fields)
_COUNTS = frozenset({*_DEGREES, "tp_expert", "kv_sp", "dp", "gpus", "gpu_count"})
_MOST = 1_000_000
# "Tensor parallel over both GPUs": a degree stated by its devices.
_SPREAD = re.compile(
    r"(?P<kind>tensor|pipeline|expert|tp|pp|ep)(?:[ -]parallel(?:ism)?)? (?:over|across|on)"
    r" (?P<number>both|all|(?:all )?(?P<figure>\d{1,6}))(?: of)?(?: the)? (?:gpu|card|device)s?\.?",
    re.IGNORECASE,
)
_SPREAD_ZH = re.compile(
    r"(?P<number>[两双]|(?P<figure>\d{1,6})) ?[张块]?卡(?:的|做)?(?P<kind>张量|流水线?|专家)并行。?"
)
_KINDS = {"tensor": "tp", "pipeline": "pp", "expert": "ep", "张量": "tp", "流水": "pp", "流水线": "pp", "专家": "ep"}
_WHOLE = ("dp", "gpus", "gpu_count", *_PHASES)


def golden_strategy(stated: dict[str, Any] | str | None, question: Question) -> Strategy:
    """The strategy that `stated` means for `question`, with the rest filled in as an engineer would.

    Degrees may stand in each phase, or once for both. Without `dp`, replicas fill the hardware.

    Raises:
        InputError: it is no strategy, or larger than anything that can be laid out.
    """
    if isinstance(stated, str):
        short = read_shorthand(stated) or _spread(stated, question)
        if short is not None:
            return golden_strategy(short, question)
        words = read_words(stated).strategy
        if words is None:
            raise InputError(f"no strategy was found in {stated[:100]!r}")
        return read_strategy(words, question.request.architecture, question.request.hardware)
    block = {name: value for name, value in (stated or {}).items() if value is not None}
    if not block:
        raise InputError("no strategy was found: it states nothing")
    if not _is_plain(block):
        block = _foreign(block)
    try:
        return _filled(block, question)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"strategy: {'/'.join(map(str, first['loc']))}: {first['msg']}") from None


def _spread(text: str, question: Question) -> dict[str, Any] | None:
    """The degree that `text` states by its devices; "all" are those of the question."""
    text = " ".join(text.split())
    match = _SPREAD.fullmatch(text) or _SPREAD_ZH.fullmatch(text)
    if match is None:
        return None
    hardware = question.request.hardware
    all_gpus = hardware.nodes * hardware.gpus_per_node
    if match["number"].lower() == "both" and all_gpus != 2:
        raise InputError(f"{text[:100]!r}: there are {all_gpus} GPUs, not two: say how many")
    number = all_gpus if match["number"].lower() == "all" else int(match["figure"] or 2)
    kind = match["kind"].lower()
    return {_KINDS.get(kind, kind): number}


def _is_plain(block: Mapping[str, Any]) -> bool:
    """Whether it uses the fields of plans alone."""
    known = {*_DEGREES, *_FURTHER}
    phases = [block[name] for name in _PHASES if isinstance(block.get(name), Mapping)]
    return set(block) <= {*_WHOLE, *known} and all(set(phase) <= known for phase in phases)


def _foreign(block: dict[str, Any]) -> dict[str, Any]:
    """A strategy in the form of an engine or another tool, as the reader of proposals reads it."""
    raw = read_anything(block).read.raw
    if raw is None or not isinstance(raw.get("strategy"), Mapping):
        raise InputError("no strategy was found in it")
    return dict(raw["strategy"])


def _filled(block: Mapping[str, Any], question: Question) -> Strategy:
    architecture, hardware = question.request.architecture, question.request.hardware
    shared = {name: block[name] for name in (*_DEGREES, *_FURTHER) if name in block}
    phases = {name: _counted({**shared, **_phase(block, name)}) for name in _PHASES}
    counts = _counted({name: block[name] for name in _WHOLE if name in block and name not in _PHASES})
    for phase in phases.values():
        if not architecture.has_split_ffn:
            # TP without an operator usually includes the FFN; a model whose FFNs are all experts has none to split.
            phase.pop("tp_ffn", None)
        PhaseStrategy.model_validate(phase)
    gpus = counts.get("gpus", counts.get("gpu_count"))
    strategy = read_block({"dp": counts.get("dp"), "gpus": gpus, **phases}, architecture, hardware)
    if strategy is None:
        raise InputError("the strategy states no degree")
    for name, phase in (("prefill", strategy.prefill), ("decode", strategy.decode)):
        if phase.stage_layers is None and "stage_layers" in phases[name]:
            raise InputError(
                f"{name}.stage_layers: {architecture.num_layers} layers in {phase.pp} stages are not cut so"
            )
    if strategy.gpu_count > MAX_STATED_GPUS:
        raise InputError(f"the strategy needs {strategy.gpu_count} GPUs; at most {MAX_STATED_GPUS} can be laid out")
    return strategy.model_copy(update={"gpu_count": gpus or strategy.gpu_count})


def _phase(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The fields of one phase.

    Raises:
        InputError: it is no object.
    """
    stated = block.get(name) or {}
    if not isinstance(stated, Mapping):
        raise InputError(f'strategy: {name} is no object of degrees, as {{"tp": 8}}')
    return stated


def _counted(stated: Mapping[str, Any]) -> dict[str, Any]:
    """`stated` with its degrees as numbers.

    Raises:
        InputError: one is no number of devices, or is larger than any cluster.
    """
    degrees: dict[str, Any] = {}
    for name, value in stated.items():
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)
        if name in _COUNTS and value is not None and (type(value) is not int or not 1 <= value <= _MOST):
            raise InputError(f"strategy: {name} is {str(value)[:40]!r}, not a whole number from 1 to {_MOST:,}")
        degrees[name] = value
    return degrees
