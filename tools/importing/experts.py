"""Flags of experts that change nothing: of a model that has none, or in the figures alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..catalog.architecture import Architecture
from ..engines.vocabulary import VALUELESS
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
