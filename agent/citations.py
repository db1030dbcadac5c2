"""Which sections of the knowledge base a result rests on: what decided for its strategy, and rules against others.

A section is cited as file § heading; `shardwright explain` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..knowledge.citation_table import citation_table
from ..tools.performance.limits import stated_limits
from ..tools.plan.document import PhaseStrategy, Strategy, WorkloadBlock

MAX_CITATIONS = 8
# Sections and numbers of the documents that the rules were made from: whoever reads a report has not got them.
_OF_DESIGN = re.compile(r"00\d |(?:rules )?R\d")

# The section that decides for each objective.
OBJECTIVE_SECTIONS = {"latency": "tradeoff.latency", "throughput": "tradeoff.throughput", "cost": "tradeoff.cost"}
# The section by which each part of a strategy is chosen.
STRATEGY_SECTIONS = {
    "tp": "tp.domain",
    "pp": "pp.memory",
    "ep": "moe.choice",
    "sp": "sp.when",
    "attention_dp": "ep.attention-dp",
    "dp": "dp.throughput",
    "disaggregated": "tradeoff.disaggregation",
}
LIMITS_SECTION = "tradeoff.limits"


def citations(workload: WorkloadBlock, strategy: Strategy, rules: Iterable[str]) -> tuple[str, ...]:
    """The sections behind a strategy for `workload` and behind `rules`, which decided against others; each once."""
    sections = citation_table().sections
    cited = (*(sections[section_id] for section_id in _section_ids(workload, strategy)), *rule_citations(rules))
    return tuple(dict.fromkeys(cited))[:MAX_CITATIONS]


def rule_citations(rules: Iterable[str]) -> tuple[str, ...]:
    """The section that says most of each rule; names that are no rule's id are skipped."""
    by_rule = citation_table().rules
    # A search names some of its reasons in words: those are no rules.
    return tuple(by_rule[rule] for rule in dict.fromkeys(rules) if rule in by_rule)


def public_sources(sources: Iterable[str]) -> str:
    """The `sources` that a reader can look up, each once; "" if there are none."""
    return "; ".join(dict.fromkeys(source for source in sources if not _OF_DESIGN.match(source)))


def _section_ids(workload: WorkloadBlock, strategy: Strategy) -> Iterator[str]:
    yield OBJECTIVE_SECTIONS[workload.objective]
    if stated_limits(workload):
        yield LIMITS_SECTION
    used = set(_used(strategy.prefill)) | set(_used(strategy.decode))
    apart = strategy.prefill.replicas is not None or strategy.decode.replicas is not None
    if apart:
        used.add("disaggregated")
    elif strategy.dp > 1:
        used.add("dp")
    for part, section_id in STRATEGY_SECTIONS.items():
        if part in used:
            yield section_id


def _used(phase: PhaseStrategy) -> Iterator[str]:
    """The degrees of a phase that are more than one."""
    for name, degree in phase.model_dump(exclude_none=True).items():
        if isinstance(degree, int) and degree > 1:
            yield name
