"""CO001: DP, PP, SP, EP and TP are the only dimensions of parallelism, and each has one name.

Looks at names alone: keys of the strategy, of ranks and of nodes, node types, steps of `construction` and `reasoning`,
relaxations. It reads no meaning into free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, get_args

from msgspec import Struct

from ...plan.document import (
    NODE_MODELS,
    ConstructionStep,
    PhaseStrategy,
    Rank,
    ReasoningStepName,
    Relaxation,
    Strategy,
)
from ...plan.schema import pointer, shown
from ...plan.view import PHASES, NodeView, PlanView, as_list, as_mapping, as_str
from ..base import MAX_NODES, Example, Finding, Rule, Violation, set_top
from ..findings import Change, steps_of, value_at
from .dimension_names import Dimension, rank_of, read_dimension

_STRATEGY_FIELDS = Strategy.model_fields.keys() | PhaseStrategy.model_fields.keys()
_RANK_FIELDS = Rank.model_fields.keys()
_NODE_FIELDS = frozenset(chain.from_iterable(model.model_fields for model in NODE_MODELS.values()))
_KNOWN_WORDS = frozenset(chain.from_iterable(map(get_args, (ConstructionStep, ReasoningStepName, Relaxation))))


class _Named(Struct, frozen=True):
    """A name with its place, and the dimension that it means."""

    name: str
    dimension: Dimension
    path: str
    scope: str


def _finding(named: _Named, value: Any, nodes: Sequence[NodeView] = ()) -> Finding:
    degree = named.dimension.degree
    if named.dimension.defined:
        message = f"{named.scope} names {shown(named.name)}; this dimension is written {degree!r}"
    else:
        message = f"{named.scope} names the dimension {shown(named.name)}; only DP, PP, SP, EP and TP are defined"
    remedy = f"write it as {degree!r}, if that is what is meant" if degree else "leave the dimension out"
    return Finding(
        "other-name" if named.dimension.defined else "undefined",
        message,
        named.path,
        nodes[:MAX_NODES],
        (),
        value,
        degree,
        remedy,
    )


def _block(block: Mapping[str, Any], path: str, scope: str) -> Iterator[Finding]:
    for key, value in block.items():
        if key in _STRATEGY_FIELDS:
            continue
        dimension = read_dimension(key)
        if dimension is not None:
            yield _finding(_Named(key, dimension, path + pointer([key]), scope), value)
            continue
        dimension = read_dimension(value) if isinstance(value, str) else None
        if dimension is not None and not dimension.defined:
            yield _finding(_Named(value, dimension, path + pointer([key]), scope), value)


def _words(view: PlanView) -> Iterator[Finding]:
    """Steps and relaxations named after a dimension that is none of the five."""
    lists = {
        "/construction": [as_str(item) for item in as_list(view.raw.get("construction"))],
        "/reasoning": [as_str(as_mapping(item).get("step")) for item in as_list(view.raw.get("reasoning"))],
        "/policy/relaxations": [as_str(item) for item in as_list(view.policy.get("relaxations"))],
    }
    for path, words in lists.items():
        for position, word in enumerate(words):
            dimension = None if word is None or word in _KNOWN_WORDS else read_dimension(word)
            if word is not None and dimension is not None and not dimension.defined:
                yield _finding(_Named(word, dimension, f"{path}/{position}", path[1:].replace("/", ".")), word)


def _named_by(node: NodeView) -> Iterator[_Named]:
    dimension = read_dimension(node.type)
    if dimension is not None and not dimension.defined:
        yield _Named(node.type, dimension, f"{node.path}/type", f"the type of {shown(node.id)}")
    for key in as_mapping(node.raw.get("rank")):
        # A rank is a place along each dimension, so any other key of it names one; PP and EP rank no shard (CO004).
        rank = rank_of(key)
        if key not in _RANK_FIELDS and rank not in ("pp", "ep"):
            named = read_dimension(key)
            dimension = Dimension(rank, defined=named is not None and named.defined)
            yield _Named(key, dimension, f"{node.path}/rank{pointer([key])}", f"the rank of {shown(node.id)}")
    for key in node.raw:
        dimension = None if key in _NODE_FIELDS else read_dimension(key)
        if dimension is not None and not dimension.defined:
            yield _Named(key, dimension, node.path + pointer([key]), f"node {shown(node.id)}")


def _nodes(view: PlanView) -> Iterator[Finding]:
    """One finding for each name, at the first node that has it."""
    first: dict[str, _Named] = {}
    users: dict[str, list[NodeView]] = {}
    for node in view.nodes:
        for named in _named_by(node):
            first.setdefault(named.name, named)
            users.setdefault(named.name, []).append(node)
    for name, named in first.items():
        yield _finding(named, name, users[name])


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every name of a dimension that the format does not define."""
    yield from _block(view.strategy, "/strategy", "strategy")
    for phase in PHASES:
        yield from _block(as_mapping(view.strategy.get(phase)), f"/strategy/{phase}", f"strategy.{phase}")
    yield from _words(view)
    yield from _nodes(view)


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Rename a defined dimension of the strategy to this format's name, unless that is stated too."""
    steps = steps_of(violation.path, view.raw) or ()
    if len(steps) < 2 or steps[0] != "strategy":
        return
    dimension = read_dimension(str(steps[-1]))
    value = value_at(view.raw, steps)
    if dimension is None or not dimension.defined or dimension.degree is None or type(value) is not int:
        return
    yield Change("remove", steps)
    of_phases = len(steps) == 2 and dimension.degree != "dp"
    blocks = [(steps[0], phase) for phase in PHASES] if of_phases else [steps[:-1]]
    for block in blocks:
        stated = as_mapping(view.strategy if len(block) == 1 else view.strategy.get(str(block[1])))
        if dimension.degree not in stated and (len(block) == 1 or block[1] in view.strategy):
            yield Change("set", (*block, dimension.degree), value)


RULE = Rule(
    id="CO001",
    name="undefined dimension of parallelism",
    requirement="Only DP, PP, SP, EP and TP; any other dimension (CP, ZeRO, FSDP, hybrid) is rejected by name.",
    rationale=(
        "A dimension that is not defined has no place in the graph, no communication and no cost; the training-only "
        "ones (ZeRO, FSDP) split optimizer states that inference does not have."
    ),
    source="000 §5",
    remedy="say it with DP, PP, SP, EP and TP, or leave it out",
    visits="parts",
    check=check,
    bad=Example("dense-sp2-tp2", (set_top("/strategy/prefill/cp", 2),)),
    mend=mend,
)
