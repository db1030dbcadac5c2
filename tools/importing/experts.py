"""What a plan makes of flags of experts: where the shared expert runs, and flags that change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..catalog.architecture import Architecture
from ..engines.vocabulary import VALUELESS
from .group import Group
from .servers import Server

_OF_EXPERTS = ("ep", "over_all", "tp_expert", "eplb")
# Flags of experts that no figure covers, with what they do.
_UNTIMED = {
    "all_to_all": "the all-to-all of experts is timed alike on all backends; DeepEP, which sends each token to its "
    "experts alone, may be faster",
    "eplb": "experts change ranks while it serves, which evens out the skew of routing; the figures have all of it",
}


def without_effect(servers: Iterable[Server], architecture: Architecture) -> Iterator[str]:
    """Flags of experts that change nothing: the model has none, or no figure covers what they do."""
    for flags in (server.commands[0].flags for server in servers):
        for concept in () if architecture.is_moe else _OF_EXPERTS:
            if flags.on(concept) and flags.text(concept) != "1":
                yield f"{flags.written[concept]} changes nothing: the model has no experts"
        for concept, effect in _UNTIMED.items() if architecture.is_moe else ():
            # Halves of a batch overlap on a backend made for it; the figures cover that by the overlap.
            if flags.on(concept) and not (concept == "all_to_all" and flags.on("two_batch")):
                value = "" if flags.values[concept] == VALUELESS else f" {flags.values[concept][:40]}"
                yield f"{flags.written[concept]}{value} is known and not in the figures: {effect}"


def has_shared_alone(group: Group, architecture: Architecture) -> bool:
    """Whether each rank runs the shared expert for its own attention group, which a plan states as `tp_ffn` 1."""
    return _holds_whole(group, architecture) and group.context * group.tp == 1


def _holds_whole(group: Group, architecture: Architecture) -> bool:
    return group.shared_is_whole and any(layer.shared is not None for layer in architecture.layer_kinds)


def shared_otherwise(servers: Iterable[Server], architecture: Architecture) -> Iterator[str]:
    """What runs otherwise than planned because a plan has one degree for dense FFNs and the shared expert."""
    dense = sum(layer.ffn is not None for layer in architecture.layers)
    for group in (server.group for server in servers):
        if not _holds_whole(group, architecture) or group.tp_ffn == 1 or group.width == 1:
            continue
        if not has_shared_alone(group, architecture):
            yield (
                f"each rank runs the shared expert whole, for its part of the tokens; the plan has it as TP "
                f"{group.tp_ffn}, for it can say that of ranks with attention of their own alone"
            )
        elif dense:
            yield (
                f"each rank runs the shared expert whole; the plan, and what is exported of it, has the {dense} dense "
                f"FFNs of {architecture.num_layers} layers so too, which the command cuts over {group.tp_ffn} ranks: a "
                "plan has one degree for both"
            )
