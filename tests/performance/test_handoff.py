"""What the hand-off from a prefill to a decode replica adds to the first token, engine by engine."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.engines.engine import Engine
from shardwright.tools.engines.names import ENGINES as KNOWN_ENGINES
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.benchmark import benchmark_of
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.planned_run import run_alone

ENGINES: dict[str, float] = {name: engine.handoff_s or 0.0 for name, engine in JUDGED.items()}
APART = {"tp": 2, "tp_ffn": 2, "replicas": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_phases_apart_take_the_hand_off_of_the_engine_and_say_so(engine: str, layout_of: Any) -> None:
    serving = {"engine": engine}
    together = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2}, serving=serving)
    apart = layout_of("Llama-3.1-8B", APART, decode=APART, dp=2, nodes=1, serving=serving)
    estimate = estimate_layout(apart)
    assert estimate.explanation is not None
    moved_s = estimate.explanation.kv_transfer_ms * 1e-3 + ENGINES[engine]
    assert run_alone(apart).ttft.mean >= run_alone(together).ttft.mean * 0.5 + moved_s
    assert any("hands a request" in note for note in estimate.notes) == (ENGINES[engine] > 0.0)
    assert not any("hands a request" in note for note in estimate_layout(together).notes)


@pytest.mark.parametrize("engine", [*KNOWN_ENGINES])
def test_a_check_is_offered_where_the_load_generator_of_the_engine_is_known(engine: str, layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": 1}, serving={"engine": engine})
    assert (benchmark_of(layout, "Llama-3.1-8B") is None) == (
        type(KNOWN_ENGINES[engine]).load_generator is Engine.load_generator
    )
