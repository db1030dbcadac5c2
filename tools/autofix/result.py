"""The result of auto-fix: the document as read, the fixes, the plan that they give, what remains; and its certificate.

The certificate can be replayed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from ..checkpoint import checked
from ..errors import InputError
from ..frozen import Frozen
from ..input.bounds import INDEX
from ..plan.degrees import DEGREE_NAMES
from ..plan.document import PHASES, PhaseStrategy, Plan, Strategy
from ..plan.placement import even_cut
from ..plan.reader import read_text
from ..plan.view import as_mapping
from ..rules.base import Violation
from ..validate import validate
from ..verify import FORMAT, certificate_sha256, content_sha256
from .edits import Patched
from .fix import Safety
from .settled_cut import stage_sizes

# The value of a field that is left out; `None` if it has none.
_LEFT_OUT: Mapping[str, object] = {
    **dict.fromkeys(("pp", *DEGREE_NAMES), 1),
    "sp_kind": "all_gather",
}
_LONGEST = 40
_MOST = int(INDEX.most)


class AppliedFix(Frozen):
    """One fix that was made: the rule whose finding it mends, and its RFC 6902 JSON Patch.

    `safety`: `safe` keeps the meaning, `strategy` changes what the author decided, `display` what is only shown.
    """

    rule: str
    description: str
    safety: Safety
    patch: tuple[dict[str, Any], ...]


class Replanning(Frozen):
    """How far the nearest legal strategy is from what the author decided; `distance` as `moves` add up to it.

    `is_nearest`: whether every nearer strategy was looked at.
    """

    before: Strategy
    after: Strategy
    distance: float
    moves: tuple[str, ...]
    is_nearest: bool


class Needs(Frozen):
    """The smallest cluster of the same accelerator that would do; without `gpus` none up to what was tried."""

    accelerator: str
    gpus: int | None = None
    nodes: int | None = None
    note: str


class Closest(Frozen):
    """A valid plan for what was asked less one thing."""

    change: str
    plan: Plan


class Infeasible(Frozen):
    """Why no legal plan exists: the rule that binds, by how much, the least hardware that would do, what is closest."""

    rule: str
    reason: str
    shortfall_bytes: int | None = None
    needs: Needs | None = None
    closest: tuple[Closest, ...] = ()


class Withheld(Frozen):
    """Findings that stay because their fixes were not asked for: how many further repair would mend, and by what.

    `by`: `safe_only` asked for no change of what was decided, `rules` for the fixes of named rules alone.
    """

    findings: int
    by: tuple[Literal["safe_only", "rules"], ...]


class FixResult(Frozen):
    """The outcome of auto-fix: applying the patches in order to `read` gives `document`, which JSON calls `plan`.

    `valid` is what validation of it said; `remaining` are the findings that it still has. `unfixed` says in one
    line each why no more could be done, `infeasible` why no plan exists, `replanned` what became of the strategy,
    `strategy_changes` every decision that its strategy block states otherwise than that of `read`, `load_changes` every
    field of the load that was stated and is another now or was not understood, `withheld` what stays because its fixes
    were not asked for, `left_out` what was not looked at since the time was over, `notes` how a proposal in another
    form was read.
    """

    format: Literal["shardwright/fix"] = "shardwright/fix"
    version: Literal["1"] = "1"
    valid: bool
    rounds: int
    fixes: tuple[AppliedFix, ...] = ()
    remaining: tuple[Violation, ...] = ()
    unfixed: tuple[str, ...] = ()
    strategy_changes: tuple[str, ...] = ()
    load_changes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    replanned: Replanning | None = None
    withheld: Withheld | None = None
    infeasible: Infeasible | None = None
    notes: tuple[str, ...] = ()
    read: dict[str, Any] | None
    document: dict[str, Any] | None = Field(alias="plan")

    @cached_property
    def plan(self) -> Plan | None:
        """The document as a plan, as `plan(...).plan` is one; `None` where what remains keeps it from being one.

        It is always there where the result is valid. `document` is the same as JSON, word for word.
        """
        if self.document is None:
            return None
        try:
            return Plan.model_validate(self.document)
        except ValidationError:
            return None

    @cached_property
    def undone(self) -> tuple[str, ...]:
        """The `strategy_changes` of what the strategy block stated and the graph did not show: the graph was kept.

        Repair with `keep_strategy` rebuilds the graph for what was stated.
        """
        if self.replanned is not None or not self.valid:
            return ()
        return tuple(strategy_changes(self.read, self.document, only_decided=True))

    @model_serializer(mode="wrap")
    def _as_plan(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"plan" if name == "document" else name: value for name, value in handler(self).items()}


def strategy_changes(
    read: Mapping[str, Any] | None, plan: Mapping[str, Any] | None, *, only_decided: bool = False
) -> Iterator[str]:
    """One line for each decision that differs: `prefill tp_ffn 8 -> 1`, `dp 2 -> 1`; none where there is no plan.

    What was left out and is what the format takes for left out is no change. `only_decided`: of what was stated,
    without the number of GPUs, which follows from the rest. It never raises.
    """
    if plan is None:
        return
    before, after = as_mapping((read or {}).get("strategy")), as_mapping(plan.get("strategy"))
    fields: list[tuple[str, object, object, object]] = [("dp", before.get("dp"), after.get("dp"), 1)]
    if before.get("gpu_count") is not None and not only_decided:
        fields.append(("gpu_count", before["gpu_count"], after.get("gpu_count"), None))
    for phase in PHASES:
        old, new = as_mapping(before.get(phase)), as_mapping(after.get(phase))
        for name in PhaseStrategy.model_fields:
            fields.append((f"{phase} {name}", old.get(name), new.get(name), _LEFT_OUT.get(name)))
    for what, stated, planned, left_out in fields:
        if stated is not None or not only_decided:
            yield from _change(what, stated, planned, left_out=left_out)


def load_changes(
    read: Mapping[str, Any] | None, plan: Mapping[str, Any] | None, doubts: Mapping[str, str]
) -> Iterator[str]:
    """One line for each field of the load that was stated and is another now: `concurrency -4 -> 1`.

    `doubts`: what was said of fields that were given in words that were not understood. It never raises.
    """
    if plan is None:
        return
    before, after = as_mapping((read or {}).get("workload")), as_mapping(plan.get("workload"))
    for name, stated in before.items():
        if stated is not None and not _same(stated, after.get(name)):
            yield f"{name[:_LONGEST]} {_shown(stated)} -> {_shown(after.get(name))}"
    for field, words in doubts.items():
        block, _, name = field.partition(".")
        if block == "workload" and name not in before:
            yield f"{words} -> {name} {_shown(after.get(name))}"


def _same(before: object, after: object) -> bool:
    """Whether two values mean the same; a number as text equals that number."""
    is_plain = isinstance(before, str | int | float) and isinstance(after, str | int | float)
    return _normalised(before, None) == _normalised(after, None) if is_plain else before == after


def _change(what: str, before: object, after: object, *, left_out: object) -> Iterator[str]:
    if _normalised(before, left_out) != _normalised(after, left_out):
        yield f"{what} {_shown(before)} -> {_shown(after if after is not None else left_out)}"


def _normalised(value: object, left_out: object) -> object:
    """A value in comparable form: a number as text becomes that number, an even cut becomes `None`."""
    if value is None:
        return left_out
    if isinstance(value, str):
        text = value.strip()
        return int(text) if len(text) < len(str(_MOST)) and text.isascii() and text.isdigit() else value
    if isinstance(value, int | float):
        return value
    sizes = _sizes(value)
    return None if sizes is not None and sizes == even_cut(sum(sizes), len(sizes)) else sizes or "unreadable"


def _sizes(value: object) -> tuple[int, ...] | None:
    sizes = stage_sizes(value)
    return sizes if sizes and max(sizes) <= _MOST else None


def _shown(value: object) -> str:
    """`value` as text for people, whatever its type."""
    if value is None:
        return "not stated"
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, int | float) and abs(value) <= _MOST:
        return f"{value}"
    sizes = _sizes(value)
    return f"{list(sizes[:_LONGEST])}" if sizes is not None else "unreadable"


def certificate(proposal: str, result: FixResult) -> dict[str, Any]:
    """The certificate of `result`, which `autofix` gave for the text `proposal`, as JSON values.

    Raises InputError: nothing was read of the text.
    """
    document: Any = result.read
    if document is None:
        raise InputError("nothing was read that could be repaired, so there is nothing to certify")
    fixes: list[dict[str, Any]] = []
    digest = content_sha256(document)
    patched = Patched(document)
    for fix in checked(result.fixes, 1):
        patch = [dict(operation) for operation in fix.patch]
        patched.apply(patch)
        after = content_sha256(patched.document)
        fixes.append(
            {
                "rule": fix.rule, "safety": fix.safety, "description": fix.description, "patch": patch,
                "before": digest, "after": after,
            }
        )  # fmt: skip
        digest = after
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": "1",
        "shardwright": version("shardwright"),
        "proposal": proposal,
        "proposal_sha256": hashlib.sha256(proposal.encode("utf-8", "surrogatepass")).hexdigest(),
        "reading": "as it stands" if read_text(proposal).raw == result.read else "translated",
        "read": result.read,
        "fixes": fixes,
        "plan_sha256": digest,
        "report": json.loads(validate(patched.document).model_dump_json()),
    }
    return {**content, "certificate_sha256": certificate_sha256(content)}
