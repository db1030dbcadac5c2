"""What flips the answer: each flip is what a separate search finds, and what is reported to hold does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.catalog.models import find_model
from shardwright.tools.performance.layout import facts_of
from shardwright.tools.plan.document import HardwareBlock, PrecisionBlock, WorkloadBlock
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.search import search
from shardwright.tools.search.sensitivity import changes, sensitivity


def request(workload: WorkloadBlock, *, gpus: int = 2, concurrency_open: bool = False) -> SearchRequest:
    hardware = HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=gpus)
    return SearchRequest(
        architecture=find_model("llama-3.1-8b").architecture(),
        hardware=hardware,
        facts=facts_of(hardware, find_accelerator("h100-sxm")),
        workload=workload,
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        concurrency_open=concurrency_open,
    )


LOAD = WorkloadBlock(input_tokens=2048, output_tokens=256, concurrency=64)


def test_lengths_load_and_limits_are_changed_and_nothing_else() -> None:
    stated = LOAD.model_copy(update={"tpot_ms_max": 10.0, "min_tokens_per_second": 100.0})
    changed = {change.words: change.workload for change in changes(request(stated))}
    assert len(changed) == 10
    moved = {
        "2x the input tokens (4,096)": ("input_tokens", 4096),
        "half the output tokens (128)": ("output_tokens", 128),
        "2x the requests in flight (128)": ("concurrency", 128),
        "TPOT limit 20% tighter (8 ms)": ("tpot_ms_max", 8.0),
        "TPOT limit 20% looser (12 ms)": ("tpot_ms_max", 12.0),
        "floor of output tokens/s 20% tighter (120 tokens/s)": ("min_tokens_per_second", 120.0),
    }
    for words, (field, value) in moved.items():
        workload = changed[words]
        assert workload is not None
        assert getattr(workload, field) == pytest.approx(value)
        assert workload.model_copy(update={field: getattr(stated, field)}) == stated


def test_a_stated_range_is_scaled_with_its_length() -> None:
    ranged = LOAD.model_copy(update={"input_tokens_range": (1, 2048)})
    longer, *_ = [change.workload for change in changes(request(ranged)) if "2x the input" in change.words]
    shorter, *_ = [change.workload for change in changes(request(ranged)) if "half the input" in change.words]
    assert longer is not None and longer.input_tokens_range == (2, 4096)
    assert shorter is not None and shorter.input_tokens_range == (1, 1024)


def test_an_open_number_of_requests_and_a_single_token_are_not_halved() -> None:
    single = LOAD.model_copy(update={"output_tokens": 1})
    words = [change.words for change in changes(request(single, concurrency_open=True))]
    assert words == ["2x the input tokens (4,096)", "2x the output tokens (2)", "half the input tokens (1,024)"]


def test_a_length_beyond_the_model_s_positions_is_said_and_not_searched() -> None:
    long = LOAD.model_copy(update={"input_tokens": 100_000})
    asked = request(long)
    outcome = sensitivity(asked, search(asked))
    assert [text for text in outcome.impossible if "131,072 positions" in text] == list(outcome.impossible)
    assert len(outcome.impossible) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_each_flip_and_each_that_holds_is_what_a_search_of_its_own_finds(objective: str) -> None:
    load = LOAD.model_copy(update={"objective": objective, "tpot_ms_max": 18.0, "output_tokens": 64})
    asked = request(load)
    result = search(asked)
    assert result.best is not None
    outcome = sensitivity(asked, result)
    flips = {flip.change: flip for flip in outcome.flips}
    for change in changes(asked):
        assert change.workload is not None
        best = search(replace(asked, workload=change.workload)).best
        if change.words in outcome.unchanged:
            assert best is not None and best.strategy == result.best.strategy
        else:
            flip = flips.pop(change.words)
            assert flip.after == best
            assert flip.before == result.best
            assert best is None or best.strategy != result.best.strategy
    assert flips == {}


@pytest.mark.thorough
def test_a_limit_just_above_the_best_figure_flips_to_nothing_when_it_is_tightened() -> None:
    best = search(request(LOAD)).best
    assert best is not None and best.tpot_ms is not None
    tight = request(LOAD.model_copy(update={"tpot_ms_max": best.tpot_ms * 1.01}))
    flip = next(flip for flip in sensitivity(tight, search(tight)).flips if "TPOT limit 20% tighter" in flip.change)
    assert flip.before is not None
    assert flip.after is None
    assert flip.kept is not None and not flip.kept.feasible


@pytest.mark.thorough
def test_a_limit_just_below_what_can_be_had_flips_to_a_plan_when_it_is_loosened() -> None:
    least = min(candidate.tpot_ms for candidate in search(request(LOAD)).candidates if candidate.tpot_ms is not None)
    missed = request(LOAD.model_copy(update={"tpot_ms_max": least * 0.95}))
    result = search(missed)
    assert result.best is None
    flip = next(flip for flip in sensitivity(missed, result).flips if "TPOT limit 20% looser" in flip.change)
    assert flip.before is None and flip.kept is None
    assert flip.after is not None and flip.after.feasible
