"""How a deployment is asked for by programs: words, briefs and fields, alike for every operation that plans."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ...tools.errors import InputError
from ...tools.language.request import MAX_REQUEST_CHARACTERS
from ...tools.plan.document import Objective, Relaxation, Statistic
from ...tools.plan.rate_curve_text import MAX_CHARACTERS
from ...tools.traffic.trace import MOST_TEXT_CHARACTERS, Trace, TraceWindow, sampling, trace_of_text
from ..intent.intent import Intent
from ..stated.arguments import Arguments, said_of_arguments
from ..stated.request import stated_intent
from .operation import Question

# Letters of a name or a line, and of all texts of one brief.
_NAME = 300
MAX_BRIEF_CHARACTERS = 400_000
# Seconds that one question may search.
MOST_SEARCH_S = 120.0

Name = Annotated[str, Field(max_length=_NAME)]
Block = dict[str, Any]


class Setting(Question):
    """What is deployed, on what and for which load: what words do not say, or what wins over them."""

    model: Name | Block | None = Field(
        None, description="Catalogue name, id on the Hugging Face Hub, or a config.json."
    )
    hardware: Name | Block | None = Field(
        None,
        description="NODESxGPUS:ACCELERATOR (2x8:h100-sxm), words (16xH100), an accelerator, or a hardware block.",
    )
    workload: Block | None = Field(None, description="The workload block of a plan document, or some of its fields.")
    input_tokens: int | None = Field(None, description="Prompt length in tokens.")
    output_tokens: int | None = Field(None, description="Tokens to generate.")
    lengths: Block | None = Field(
        None, description="How lengths spread: input, output, each as percentiles, histogram or log_normal; or pairs."
    )
    prefixes: Block | None = Field(
        None, description="What prompts share: system_tokens, turns of conversations, or a replay; and the routing."
    )
    arrivals: Block | None = Field(
        None, description="burstiness of requests that come at a rate, or think_time_s of users."
    )
    concurrency: int | None = Field(None, description="Requests in flight over the whole deployment.")
    request_rate: float | None = Field(None, description="Requests per second.")
    ttft_ms: float | None = Field(None, description="Time to first token at most.")
    tpot_ms: float | None = Field(None, description="Time per output token at most.")
    end_to_end_ms: float | None = Field(None, description="Time to the whole answer at most.")
    ttft_statistic: Statistic | None = Field(None, description="Of TTFT; else the mean.")
    tpot_statistic: Statistic | None = Field(None, description="Of TPOT; else the mean.")
    end_to_end_statistic: Statistic | None = Field(None, description="Of end to end; else the mean.")
    min_tokens_per_second: float | None = Field(None, description="Output tokens/s at least, of the whole deployment.")
    prefix_cache_hit_rate: float | None = Field(None, description="Share of prompt tokens that the cache has, 0 to 1.")
    kv_offload: Block | None = Field(
        None, description="Host memory that keeps KV cache: bytes_per_gpu, and host_bw_gb_s where none is catalogued."
    )
    objective: Objective | None = Field(None, description="What to make best.")
    precision: Name | Block | list[Name] | None = Field(
        None, description="Number format of the weights, a precision block, several to search, or any."
    )
    memory_utilization: float | None = Field(None, description="Share of a GPU's memory that may be used, 0 to 1.")
    usd_per_gpu_hour: float | None = Field(None, description="Price, for the cost per million tokens.")
    engine: Name | None = Field(None, description="NAME[==VERSION] of the engine that serves, or none.")

    def arguments(self) -> Arguments:
        """The fields beside model, hardware and workload that are stated."""
        named = Arguments.__annotations__
        return Arguments(**{name: value for name in named if (value := getattr(self, name, None)) is not None})


class Traced(Question):
    """What may be asked for a trace in place of a stated load: its text, never a path, and which sample is drawn."""

    trace: Annotated[str, Field(max_length=MOST_TEXT_CHARACTERS)] | None = Field(
        None, description="The text of a trace of requests: Mooncake, Azure, BurstGPT, results, logs with token counts."
    )
    trace_sample: int | None = Field(None, description="Requests of the trace that are drawn from, 1 to 1000.")
    trace_seed: int | None = Field(None, description="Which of them: a number that the sample is drawn with.")
    trace_window: TraceWindow | None = Field(
        None, description="busiest (where left out): plan for its busiest hour; whole: for the mean of all."
    )

    def read_trace(self) -> Trace | None:
        """The trace, where there is one.

        Raises:
            InputError: it cannot be read.
        """
        if self.trace is None:
            return None
        return trace_of_text(self.trace, **sampling(self.trace_sample, self.trace_seed, self.trace_window))


class Request(Setting, Traced):
    """A deployment to plan: a request in words, a brief, fields, or all of them; fields win over words."""

    request: Annotated[str, Field(max_length=MAX_REQUEST_CHARACTERS)] | None = Field(
        None, description="What is wanted, in words: English or Chinese."
    )
    brief: dict[Name, str] = Field(
        default_factory=dict[str, str], description="Texts of a deployment brief (Markdown, YAML, JSON) by their names."
    )
    rate_curve: Annotated[str, Field(max_length=MAX_CHARACTERS)] | list[float] | None = Field(
        None,
        description="Requests/s over a day: plan sizes each hour, search takes the peak. 24 numbers, steps "
        "0-8=2,8-18=20,18-24=5, rows time,rate, words, or trace.",
    )
    reserve_replicas: int | None = Field(None, description="Replicas that may be lost over the day; 1 where left out.")
    headroom: float | None = Field(None, description="Share of each rate that may come besides; 0.1 where left out.")
    constraints: list[Name | Block] | None = Field(
        None, description="What the plan must keep: 'tp <= 4', 'no pp', 'reserved_nodes = 1', 'free_gb_per_gpu = 10'."
    )
    relaxations: list[Relaxation] | None = Field(None, description="Named relaxations that are allowed.")
    disaggregated: bool | None = Field(None, description="Whether prefill and decode have replicas of their own.")
    rules: Literal["strict", "engine"] | None = Field(
        None, description="engine: allow all relaxations that the engine has settings for."
    )
    time_limit_s: float = Field(30.0, ge=0, le=MOST_SEARCH_S, description="Seconds after which the best so far is it.")

    def arguments(self) -> Arguments:
        """The fields beside model, hardware and workload that are stated, with the trace as it is read."""
        stated, trace = super().arguments(), self.read_trace()
        return stated if trace is None else {**stated, "trace": trace}

    def intent(self) -> Intent:
        """The complete intent that is asked for, with stated assumptions.

        Raises:
            InputError: as `shardwright.plan`.
        """
        if sum(map(len, self.brief.values())) > MAX_BRIEF_CHARACTERS:
            raise InputError(f"brief: at most {MAX_BRIEF_CHARACTERS:,} characters in all are read")
        stated = self.arguments()
        said = said_of_arguments(self.model, self.hardware, self.workload, stated)
        return stated_intent(self.request, said, brief=self.brief, stated=stated)
