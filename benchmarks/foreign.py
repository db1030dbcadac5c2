"""Prints for every foreign proposal what was read of it, what of that the repaired plan kept, and what it changed.

    python benchmarks/foreign.py [NAME …]

What a proposal says is the table beside it (tests/cases/foreign/expected.json), not what the reader made of it. What it
leaves out is completed by `DEFAULTS`. The exit status is 1 where something was misread, or was changed although no rule
and no limit says why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from shardwright.tests.autofix.foreign.proposals import Proposal, differences, proposals
from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.autofix.foreign.reader import ReadProposal, read_proposal
from shardwright.tools.autofix.intent import PlanDefaults
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import HardwareBlock, Strategy, WorkloadBlock

# What a foreign proposal leaves out: some common nodes and a short load.
DEFAULTS = PlanDefaults(
    hardware=HardwareBlock(accelerator="h200-sxm", nodes=4, gpus_per_node=8),
    workload=WorkloadBlock(input_tokens=1024, output_tokens=128),
)


class Outcome(Struct, frozen=True):
    """One line of the table."""

    name: str
    misread: list[str]
    read: list[str]
    kept: list[str]
    changed: list[str]
    why: list[str]
    result: FixResult

    @property
    def is_accounted_for(self) -> bool:
        """Whether all was read as it was said, and every change has its reason."""
        return not self.misread and (not self.changed or bool(self.why))


def outcome_of(proposal: Proposal) -> Outcome:
    """What became of `proposal`."""
    read = read_proposal(proposal.text)
    result = autofix(proposal.text, request=DEFAULTS)
    kept: list[str] = []
    changed: list[str] = []
    for name, before, after in _decided(read, result.document or {}):
        if before == after:
            kept.append(f"{name} {before}")
        else:
            changed.append(f"{name} {before} → {after}")
    misread = differences(read, proposal.expected)
    stated = [name for name in proposal.expected if name not in ("says", "absent", "not_understood")]
    return Outcome(proposal.name, misread, stated, kept, changed, list(_reasons(result)), result)


def _decided(read: ReadProposal, plan: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What was read that an author decides, and what the plan has in its place."""
    document = read.document or {}
    model = document.get("model", {}).get("name")
    if model is not None:
        yield "model", model, plan.get("model", {}).get("name")
    for block in ("hardware", "workload", "precision", "policy"):
        for name, value in document.get(block, {}).items():
            yield name, value, plan.get(block, {}).get(name)
    strategy = plan.get("strategy", {})
    for name, value in document.get("strategy", {}).items():
        if isinstance(value, dict):
            for degree, number in value.items():
                yield f"{name} {degree}", number, strategy.get(name, {}).get(degree, 1)
        else:
            yield name, value, strategy.get(name)
    devices = _devices(document)
    if devices:
        after = _devices(plan)
        yield "devices", len(devices), len(devices & after)


def _devices(document: dict[str, Any]) -> set[str]:
    return {device for node in document.get("nodes", ()) for device in node.get("devices", ())}


def _reasons(result: FixResult) -> Iterator[str]:
    """Why what was decided could not be kept."""
    if result.replanned is not None:
        yield f"re-planned, distance {result.replanned.distance:.2f}"
    changes = sorted({fix.rule for fix in result.fixes if fix.safety == "strategy"})
    if changes:
        yield f"by {', '.join(changes)}"
    yield from result.unfixed
    if result.infeasible is not None:
        yield f"{result.infeasible.rule}: {result.infeasible.reason}"


def strategy_text(result: FixResult) -> str:
    """What became of the strategy, in one line."""
    if result.replanned is not None:
        return f"{describe(result.replanned.before)} -> {describe(result.replanned.after)}"
    if not result.valid or result.document is None:
        return "; ".join(result.unfixed)[:90]
    return describe(Strategy.model_validate(result.document["strategy"]))


def main(names: list[str]) -> int:
    """Print the table; 1 where a proposal was misread or changed without a reason."""
    rows = [outcome_of(proposal) for proposal in proposals() if not names or proposal.name in names]
    for row in rows:
        print(f"{row.name}: {'valid' if row.result.valid else 'NOT valid'}, {strategy_text(row.result)}")
        print(f"  read     {', '.join(row.read)}" + (f"; MISREAD {'; '.join(row.misread)}" if row.misread else ""))
        print(f"  kept     {len(row.kept)} of {len(row.kept) + len(row.changed)}: {', '.join(row.kept)}")
        if row.changed:
            print(f"  changed  {'; '.join(row.changed)} ({'; '.join(row.why) or 'NO REASON'})")
    fine = sum(row.is_accounted_for for row in rows)
    kept, changed = sum(len(row.kept) for row in rows), sum(len(row.changed) for row in rows)
    valid = sum(row.result.valid for row in rows)
    print(f"{len(rows)} proposals: {valid} valid, {fine} accounted for; {kept} decisions kept, {changed} changed")
    return 0 if fine == len(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
