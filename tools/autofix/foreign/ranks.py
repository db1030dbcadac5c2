"""A table of ranks ("rank 2 is tp_rank 0 of pp_rank 1 on cuda:2") as stages with their devices in TP order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .figures import Place, PlacesOf, span_of, whole_number
from .lexicon import concept_of, words_of
from .scope import Item, Scope
from .shapes import is_object

_MOST_RANKS = 100_000


@dataclass(frozen=True, slots=True)
class RankTable:
    """The degrees that a table of ranks shows, and its stages."""

    degrees: dict[str, int]
    stages: list[Item]


@dataclass(frozen=True, slots=True)
class _Row:
    tp: int
    pp: int
    device: Place
    layers: tuple[int, int] | None


def stages_of_ranks(rows: list[Any], scope: Scope, places_of: PlacesOf) -> RankTable | None:
    """The table as stages; `None` where a row lacks its device or its place, or the rows make no full grid."""
    read = [_row(place, row, places_of) for place, row in enumerate(rows[:_MOST_RANKS]) if is_object(row)]
    known = [row for row in read if row is not None]
    if not known or len(known) != len(rows) or len(rows) > _MOST_RANKS:
        return None
    tp, pp = 1 + max(row.tp for row in known), 1 + max(row.pp for row in known)
    if len({(row.tp, row.pp) for row in known}) != tp * pp or len(known) != tp * pp:
        return None
    stages: list[Item] = []
    for index in range(pp):
        own = sorted((row for row in known if row.pp == index), key=lambda row: row.tp)
        layers = {row.layers for row in own}
        stages.append(
            Item(
                "PipelineStageNode",
                None,
                scope.where,
                scope.phase,
                index=index,
                layers=layers.pop() if len(layers) == 1 else None,
                devices=[row.device for row in own],
            )
        )
    return RankTable({"tp": tp, "pp": pp}, stages)


def _row(place: int, row: dict[str, Any], places_of: PlacesOf) -> _Row | None:
    fields = {words_of(str(key)): value for key, value in list(row.items())[:40]}
    ranks = {name: whole_number(fields.get(f"{name} rank", 0)) for name in ("tp", "pp")}
    if fields.get("tp rank") is None and fields.get("pp rank") is None:
        return None
    named = next(
        (value for key, value in row.items() if concept_of(str(key)) in ("devices", "accelerator") and key != "rank"),
        None,
    )
    devices = places_of(named if named is not None else fields.get("rank", place))
    layers = next((span_of(value) for key, value in row.items() if concept_of(str(key)) == "layers"), None)
    tp, pp = ranks["tp"], ranks["pp"]
    if tp is None or pp is None or devices is None or len(devices) != 1:
        return None
    return _Row(tp, pp, devices[0], layers)
