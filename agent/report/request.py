"""What was asked, in the words of every report: hardware, load, constraints, what was assumed and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...tools.plan.latency_limits import LIMIT_FIELDS
from ...tools.plan.load import arrival_words, burstiness_of, spread_of, think_seconds
from ..languages.say import say
from ..planning.reasons import HOLDING, KEEPING_UP, KINDS_NAMED, LOOKED_AT, UNPRICED
from ..results import AUTHORS
from .text import NONE, Block, Bullets, Column, Section, Table, count_text, section, value_text

if TYPE_CHECKING:
    from ...tools.plan.document import HardwareBlock, PolicyBlock, WorkloadBlock
    from ..intent.intent import Assumption
    from ..results import ModelUse

_ASSUMED = " (assumed)"


def hardware_text(hardware: HardwareBlock) -> str:
    """`2 nodes × 8 h100-sxm`."""
    accelerator = hardware.accelerator if isinstance(hardware.accelerator, str) else hardware.accelerator.id
    return f"{count_text(hardware.nodes, 'node')} × {hardware.gpus_per_node} {accelerator}"


def workload_text(
    workload: WorkloadBlock,
    assumptions: Sequence[Assumption] = (),
    *,
    as_many_as_hold: bool = False,
    is_planned: bool = True,
    in_flight: float | None = None,
) -> str:
    """`2,048 tokens in, 256 out, 3 requests/s at random, some 40 of them in flight, planned for latency`.

    What the `assumptions` fill in is marked. `as_many_as_hold`: the number of requests at once was left open.
    `in_flight`: how many a rate has in flight, where that is known.
    Not `is_planned`: the load is judged, since what runs today need not have been planned for it.
    """
    is_assumed = any(assumption.field == "objective" for assumption in assumptions)
    is_limited = any(getattr(workload, field) is not None for field in LIMIT_FIELDS if field != "request_rate")
    unlimited = "" if is_limited else ", no limit stated"
    load = load_text(workload, assumptions, as_many_as_hold=as_many_as_hold, in_flight=in_flight)
    verb = "planned" if is_planned else "judged"
    return f"{load}, {verb} for {workload.objective}{_ASSUMED if is_assumed else ''}{unlimited}"


def load_text(
    workload: WorkloadBlock,
    assumptions: Sequence[Assumption],
    *,
    as_many_as_hold: bool = False,
    in_flight: float | None = None,
) -> str:
    """`workload_text` without what it is planned for."""
    assumed = {assumption.field: assumption.value for assumption in assumptions}
    spread = _spread_text(workload)
    sides = [_ASSUMED * (name in assumed and spread_of(workload) is None) for name in ("input_tokens", "output_tokens")]
    if all(sides):
        sides = ["", " (both assumed)"]
    lengths = f"{workload.input_tokens:,} tokens in{sides[0]}, {workload.output_tokens:,} out{sides[1]}{spread}"
    if workload.request_rate is not None:
        # As many are in flight as the rate makes, whatever is stated beside it.
        return lengths if in_flight is None else f"{lengths}, some {math.ceil(in_flight):,} in flight"
    if as_many_as_hold:
        return f"{lengths}, as many requests as hold"
    requests = f"{count_text(workload.concurrency, 'request')} at once"
    if "concurrency" in assumed:
        requests += _ASSUMED if assumed["concurrency"] is not None else " (the most that hold)"
    return f"{lengths}, {requests}"


def _spread_text(workload: WorkloadBlock) -> str:
    """That lengths are means and how far they spread, if requests are not all alike; and how requests come."""
    spread = spread_of(workload)
    words = []
    if spread is not None:
        sides = zip(("in", "out"), spread.at(0.5), spread.at(0.95), spread.longest, strict=True)
        spans = (f"{name} p50 {half:,}, p95 {high:,}, at most {most:,}" for name, half, high, most in sides)
        words.append(f" on average ({'; '.join(spans)})")
    if workload.prefixes is not None:
        words.append(f"; {workload.prefixes}")
    if workload.request_rate is not None:
        words.append(f", {workload.request_rate:.3g} requests/s {arrival_words(burstiness_of(workload))}")
    if think_seconds(workload):
        words.append(f", {think_seconds(workload):g} s to think")
    return "".join(words)


def constraint_lines(policy: PolicyBlock) -> Iterator[str]:
    """The constraints that a valid plan keeps, in the words that they came from."""
    if policy.constraints is not None:
        yield f"Keeps: {'; '.join(f'“{constraint.words}”' for constraint in policy.constraints)}"


def not_acted_on_lines(not_acted_on: Sequence[str]) -> Iterator[str]:
    """First line: what sounds like a demand and was not understood."""
    if not_acted_on:
        yield f"Not acted on: {'; '.join(value_text(text, 160) for text in not_acted_on)}"


_SAID_FIRST = ("gpus_per_node", "hardware.inter_node_bw_gb_s", "disaggregated", "request_rate", "serving.max_batch")


def read_as_lines(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """First lines: how a model's name was read, what of the hardware is kept back or not known, how phases lie."""
    for assumption in assumptions:
        if (assumption.field == "model" and assumption.value is not None) or assumption.field in _SAID_FIRST:
            yield say("Assumed: {reason}", reason=assumption.reason)


