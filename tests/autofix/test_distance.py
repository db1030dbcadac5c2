"""Each weight of the distance decides the comparison that it is there for: with another value the order turns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from shardwright.tools.autofix.distance import WEIGHTS, distance
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import gpu_count

NONE, MANY = 0.0, 10.0


def _of(prefill: Mapping[str, object], decode: Mapping[str, object] | None = None, dp: int = 1) -> Strategy:
    """`dp` replicas with these degrees, `prefill`'s in both phases if `decode` is `None`; `tp_ffn` defaults to `tp`."""
    sides = [
        PhaseStrategy.model_validate({"tp_ffn": side.get("tp", 1), **side}) for side in (prefill, decode or prefill)
    ]
    strategy = Strategy(dp=dp, gpu_count=1, prefill=sides[0], decode=sides[1])
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})


TP2, TP4, PP2 = {"tp": 2}, {"tp": 4}, {"pp": 2}
SIX, EP2 = {"pp": 6, "stage_layers": [2, 1, 1, 1, 1, 2]}, {"tp": 4, "ep": 2}
MOE = {"tp": 2, "ep": 2, "tp_ffn": 1}
HALF_TP = {"tp": 2, "tp_ffn": 4}
ULYSSES = {"sp": 2, "tp": 2, "tp_ffn": 4, "sp_kind": "ulysses"}
# A weight, the factor that turns the order, the author's strategy, the nearer one, and the other.
DECIDED: list[tuple[str, float, Strategy, Strategy, Strategy]] = [
    ("replicas", NONE, _of({"pp": 3}), _of(PP2), _of(PP2, dp=2)),
    ("gpus", NONE, _of(TP4), _of(TP2, dp=2), _of(TP2)),
    ("share", NONE, _of(TP4), _of(TP2, dp=2), _of(HALF_TP)),
    ("follow", NONE, _of(TP4), _of(TP2, dp=2), _of(HALF_TP)),
    ("tp", NONE, _of(TP2, dp=2), _of(TP2), _of({}, dp=2)),
    ("attention", NONE, _of(TP2, dp=2), _of(TP2), _of({}, dp=2)),
    ("tp_ffn", NONE, _of(TP2, dp=2), _of(TP2), _of({}, dp=2)),
    ("ep", NONE, _of(MOE, dp=2), _of(MOE), _of({}, dp=2)),
    ("pp", NONE, _of({"pp": 2, "tp": 2}), _of(PP2), _of(TP2)),
    ("sp", MANY, _of(ULYSSES, TP4), _of(TP4), _of({**ULYSSES, "tp": 1, "tp_ffn": 2}, TP2, dp=2)),
    ("attention_dp", MANY, _of({**HALF_TP, "attention_dp": 2}), _of(TP4), _of({"attention_dp": 2, "tp_ffn": 2}, dp=2)),
    ("kv_sp", MANY, _of(TP4, {**HALF_TP, "kv_sp": 2}), _of(TP4), _of(TP2, {"kv_sp": 2, "tp_ffn": 2}, dp=2)),
    ("tp_expert", MANY, _of({**EP2, "tp_expert": 2}), _of({"tp": 4, "ep": 4}), _of({"tp": 2, "tp_expert": 2}, dp=2)),
    ("disaggregation", NONE, _of(PP2, TP2), _of(PP2), _of({**PP2, "replicas": 1}, {**TP2, "replicas": 1}, dp=2)),
    ("layout", NONE, _of(TP4), _of(TP2, dp=2), _of({"sp": 2, "tp": 2, "tp_ffn": 4}, TP2)),
    ("exchange", MANY, _of(ULYSSES, TP4), _of({**ULYSSES, "sp_kind": "all_gather"}, TP4), _of(TP4)),
    ("boundary", MANY, _of(SIX), _of({"pp": 6}), _of({"pp": 5, "stage_layers": [2, 1, 1, 1, 3]})),
]


@pytest.mark.parametrize(("weight", "times", "author", "nearer", "other"), DECIDED, ids=[row[0] for row in DECIDED])
def test_a_weight_decides_a_comparison(
    weight: str, times: float, author: Strategy, nearer: Strategy, other: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _gained(author, nearer, other) > 0
    monkeypatch.setitem(WEIGHTS, weight, WEIGHTS[weight] * times)
    assert _gained(author, nearer, other) < 1e-9


def _gained(author: Strategy, nearer: Strategy, other: Strategy) -> float:
    """By how much `nearer` is closer to `author` than `other` is; models with experts have no dense FFN here."""
    has_ffn = author.prefill.ep == 1
    return distance(author, other, has_ffn=has_ffn) - distance(author, nearer, has_ffn=has_ffn)


def test_every_weight_decides_something() -> None:
    assert {row[0] for row in DECIDED} == WEIGHTS.keys()
