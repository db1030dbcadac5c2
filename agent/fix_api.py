"""`autofix`: a proposal in any form made valid; what was asked for, in words, stands in for what it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..tools.autofix.autofix import SIGNS_OF_TEXT, Chosen, Reading, autofix_read, read_anything, read_text_anyhow
from ..tools.autofix.intent import PlanDefaults
from ..tools.autofix.result import FixResult
from ..tools.errors import InputError
from ..tools.input.arguments import checks_arguments
from ..tools.language.request import read_words
from ..tools.language.said import Said
from ..tools.plan.document import HardwareBlock, Plan
from ..tools.plan.latency_limits import LATENCY_LIMITS
from ..tools.plan.reader import collector_paused
from ..tools.plan.view import as_int, as_mapping, as_str
from .intent.complete import complete
from .intent.intent import HardwareChoice
from .runs.time_limit import TIME_LIMIT_S, within
from .stated.search_request import hardware_block
from .stated.words_or_file import is_words

# What a request and a document may state differently: the field of `Said`, the document's block and field, and the
# words for it.
_COMPARED = (
    ("model", "model", "name", "model"), ("accelerator", "hardware", "accelerator", "accelerator"),
    ("nodes", "hardware", "nodes", "nodes"), ("gpus_per_node", "hardware", "gpus_per_node", "GPUs in a node"),
    ("input_tokens", "workload", "input_tokens", "input tokens"),
    ("output_tokens", "workload", "output_tokens", "output tokens"),
    ("concurrency", "workload", "concurrency", "requests at once"),
    ("request_rate", "workload", "request_rate", "requests/s"),
    ("min_tokens_per_second", "workload", "min_tokens_per_second", "least tokens/s"),
    *((limit.field, "workload", limit.field, f"limit on {limit.name} in ms") for limit in LATENCY_LIMITS),
    ("objective", "workload", "objective", "objective"),
    ("weights", "precision", "weights", "weights"), ("kv_cache", "precision", "kv_cache", "KV cache"),
    ("activations", "precision", "activations", "activations"),
)  # fmt: skip


@checks_arguments
def autofix(
    document: Mapping[str, object] | str | Path | Plan,
    *,
    request: str | None = None,
    safe_only: bool = False,
    keep_strategy: bool = False,
    rules: Collection[str] | None = None,
    time_limit_s: float = TIME_LIMIT_S,
) -> FixResult:
    """Mend a plan, or make one of a proposal in any other form.

    Args:
        document: A `Plan`, an object, a JSON text, the path of a file, or a text with a proposal in it.
        request: What was asked, in words; it stands in for what the document leaves out, and for nothing else.
        safe_only: Change nothing that the author decided.
        keep_strategy: Where the strategy block and the graph differ, rebuild the graph for what the block says;
            else the graph is kept, unless its own parts bear out the block.
        rules: Mend only what these rules find; all where it is `None`.
        time_limit_s: Seconds after which no more is searched; `left_out` says what was not looked at.

    Returns:
        The plan where one is valid, each fix with its rule and its JSON Patch, and what remains.

    Raises:
        InputError: A file that cannot be read, a request that cannot be, an unknown rule, or no document at all.
            Whatever a document holds is answered, never raised.

    Example:
        >>> import shardwright
        >>> fixed = shardwright.autofix("TP2 for both phases", request="Llama-3.2-1B on 2 L4, 512 in / 32 out")
        >>> fixed.valid, fixed.plan.strategy.decode.tp
        (True, 2)
    """
    chosen = Chosen.of(rules or None, safe_only=safe_only, keep_strategy=keep_strategy)
    return fixed(_read(document), request, chosen, time_limit_s)


def fixed(reading: Reading, request: str | None, chosen: Chosen, time_limit_s: float = TIME_LIMIT_S) -> FixResult:
    """`autofix` of a document that is read already.

    Raises:
        InputError: as `autofix`.
    """
    defaults = None
    if request is not None:
        said = read_words(request)
        defaults = plan_defaults(said, reading.read.raw)
        notes = (*reading.notes, *_contradictions(said, defaults, reading.read.raw or {}))
        reading = replace(reading, notes=notes)
    with within(time_limit_s), collector_paused():
        return autofix_read(reading, request=defaults, chosen=chosen)


def _read(document: Any) -> Reading:
    if isinstance(document, str) and _is_text(document):
        return read_text_anyhow(document)
    return read_anything(document)  # pyright: ignore[reportUnknownArgumentType] - any mapping


def _is_text(source: str) -> bool:
    """Whether `source` is a proposal in words: it has signs that no file name has, or is no file and reads as one."""
    if not source.strip() or any(sign in source for sign in SIGNS_OF_TEXT):
        return True
    has_spaces = any(letter.isspace() for letter in source)
    return is_words(source) and (has_spaces or ("/" not in source and read_words(source).strategy is not None))


def plan_defaults(said: Said, document: Mapping[str, Any] | None) -> PlanDefaults:
    """The model, hardware, load and number formats that are `said`; `document` may name the model instead.

    Raises:
        InputError: neither names a model, or the request cannot be (an impossible figure).
    """
    if said.model is None and said.model_config_object is None:
        said = said.model_copy(update=_model_of(document or {}))
    intent = complete(said)
    return PlanDefaults(
        model=intent.model.block,
        hardware=None if intent.hardware is None else _hardware(intent.hardware),
        workload=intent.workload,
        precision=intent.precision if _states_precision(said) else None,
        assumed={row.field if "." in row.field else f"workload.{row.field}": row.reason for row in intent.assumptions},
    )


def _contradictions(said: Said, asked: PlanDefaults, document: Mapping[str, Any]) -> Iterator[str]:
    """Where the request and the document differ, in words; the document's value is kept."""
    pairs = [
        (words, getattr(getattr(asked, block), field, None), as_mapping(document.get(block)).get(field))
        for name, block, field, words in _COMPARED
        if getattr(said, name) is not None
    ]
    hardware = as_mapping(document.get("hardware"))
    nodes, per_node = as_int(hardware.get("nodes")), as_int(hardware.get("gpus_per_node"))
    if nodes is not None and per_node is not None:
        pairs.append(("GPUs", said.gpus, nodes * per_node))
    for words, wanted, stated in pairs:
        if isinstance(wanted, str | int | float) and isinstance(stated, str | int | float) and wanted != stated:
            yield f"not used: the request says {words} {wanted}, the document {stated}, which is kept"


def _states_precision(said: Said) -> bool:
    return any((said.weights, said.kv_cache, said.activations))


def _model_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The model of a document as a field of `Said`."""
    block = as_mapping(document.get("model"))
    config = as_mapping(block.get("config"))
    if config:
        return {"model_config_object": dict(config)}
    return {"model": as_str(block.get("name"))}


def _hardware(choice: HardwareChoice) -> HardwareBlock:
    if choice.nodes is None:
        raise InputError("the request names an accelerator and not how many: say so ('8 H100', '2x8 H200')")
    return hardware_block(choice, choice.nodes)
