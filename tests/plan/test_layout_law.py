"""A layout that is written as a document is read back as it was placed: over the whole space and all base plans."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.layout import Layout
from shardwright.tools.plan.layout_reader import read_layout
from shardwright.tools.plan.placement import StageMaker, even_cut, place
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.examples import base_names, base_plan
from shardwright.tools.rules.registry import all_rules
from shardwright.tools.search.space import SpaceRequest

from ..examples import examples
from ..spaces import draw_strategy
from .test_builder_properties import CONFIGS
from .tiny import MOE

# Purely dense stages between stages with experts, which are wider than attention.
_EVERY_OTHER: dict[str, Any] = {**MOE, "decoder_sparse_step": 2}
_HYBRID: dict[str, Any] = base_plan("hybrid-tp2-ep2-pp2")["model"]["config"]
MODELS = {**CONFIGS, "every other layer": _EVERY_OTHER, "hybrid": _HYBRID}
# Counts of nodes and of GPUs per node; names of more than ten GPUs are not in alphabetical order.
SIZES = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (3, 2), (2, 8), (2, 12), (12, 1)]
RELAXATIONS = ("attention_dp", "kv_sequence_decode", "tp_in_expert", "vocab_parallel", "redundant_experts")


def placed(document: dict[str, Any], redundant_experts: int = 0) -> Layout | None:
    """The layout of the strategy that `document` declares."""
    policy, hardware = PolicyBlock.model_validate(document["policy"]), document["hardware"]
    architecture = read_architecture(document["model"]["config"])
    maker = StageMaker(architecture, frozenset(policy.relaxations), redundant_experts)
    strategy = Strategy.model_validate(document["strategy"])
    return place(strategy, maker, nodes=hardware["nodes"], gpus_per_node=hardware["gpus_per_node"])


def read(document: dict[str, Any]) -> Layout:
    """The layout that the graph of `document` shows."""
    return read_layout(PlanView(document), read_architecture(document["model"]["config"]))


def with_any_cut(draw: st.DrawFn, degrees: PhaseStrategy, layers: int) -> PhaseStrategy:
    """`degrees` with any cut of the layers and any exchange of sequence shards."""
    ends = sorted(draw(st.permutations(range(1, layers)))[: degrees.pp - 1]) if degrees.pp > 1 else []
    sizes = tuple(end - start for start, end in zip([0, *ends], [*ends, layers], strict=True))
    cut = draw(st.sampled_from([None, sizes, even_cut(layers, degrees.pp)]))
    kind = draw(st.sampled_from([None, "all_gather", "ulysses"])) if degrees.sp > 1 else None
    return degrees.model_copy(update={"stage_layers": cut, "sp_kind": kind})


# Accepting every rule puts legal strategies that are not proposed unasked into the space too.
EVERY_RULE = frozenset(rule.id for rule in all_rules())


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A plan of any strategy of the space, with replicas for both phases or for one each."""
    config, (nodes, gpus) = MODELS[draw(st.sampled_from(sorted(MODELS)))], draw(st.sampled_from(SIZES))
    architecture, allowed = read_architecture(config), draw(st.sets(st.sampled_from(RELAXATIONS)))
    apart = draw(st.booleans()) and nodes * gpus > 1
    strategy = draw_strategy(
        draw, SpaceRequest(architecture, nodes, gpus, 16384, frozenset(allowed), apart, accepted=EVERY_RULE)
    )
    layers = architecture.num_layers
    cut = {name: with_any_cut(draw, getattr(strategy, name), layers) for name in ("prefill", "decode")}
    request = BuildRequest(
        model=ModelBlock(name="tiny", config=config),
        hardware=HardwareBlock(accelerator="h100-sxm", nodes=nodes, gpus_per_node=gpus),
        workload=WorkloadBlock(input_tokens=16384, output_tokens=64, concurrency=2),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        strategy=strategy.model_copy(update=cut),
        policy=PolicyBlock.model_validate({"relaxations": sorted(allowed)}),
    )
    return build_plan(request).model_dump(mode="json")


@pytest.mark.thorough
@examples(300)
@given(documents())
def test_what_is_read_of_what_was_written_is_what_was_placed(document: dict[str, Any]) -> None:
    # Layouts are large: a failure prints the declared strategy instead of their difference.
    is_same = read(document) == placed(document)
    assert is_same, document["strategy"]


@pytest.mark.parametrize("name", base_names())
def test_base_plans_are_read_as_they_were_placed(name: str) -> None:
    document = base_plan(name)
    is_same = read(document) == placed(document, 4 if name == "relaxed-redundant-experts" else 0)
    assert is_same, document["strategy"]


@pytest.mark.parametrize("name", base_names())
def test_a_layout_says_the_strategy_that_it_was_made_of(name: str) -> None:
    document = base_plan(name)
    read_strategy = read(document).strategy
    stated = Strategy.model_validate(document["strategy"])
    assert (read_strategy.dp, read_strategy.gpu_count) == (stated.dp, stated.gpu_count)
    for drawn, declared in ((read_strategy.prefill, stated.prefill), (read_strategy.decode, stated.decode)):
        assert drawn == declared.model_copy(update={"sp_kind": drawn.sp_kind})
        assert drawn.sp_kind in (declared.sp_kind, "all_gather" if drawn.sp > 1 else None)