def open_hardware_lines(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """First line: that nobody named the hardware, or how much of it."""
    hardware = next((assumption for assumption in assumptions if assumption.field == "hardware"), None)
    if hardware is not None and isinstance(hardware.value, str) and ":" not in hardware.value:
        nodes, _, gpus = hardware.value.partition("x")
        whole = say(", in whole nodes of {gpus}", gpus=gpus) if nodes.isdigit() and int(nodes) > 1 else ""
        if KEEPING_UP in hardware.reason:
            lead = say(
                "How many GPUs was left open: planned for the fewest that hold every limit and keep up with a few more "
                "requests"
            )
        elif HOLDING in hardware.reason:
            lead = say(
                "How many GPUs was left open: planned for the fewest that hold every limit, and a request in memory"
            )
        else:
            lead = say("How many GPUs was left open: planned for the fewest that hold every limit")
        yield lead + whole + (say(", of those looked at before the time limit") if LOOKED_AT in hardware.reason else "")
    elif hardware is not None and hardware.reason.startswith(KINDS_NAMED):
        yield "No number of GPUs was named: of the kinds to choose from, planned for the least that does"
        for assumption in assumptions:
            if assumption.field == UNPRICED:
                yield say("Assumed: {reason}", reason=assumption.reason)
    elif hardware is not None:
        yield "No hardware was named: planned for the least that does; name yours, such as 8 H100"


def trace_lines(trace: str | None) -> Iterator[str]:
    """First lines: the trace that the requests come from, and what part of it is planned for."""
    if trace is not None:
        yield from trace.splitlines()


def silence_lines(use: ModelUse | None) -> list[str]:
    """First line: that a language model was asked and did not answer, or to no use."""
    if use is None or use.status == "infeasible":
        return []
    if use.silence is not None:
        return [f"No answer of the language model {use.silence}"]
    if use.status == "accepted" or use.plan_from not in ("auto_fix", "builtin"):
        return []
    counted = count_text(use.proposals, "proposal")
    return [f"{use.model} made {counted}, of which none is the plan: that is the {AUTHORS[use.plan_from]}"]


def left_out_lines(left_out: Sequence[str]) -> Iterator[str]:
    """First line: what was not looked at for want of time."""
    if left_out:
        yield f"The time limit was over (--time-limit): not looked at: {'; '.join(left_out)}"


class Understanding(Protocol):
    """What a result states about the request: how it was read, and what was assumed."""

    @property
    def readings(self) -> tuple[str, ...]:
        """How ambiguous words were read."""
        ...

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The values that nobody stated."""
        ...


def assumption_section(report: Understanding, words: dict[str, str]) -> Section:
    """What was read (`words`: field to words) and what was assumed."""
    blocks: list[Block] = []
    if words:
        fields: dict[str, list[str]] = {}
        for name, text in words.items():
            fields.setdefault(text, []).append(name)
        rows = tuple((", ".join(names), f"“{value_text(text, 160)}”") for text, names in fields.items())
        blocks.append(Table((Column(say("read"), wraps=True), Column(say("from the words"), wraps=True)), rows))
    if report.readings:
        blocks.append(Bullets(report.readings))
    if report.assumptions:
        assumed = tuple((item.field, _assumed_text(item.value), item.reason) for item in report.assumptions)
        columns = Column(say("assumed")), Column(say("value"), wraps=True), Column(say("because"), wraps=True)
        blocks.append(Table(columns, assumed))
    return section(say("What was read, and what was assumed"), *blocks)


def _assumed_text(value: Any) -> str:
    return NONE if value is None else value_text(value, 40)
