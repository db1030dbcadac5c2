"""The shorthand that `describe` writes is read back as the same strategy, and no other text is read."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.stated.strategy import read_block
from shardwright.tests.search.questions import Question, drawn_questions
from shardwright.tests.spaces import draw_strategy
from shardwright.tools.catalog.models import find_model
from shardwright.tools.plan.describe import describe, read_shorthand
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import even_cut, gpu_count

from ..examples import examples

QUESTIONS = list(islice(drawn_questions(seed=29, most_gpus=16), 24))


def read_back(text: str, asked: Question) -> Strategy | None:
    """The strategy that `text` names, completed for the question; `None` if it names none."""
    short = read_shorthand(text)
    # Without a named DP replicas would fill the hardware; `describe` omits DP for a single replica.
    return None if short is None else read_block({"dp": 1, **short}, asked.search.architecture, asked.search.hardware)


def cut_otherwise(draw: st.DrawFn, strategy: Strategy, layers: int) -> Strategy:
    """`strategy`, or a copy with another layer on the first stage of each phase with several stages."""
    if not draw(st.booleans()):
        return strategy
    phases: dict[str, Any] = {}
    for name in ("prefill", "decode"):
        phase: PhaseStrategy = getattr(strategy, name)
        cut = list(even_cut(layers, phase.pp))
        if phase.pp > 1 and cut[-1] > 1:
            cut = [cut[0] + 1, *cut[1:-1], cut[-1] - 1]
            phases[name] = phase.model_copy(update={"stage_layers": tuple(cut)})
    return strategy.model_copy(update=phases)


@examples(150)
@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    asked = data.draw(st.sampled_from(QUESTIONS))
    architecture = asked.search.architecture
    drawn = data.draw(st.composite(lambda draw: draw_strategy(draw, asked.search.space))())
    strategy = data.draw(st.composite(lambda draw: cut_otherwise(draw, drawn, architecture.num_layers))())
    strategy = strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
    text = describe(strategy, has_split_ffn=architecture.has_split_ffn)
    assert read_back(text, asked) == strategy, text


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("Llama-3.1-8B", "TP2 × FFN-TP1"),  # a dense FFN that is whole on each device
        ("DeepSeek-V2-Lite", "EP2 × TP2 × FFN-TP1"),  # a shared expert that is
        ("Mixtral-8x7B", "EP2 × TP2"),  # neither of them: there is nothing to say
    ],
)
def test_a_whole_ffn_is_told_from_a_split_one(model: str, shown: str) -> None:
    architecture = find_model(model).architecture()
    phase = PhaseStrategy(tp=2, ep=2 if architecture.is_moe else 1)
    strategy = Strategy(dp=1, gpu_count=2, prefill=phase, decode=phase)
    assert describe(strategy, has_split_ffn=architecture.has_split_ffn) == shown


def test_a_strategy_that_splits_no_experts_has_an_ffn() -> None:
    replicated = PhaseStrategy(tp=4)
    assert describe(Strategy(dp=1, gpu_count=4, prefill=replicated, decode=replicated)) == "TP4 × FFN-TP1"
    split = replicated.model_copy(update={"tp_ffn": 4})
    assert describe(Strategy(dp=1, gpu_count=4, prefill=split, decode=split)) == "TP4"


@pytest.mark.parametrize(
    "text", ["", "TP", "TP8 or PP8", "TP8 TP4", "DP2", "TP8 (layers 40+x)", "TP8 please", "2P1D", "TP" + "9" * 30]
)
def test_what_is_not_wholly_the_shorthand_is_not_read(text: str) -> None:
    assert read_shorthand(text) is None
