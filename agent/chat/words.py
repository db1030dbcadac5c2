"""How plans, requests and their differences are said in a chat: short, the whole report is a command away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...tools.comparison.result import ComparedFigure, Comparison
from ...tools.language.said import StatedDegrees, StatedStrategy
from ...tools.plan.describe import describe, number, precision_name
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ..intent.intent import Intent
from ..languages.say import say
from ..report.compare import shown_figure
from ..report.plan import broken_rules, figures_text
from ..report.request import hardware_text, left_out_lines, read_as_lines
from ..report.text import NONE, Bullets, Column, Section, Table, section
from ..results import PlanResult
from .figures import limit_title

_SHOWN = (
    "gpus", "ttft_ms", "tpot_ms", "end_to_end_ms", "output_tokens_per_s", "output_tokens_per_s_per_gpu",
    "memory_bytes", "held_requests", "max_concurrency", "cost_per_million_output_tokens",
)  # fmt: skip
_SAME = 0.0005


def title_of(result: PlanResult) -> str:
    """A result on one line, for lists."""
    plan = result.plan
    if plan is None:
        rule = result.infeasible.rule if result.infeasible is not None else "no reason"
        return say("no plan ({rule})", rule=rule)
    return f"{describe(plan.strategy)} of {plan.model.name} on {hardware_text(plan.hardware)}, {plan.precision.weights}"


def plan_lines(result: PlanResult) -> tuple[str, ...]:
    """The plan and its figures, or why there is none."""
    plan = result.plan
    if plan is None:
        return tuple(_no_plan(result))
    state = say("Valid plan") if result.valid else say("Plan with violations")
    used, owned = plan.strategy.gpu_count, plan.hardware.nodes * plan.hardware.gpus_per_node
    load = plan.workload
    lines = [
        *_not_kept(result),
        f"{state}: {title_of(result)}",
        *read_as_lines(() if result.report is None else result.report.assumptions),
        say(
            "{used} of {owned} GPUs; {given:,} tokens in, {made:,} out, {load:,} at once, for {objective}",
            used=used,
            owned=owned,
            given=load.input_tokens,
            made=load.output_tokens,
            load=load.concurrency,
            objective=say(load.objective),
        ),
    ]
    if result.estimate is not None:
        lines.append(figures_text(result.estimate, broken_rules(result)))
    if result.report is not None:
        lines += left_out_lines(result.report.left_out)
        lines += [say("Limit: {line}", line=line) for line in result.report.limits]
    return tuple(lines)


def _not_kept(result: PlanResult) -> Iterator[str]:
    """That the plan lacks the degrees that were asked for, and why."""
    report = result.report
    if report is not None and report.why_not_kept is not None and report.stated is not None:
        asked = report.stated.summary
        yield say("{asked} was asked for and cannot be kept: {why}", asked=asked, why=report.why_not_kept)


def _no_plan(result: PlanResult) -> Iterator[str]:
    infeasible = result.infeasible
    if infeasible is None:
        yield say("There is no plan.")
        return
    yield say("There is no plan: {reason}", reason=infeasible.reason)
    yield say("What binds: {rule}", rule=infeasible.rule)
    if result.report is not None:
        yield from left_out_lines(result.report.left_out)
    needs = infeasible.needs
    least = f"{needs.gpus} GPUs" + (f" of {needs.accelerator}" if needs.accelerator else "") if needs.gpus else ""
    note = needs.note or ""
    if least or note:
        yield say("Least that would do: {least}", least=f"{least}{f' ({note})' if least and note else note}")


def request_facts(intent: Intent) -> dict[str, str]:
    """The facts that a request asks for, as they are in force: title to value."""
    load, hardware, serving = intent.workload, intent.hardware, intent.serving
    facts: dict[str, Any] = {"model": intent.model.name}
    if hardware is None:
        facts["hardware"] = say("open")
    else:
        card = hardware.accelerator if isinstance(hardware.accelerator, str) else hardware.accelerator.id
        facts |= {
            "accelerator": card,
            "GPUs": say("the fewest that do") if hardware.gpus is None else hardware.gpus,
            "nodes": say("open")
            if hardware.nodes is None
            else say("{nodes} of {each}", nodes=hardware.nodes, each=hardware.gpus_per_node),
            "bandwidth in a node (GB/s)": hardware.intra_node_bw_gb_s,
            "bandwidth between nodes (GB/s)": hardware.inter_node_bw_gb_s,
        }
    formats = say("to be chosen") if intent.precisions is not None else precision_name(intent.precision)
    facts |= {
        "input tokens": load.input_tokens,
        "output tokens": load.output_tokens,
        "concurrency": say("open") if intent.concurrency_open else load.concurrency,
        **{
            limit_title(limit.name): _limit(getattr(load, limit.field), getattr(load, limit.statistic))
            for limit in LATENCY_LIMITS
        },
        "requests/s": load.request_rate,
        **_day_facts(intent),
        "least tokens/s": load.min_tokens_per_second,
        "prefix cache hit rate": load.prefix_cache_hit_rate,
        "shared prefixes": None if load.prefixes is None else str(load.prefixes),
        "load of the busiest experts over the mean": load.expert_imbalance,
        "objective": say(load.objective),
        "number formats": formats,
        "relaxations": ", ".join(intent.relaxations) or None,
        "constraints": "; ".join(constraint.words for constraint in intent.constraints) or None,
        "share of memory": intent.memory_utilization,
        "host memory": str(serving.kv_offload) if serving is not None and serving.kv_offload is not None else None,
        "separate prefill and decode": _asked_for(intent.disaggregated),
        "engine": None if serving is None else serving.engine,
        "USD per GPU hour": intent.usd_per_gpu_hour,
        "strategy": None if intent.strategy is None else stated_text(intent.strategy),
        "compared": "; ".join(map(stated_text, intent.compared)) or None,
    }
    return {say(title): _plain(value) for title, value in facts.items() if value is not None}


def _day_facts(intent: Intent) -> dict[str, object]:
    """What is asked for of a day, or of one rate that the plan bears with fewer replicas."""
    day = intent.day
    if day is None:
        return {}
    return {
        "rates over the day": day.curve.source if len(day.curve.steps) > 1 else None,
        "replicas that may be lost": day.reserve_replicas or None,
        "headroom": day.headroom_share or None,
    }


def asks_the_same(before: Intent, after: Intent) -> bool:
    """Whether two requests ask for the same, however they say it."""
    wording = {"words": {}, "assumptions": (), "readings": (), "unread": ()}
    return before.model_copy(update=wording) == after.model_copy(update=wording)


def _asked_for(wanted: bool | None) -> str | None:
    return None if wanted is None else say("asked for") if wanted else say("ruled out")


def _limit(value: float | None, statistic: str) -> str | None:
    return None if value is None else f"{number(value)}{'' if statistic == 'mean' else f' ({statistic})'}"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def stated_text(stated: StatedStrategy) -> str:
    """Stated degrees in shorthand."""
    prefill, decode = _degrees(stated.prefill), _degrees(stated.decode)
    phases = prefill if prefill == decode else f"prefill {prefill or 'open'}, decode {decode or 'open'}"
    dp = None if stated.dp is None else f"DP{stated.dp}"
    gpus = None if stated.gpus is None else f"{stated.gpus} GPUs"
    return ", ".join(part for part in (dp, phases, gpus) if part) or "open"


def _degrees(stated: StatedDegrees) -> str:
    named = stated.model_dump(exclude_none=True)
    return " × ".join(f"{name.upper().replace('_', '-')}{value}" for name, value in named.items())


def request_changes(before: Intent, after: Intent) -> tuple[str, ...]:
    """What is asked for otherwise than before, one line for each fact."""
    old, new = request_facts(before), request_facts(after)
    titles = [*new, *(title for title in old if title not in new)]
    return tuple(
        f"{title}: {old.get(title, say('not stated'))} → {new.get(title, say('not stated'))}"
        for title in titles
        if old.get(title) != new.get(title)
    )


def comparison_sections(comparison: Comparison, names: tuple[str, str]) -> list[Section]:
    """What differs between two plans, in layout and in figures."""
    columns = (
        Column("", wraps=True), *Column.of_figures(names[0], names[1], "")
    )  # fmt: skip
    shown = [figure for name in _SHOWN if (figure := comparison.figure(name)) is not None]
    # What the engine holds decides who waits, and is what the sentences count; without an engine it is not known.
    if comparison.figure("held_requests") is not None:
        shown = [figure for figure in shown if figure.name != "max_concurrency"]
    rows = tuple(
        (say(figure.title), shown_figure(figure, figure.a), shown_figure(figure, figure.b), _ratio(figure))
        for figure in shown
        if figure.a is not None or figure.b is not None
    )
    layout = f"{comparison.a.summary} → {comparison.b.summary}"
    same = say("The layout stays {layout}.", layout=comparison.b.summary)
    return [
        section(say("Layout"), same if comparison.a.summary == comparison.b.summary else layout),
        section(say("Figures"), Table(columns, rows)),
    ]


def _ratio(figure: ComparedFigure) -> str:
    if figure.ratio is None:
        return NONE
    if abs(figure.ratio - 1) < _SAME:
        return say("same")
    return f"{figure.ratio - 1:+.1%}" if figure.ratio < 2 else f"× {figure.ratio:.3g}"


def read_section(readings: tuple[str, ...], unread: tuple[str, ...]) -> Section:
    """How words were read, and which were not."""
    not_acted_on = (say("Not acted on:"), Bullets(unread)) if unread else ()
    return section(say("How it was read"), Bullets(readings), *not_acted_on)
