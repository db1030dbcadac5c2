"""A search whose time is over answers with the best of what it looked at, and says what it left out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from msgspec.structs import replace

from shardwright.tools.checkpoint import best_so_far, watched
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.search import search, search_anew
from shardwright.tools.search.sizing import fewest_gpus

from .requests import search_request

REQUEST = search_request("Llama-3.1-8B-Instruct", (1, 4, "h100-sxm"), input_tokens=512, output_tokens=64)
APART = replace(REQUEST, disaggregated=True)


def over_after(looks: int) -> Callable[[], bool]:
    """A clock that calls the time over after `looks` looks."""
    seen = count()
    return lambda: next(seen) >= looks


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", [REQUEST, APART], ids=["together", "apart"])
@pytest.mark.parametrize("looks", [0, 1, 3])
def test_the_answer_when_the_time_is_over_is_the_best_of_what_was_looked_at(asked: SearchRequest, looks: int) -> None:
    whole = search(asked)
    with best_so_far(over_after(looks)) as limit:
        result = search_anew(asked)
    assert result.best is not None and whole.best is not None
    # A partial answer never beats the full search.
    assert (result.best.end_to_end_ms or 0.0) >= (whole.best.end_to_end_ms or 0.0) * (1 - 1e-9)
    assert result.left_out == limit.left_out
    assert result.left_out or result == whole


def test_a_search_with_time_enough_is_the_one_without_a_limit() -> None:
    with best_so_far(lambda: False) as limit:
        result = search_anew(APART)
    assert result == search(APART)
    assert result.left_out == limit.left_out == ()


def test_no_cluster_is_called_the_smallest_when_the_time_was_over_before_it_was_looked_at() -> None:
    with best_so_far(lambda: True) as limit:
        assert fewest_gpus(REQUEST, 8, at_most=64) is None
    assert limit.left_out[0] == "some of the clusters of up to 8 accelerators"


def test_what_an_inner_search_leaves_out_is_said_with_where() -> None:
    with best_so_far(over_after(1)) as limit:
        fewest_gpus(APART, 8, at_most=8)
    assert limit.left_out and all("clusters of up to 8 accelerators" in part for part in limit.left_out)


def test_who_watches_sees_what_a_search_does_and_where() -> None:
    shown: list[str] = []
    with watched(shown.append):
        search_anew(REQUEST)
    assert shown[0].startswith("screening layouts") and shown[-1].startswith("simulating the load")
    shown.clear()
    with watched(shown.append), best_so_far(lambda: False):
        fewest_gpus(REQUEST, 8, at_most=8)
    assert shown and all(line.endswith("(clusters of up to 8 accelerators)") for line in shown)
