"""Why an estimate is what it is: the largest costs of each phase, what binds it, and what would make it shorter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .text import NONE, Block, Bullets, Column, Section, Table, ms_text, section

if TYPE_CHECKING:
    from ...tools.plan.performance import PathStep, PerformanceEstimate, PhaseExplanation, Remedy

STEPS_SHOWN = 5
_WHOLE_OPERATIONS = (
    "An operation counts whole for what takes most of its time; where that is twice as fast, its launch, its latency "
    "and what it does of other kinds meanwhile stay"
)
# The stage and the layer in a step's name: `decode.s1.l4.moe.expert` is `decode.moe.expert`.
_POSITION = re.compile(r"\.(?:[sl]\d{1,9}|half[01])(?=\.)")


def explanation_section(estimate: PerformanceEstimate) -> Section:
    """What binds each phase, and by how much it would be shorter with one thing changed."""
    why = estimate.explanation
    if why is None:
        return section("What binds, and what would help")
    lines = [*_binding_lines("prefill", why.prefill), *_binding_lines("decode", why.decode)]
    if why.kv_transfer_ms > 0.0:
        share = why.kv_transfer_ms / (estimate.latency.ttft_ms or 1.0)
        lines.append(f"TTFT: {ms_text(why.kv_transfer_ms)} ({share:.0%}) carry the KV cache from prefill to decode")
    return section("What binds, and what would help", Bullets(tuple(lines)), _WHOLE_OPERATIONS)


def _binding_lines(phase: str, why: PhaseExplanation) -> Iterator[str]:
    shares = ", ".join(f"{part.share_pct:.0f}% {part.resource}" for part in why.resources if part.share_pct >= 0.5)
    yield f"{phase} is bound by {why.resources[0].resource if why.resources else NONE}: {shares} of its critical path"
    if why.hidden_communication_ms > 0.0:
        exposed, hidden = ms_text(why.exposed_communication_ms), ms_text(why.hidden_communication_ms)
        yield f"{phase}: {exposed} of communication exposed, {hidden} hidden behind computation"
    if why.bubble_pct > 0.0:
        yield f"{phase}: a stage waits for the others for {why.bubble_pct:.0f}% of the time"
    if why.expert_imbalance is not None:
        yield f"{phase}: the slowest expert group is taken at {why.expert_imbalance:.2f} times the mean load"
    for kind, word in (("change", "with"), ("removal", "without the")):
        chosen = [remedy for remedy in why.remedies if remedy.kind == kind]
        if chosen:
            yield f"{phase} would take " + ", ".join(
                f"{remedy.saves_pct:.0f}% less {_word(word, remedy)}{remedy.what}" for remedy in chosen[:STEPS_SHOWN]
            )


def _word(word: str, remedy: Remedy) -> str:
    """`with`, where the change is not itself a `without`."""
    return "" if remedy.what.startswith("without") else f"{word} "


def largest_costs(estimate: PerformanceEstimate) -> tuple[Block | None, Block | None]:
    """The largest costs of both phases; from the paths where nothing explains them."""
    why, path = estimate.explanation, estimate.critical_path
    if why is None:
        return _largest_steps("prefill", path.prefill), _largest_steps("decode", path.decode)
    return _costs("prefill", why.prefill), _costs("decode", why.decode)


def _costs(phase: str, why: PhaseExplanation) -> Block:
    rows = tuple(
        (
            cost.what,
            f"{cost.layers}" if cost.layers else NONE,
            ms_text(cost.ms),
            f"{cost.share_pct:.0f}%",
            cost.resource,
        )
        for cost in why.largest
    )
    columns = (
        Column(f"largest costs of {phase}", wraps=True),
        *Column.of_figures("layers", "time", "share"),
        Column("bound by"),
    )
    return Table(columns, rows)


def _largest_steps(phase: str, steps: tuple[PathStep, ...]) -> Block | None:
    """The operators that weigh most on a critical path; the same one in several stages or layer runs is one line."""
    if not steps:
        return None
    alike: dict[tuple[str, str], list[float]] = {}
    for step in steps:
        alike.setdefault((_POSITION.sub("", step.node).removeprefix(f"{phase}."), step.kind), []).append(step.ms)
    total_ms = sum(step.ms for step in steps) or 1.0
    largest = sorted(alike.items(), key=lambda item: -sum(item[1]))[:STEPS_SHOWN]
    rows = tuple((name, ms_text(sum(times)), f"{sum(times) / total_ms:.0%}", kind) for (name, kind), times in largest)
    columns = (
        Column(f"largest steps of {phase}", wraps=True),
        *Column.of_figures("time", "share"),
        Column("bound by"),
    )
    return Table(columns, rows)
