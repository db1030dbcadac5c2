"""What a rule reports: a finding as it yields it, and the violation that a report lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..plan.view import EdgeView, NodeView

# Nodes that a finding names at most, and names that its message lists.
MAX_NODES = 64
MAX_NAMES = 16
Severity = Literal["error", "warning"]
FixKind = Literal["local", "re-plan", "report", "none"]


class Violation(BaseModel):
    """One finding: which rule and which of its messages, where, what stands there, what would pass, how to mend it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    message_id: str = ""
    severity: Severity
    message: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    path: str = ""
    fix: FixKind = "none"
    source: str = ""
    value: Any = None
    expected: Any = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check yields: a violation less what the rule itself knows. `where` gives the JSON Pointer.

    What `where` is, is named before the `nodes`; of several nodes that are alike it is the first, and all are named.
    `message_id` names the offence within the rule, so that programs can tell findings apart without reading `message`.
    `severity` is that of the rule, but where a rule's gravity depends on the plan (the engine that it names); `fix` is
    that of the rule, but where no repair may change what this finding is of (the request itself).
    `lacks` are the types of node whose absence is found, `unlinked` the edges: where such a node hangs in a wrong
    place, or such an edge leads elsewhere, that is the fault, and this finding only follows from it.
    """

    message_id: str
    message: str
    where: NodeView | EdgeView | Sequence[NodeView] | str = ""
    nodes: Sequence[NodeView | str] = ()
    edges: Sequence[EdgeView] = ()
    value: Any = None
    expected: Any = None
    remedy: str = ""
    severity: Severity | None = None
    fix: FixKind | None = None
    lacks: Sequence[str] = ()
    unlinked: Sequence[tuple[NodeView, NodeView]] = ()
