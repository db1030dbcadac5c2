"""The answer of a model that reads a request: facts with the words that they follow from, in a strict schema."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, ValidationError

from ...tools.input.strict_json import parse_answer
from ...tools.input.strict_values import JsonError
from ..model.messages import AnswerSchema
from ..toolset.tool import Arguments, argument_schema

FactName = Literal[
    "model", "accelerator", "accelerators", "nodes", "gpus_per_node", "gpus", "gpus_open", "input_tokens",
    "output_tokens", "shared_prompt_tokens", "turns", "concurrency", "request_rate", "min_tokens_per_second",
    "prefix_cache_hit_rate", "reserve_replicas", "max_batch", "prefill_chunk_tokens", "compared", "ttft_ms_max",
    "ttft_statistic", "tpot_ms_max", "tpot_statistic", "end_to_end_ms_max", "end_to_end_statistic", "objective",
    "weights", "kv_cache", "activations", "engine", "engine_version", "disaggregated", "memory_utilization",
    "usd_per_gpu_hour", "relaxation", "constraint", "dp", "tp", "tp_ffn", "pp", "ep", "sp", "attention_dp", "replicas",
]  # fmt: skip
DEGREES = ("tp", "tp_ffn", "pp", "ep", "sp", "attention_dp", "replicas")
# Fields of `Said` that a model's facts can state.
RANGES = {"input_tokens_range": "input_tokens", "output_tokens_range": "output_tokens"}
MODEL_FIELDS = frozenset({*get_args(FactName), *RANGES, "strategy", "prefixes"})
MOST_FACTS = 60
_OBJECT_START = "{"


class StatedFact(Arguments):
    """One fact. `upper`: the upper end of a range; `working`: the sum that gives a figure of several;
    `reason`: why a figure is meant that stands nowhere.
    """

    field: FactName
    value: str | bool | float = Field(description="in the unit of the field; names as the catalogue writes them")
    upper: float | None = Field(default=None, description="upper end, where a range of tokens is stated")
    percentile: float | None = Field(
        default=None, description="of a length by percentiles: 50 for the median, 95 for p95; null: of all, or the mean"
    )
    phase: Literal["prefill", "decode"] | None = Field(default=None, description="of a degree; null: both phases")
    quote: str = Field(
        description="the words of the request that it follows from, copied character by character; "
        "words that stand apart joined by ' ... '"
    )
    working: str | None = Field(default=None, description="sum of figures of the quote: 1200 * 0.4; null: as it stands")
    reason: str | None = Field(default=None, description="null where the words state it; else why they mean it")


class ReadingAnswer(Arguments):
    """All that a request states, quotes of demands in it that have no field, and what has to be asked back."""

    facts: tuple[StatedFact, ...]
    not_understood: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


READING_ANSWER = AnswerSchema(name="reading", json_schema=argument_schema(ReadingAnswer))


def read_answer(text: str) -> ReadingAnswer | None:
    """The reading in the text of an answer, without the prose around it; `None` if there is none."""
    start, end = text.find(_OBJECT_START), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        parsed = parse_answer(text[start : end + 1])
        answer = ReadingAnswer.model_validate(parsed)
    except (JsonError, ValidationError):
        return None
    return answer.model_copy(update={"facts": answer.facts[:MOST_FACTS]})
