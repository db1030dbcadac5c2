"""No rule fires on a plan because of how it is written: each variant, over all base plans that it changes."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.rules.examples import DENSE, MOE, base_names, base_plan
from shardwright.tools.validate import validate

from ..plan.tiny import tiny_plan
from . import variant_graphs, variants
from .corruptions import halved_blocks, unrolled
from .variants import Variant

every_base = pytest.mark.parametrize("base", base_names())
SEEDS = (1, 2)
MIN_BASES = 1


def findings(document: dict[str, Any]) -> set[str]:
    return {f"{violation.rule} {violation.severity}" for violation in validate(document).violations}


@cache
def findings_of_base(base: str) -> set[str]:
    return findings(base_plan(base))


def check(variant: Variant, base: str) -> None:
    """Check that the variant of `base` has the findings of the base: none, or the same warning."""
    assert is_rewritten(variant, base)


def is_rewritten(variant: Variant, base: str) -> bool:
    """Whether the variant has something to rewrite in `base`; if so, checks that its findings are the base's."""
    for seed in SEEDS:
        document = variant(base_plan(base), random.Random(seed))
        if document is None:
            return False
        assert findings(document) == findings_of_base(base) <= {"GP005 warning"}, base
    return True


# Variants that have nothing to rewrite in some plans.
PARTIAL = (
    variants.permuted_ranks,
    variant_graphs.scattered,
    variants.experts_one_by_one,
    variants.experts_as_ranges,
    variants.experts_dealt_out,
    variants.with_kinds_in_other_words,
    variant_graphs.with_exchanges_on_one_device,
    variant_graphs.replicas_as_copies,
    variant_graphs.phases_on_devices_of_their_own,
)


@pytest.mark.thorough
@pytest.mark.parametrize("variant", PARTIAL, ids=lambda variant: variant.__name__)
def test_what_some_plans_can_be_written_as(variant: Variant) -> None:
    assert len([base for base in base_names() if is_rewritten(variant, base)]) >= MIN_BASES


@pytest.mark.one_in(5)
@every_base
def test_nodes_edges_and_keys_in_any_order(base: str) -> None:
    check(variants.shuffled, base)


@pytest.mark.one_in(5)
@every_base
def test_ids_of_any_characters(base: str) -> None:
    check(variants.renamed, base)


@pytest.mark.one_in(5)
@every_base
def test_devices_of_a_node_under_one_anothers_names(base: str) -> None:
    check(variants.permuted_devices, base)


@pytest.mark.one_in(5)
@every_base
def test_finer_splits_shown(base: str) -> None:
    check(variant_graphs.with_linear_nodes, base)


@pytest.mark.one_in(5)
@every_base
def test_bytes_on_edges(base: str) -> None:
    check(variants.with_bytes, base)


@pytest.mark.one_in(5)
@every_base
def test_edges_that_do_not_say_what_they_carry(base: str) -> None:
    check(variants.without_carries, base)


@pytest.mark.one_in(5)
@every_base
def test_optional_fields_left_out(base: str) -> None:
    check(variants.without_defaults, base)


@pytest.mark.one_in(5)
@every_base
def test_optional_fields_stated_with_their_default(base: str) -> None:
    check(variants.with_defaults, base)


@pytest.mark.one_in(5)
@every_base
def test_ranks_along_dimensions_that_split_nothing(base: str) -> None:
    check(variants.with_ranks_of_one, base)


@pytest.mark.one_in(5)
@every_base
def test_one_cache_write_for_each_shard(base: str) -> None:
    check(variant_graphs.with_a_cache_write_for_each_shard, base)


@pytest.mark.one_in(5)
@every_base
def test_relaxations_that_the_plan_does_not_need(base: str) -> None:
    check(variants.with_all_relaxations, base)


@pytest.mark.one_in(5)
@every_base
def test_fields_of_the_config_that_nobody_reads(base: str) -> None:
    check(variants.with_unknown_config_fields, base)


@pytest.mark.one_in(5)
@every_base
def test_every_layer_as_a_block_of_its_own(base: str) -> None:
    check(unrolled, base)


@pytest.mark.one_in(5)
@every_base
def test_every_layer_with_operators_of_its_own_in_one_block(base: str) -> None:
    check(variant_graphs.layers_side_by_side, base)


@pytest.mark.one_in(5)
@every_base
def test_blocks_cut_in_two_in_one_phase(base: str) -> None:
    check(halved_blocks, base)


@pytest.mark.parametrize("cut", [(1, 7), (5, 3), (2, 5, 1), (1, 1, 1, 5)])
@pytest.mark.parametrize("config", [DENSE, MOE], ids=["dense", "moe"])
def test_uneven_stages_stated_or_not(config: dict[str, Any], cut: tuple[int, ...]) -> None:
    ep = 2 if "num_experts" in config else 1
    degrees = PhaseStrategy(pp=len(cut), tp=2, tp_ffn=3 - ep, ep=ep, stage_layers=cut)
    document = tiny_plan(config, degrees, nodes=1).model_dump(mode="json")
    # Cuts as uneven as these are slow, not wrong.
    assert findings(document) == {"PP008 warning"}
    del document["strategy"]["prefill"]["stage_layers"], document["strategy"]["decode"]["stage_layers"]
    assert findings(document) == {"PP008 warning"}
