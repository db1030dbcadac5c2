"""Degrees and settings that launch commands in a text state, beyond the words that replace them.

A command is a whole strategy for as many servers as it starts. Words win over it: degrees of another layout, or
replicas that fill the GPUs, leave open what the words do not name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...importing.signs import may_launch
from ...plan.constraints import DegreeConstraint, ReplicasConstraint
from ...plan.document import PHASES, PhaseStrategy, Strategy
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..said import StatedDegrees, StatedStrategy

if TYPE_CHECKING:
    from ...importing.spans import Started

# Words to keep the layout of the command, which is kept anyway.
_KEEPS_LAYOUT = Gated(
    r"(?:(?:please\s)?keep(?:ing)?|preserve|stay\swith|stick\s(?:to|with)|(?:do\snot|don't|never)\s(?:change|touch|alter|modify))"
    r"\s(?:(?:the|this|that|our|its|same|exact(?:ly)?|current|existing|as)\s){0,3}"
    r"(?:layout|parallelism|parallel(?:\s(?:strategy|layout|degrees|config(?:uration)?|settings?))?|split|sharding|degrees|command|flags)(?![a-z])"
    r"|(?:保持|维持|保留|沿用|不要?(?:改变?|动|调整)|别(?:改变?|动))(?:现有|当前|目前|这个|这种|该|原有|原来|的){0,3}"
    r"(?:并行(?:方式|策略|配置|度)?|布局|切分(?:方式)?|命令|启动参数)(?:不变)?",
)
_FILLS = Gated(
    r"as\smany\s(?:replicas|copies|servers|instances)|fill(?:ing)?\s(?:up\s)?(?:all|the|every|each|both|those|these|my|our|\d)"
    r"|replicat(?:e|ed|ing)(?![a-z])|(?:use|using)\s(?:all|every|the\swhole)(?![a-z])|占满|用满|填满|跑满|(?:尽可能|尽量)多",
)
_DEGREES = ("tp", "tp_ffn", "pp", "ep", "sp", "attention_dp")


# The readers of commands are loaded where there may be one.


def with_commands_in_words(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with words in place of its launch commands, and how those were read; unchanged where they are unknown."""
    if not may_launch(text):
        return text, ()
    from ...importing.spans import in_place

    return in_place(text)


def leave_unplanned(text: str, claims: Claims) -> None:
    """List what no plan holds of the launch commands in `text`."""
    if may_launch(text):
        from ...importing.spans import not_planned

        for words in not_planned(text):
            claims.leave_unread(words)


def claim_started(text: str, page: Page, claims: Claims) -> None:
    """Claim what launch commands in `text` start, as far as words of `page` do not say otherwise."""
    if not may_launch(text):
        return
    from ...importing.spans import started_by

    started = started_by(text)
    if started is None:
        return
    settings: dict[str, Any] = {
        "max_batch": started.scheduling.max_sequences,
        "prefill_chunk_tokens": started.scheduling.token_budget,
        "overlap": "two_batch" if started.scheduling.overlaps else None,
        "kv_offload": started.scheduling.kv_offload,
    }
    for name, value in settings.items():
        if value is not None:
            claims.claim(name, value, started.words)
    page.take_all(_KEEPS_LAYOUT)
    if started.strategy is not None:
        _claim_strategy(started, started.strategy, page, claims)


def _claim_strategy(started: Started, strategy: Strategy, page: Page, claims: Claims) -> None:
    """Complete the stated strategy from a command: its number of servers, and its degrees where the layout fits."""
    stated: StatedStrategy = claims.values.get("strategy") or StatedStrategy()
    degrees = {phase: _completed(getattr(stated, phase), getattr(strategy, phase), claims) for phase in PHASES}
    update: dict[str, Any] = {} if None in degrees.values() else dict(degrees)
    constraints = claims.values.get("constraints", ())
    is_counted = stated.gpus is not None or any(isinstance(c, ReplicasConstraint) for c in constraints)
    is_apart = strategy.prefill.replicas is not None
    if stated.dp is None and not is_counted and not is_apart and not _FILLS.search(page.original):
        update["dp"] = strategy.dp
        several = f"{started.servers} servers" if started.servers > 1 else "one server"
        claims.reading(
            f"{started.words!r} starts {several}: as many are planned, and other GPUs stay free (ask for as many "
            "replicas as fit to fill them)"
        )
    if not claims.has("disaggregated"):
        claims.claim("disaggregated", is_apart, started.words)
    claims.replace("strategy", stated.model_copy(update=update), claims.words.get("strategy", started.words))


def _completed(degrees: StatedDegrees, started: PhaseStrategy, claims: Claims) -> StatedDegrees | None:
    """The stated degrees of a phase with the command's; `None` where they are of another layout."""
    ruled = {c.value.name for c in claims.values.get("constraints", ()) if isinstance(c, DegreeConstraint)}
    stated = degrees.model_dump(exclude_none=True, exclude={"replicas"})
    if any(degree != (getattr(started, name) or 1) for name, degree in stated.items()):
        return None
    update = {name: getattr(started, name) or 1 for name in _DEGREES if name not in stated and name not in ruled}
    return degrees.model_copy(update={**update, "replicas": degrees.replicas or started.replicas})
