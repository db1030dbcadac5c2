"""The name of a quantised checkpoint brings its block of scales, or says that it is not known."""

import json
from pathlib import Path

import pytest

from shardwright.tools.catalog.dtypes import weight_bytes_per_element
from shardwright.tools.catalog.model_mentions import mentions
from shardwright.tools.catalog.models import find_model

CASES = json.loads((Path(__file__).parent.parent / "cases" / "checkpoints.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("written", "name", "linear", "expert", "block"), CASES["known"])
def test_a_checkpoint_carries_its_quantisation(
    written: str, name: str, linear: str, expert: str, block: int | None
) -> None:
    entry = find_model(written)
    model = entry.architecture()
    assert (entry.name, model.native_dtypes.linear, model.native_dtypes.expert) == (name, linear, expert)
    assert model.scale_block == block and entry.unknown is None
    assert {model.native_dtypes.vocabulary, model.native_dtypes.router, model.native_dtypes.norm} == {"bf16"}
    assert find_model(entry.name) == entry


@pytest.mark.parametrize("written", CASES["unknown"])
def test_scales_that_nobody_states_are_said_to_be_unknown(written: str) -> None:
    entry = find_model(written)
    assert entry.unknown is not None and entry.base is not None
    assert entry.architecture() == find_model(entry.base).architecture()
    assert find_model(entry.name).unknown == entry.unknown


@pytest.mark.parametrize("written", [case[0] for case in CASES["known"]] + CASES["unknown"])
def test_a_checkpoint_is_found_whole_in_running_text(written: str) -> None:
    (mention,) = mentions(f"Serve {written} on 8 H100, 2k in and 256 out")
    assert mention.words == written and mention.entry == find_model(written)
    assert mention.weights is not None


def test_a_wider_group_of_int4_weights_takes_fewer_scales() -> None:
    # vLLM's log of hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4: 37.09 GiB of weights.
    model = find_model("Llama-3.1-70B-Instruct-AWQ").architecture()
    vocabulary = sum(tensor.elements for tensor in (*model.embedding_tensors, *model.lm_head_tensors))
    bytes_each = weight_bytes_per_element("int4", model.scale_block)
    total = (model.total_params - vocabulary) * bytes_each + 2 * vocabulary
    assert total / 2**30 == pytest.approx(37.09, rel=0.01)
    assert bytes_each < weight_bytes_per_element("int4")


def test_the_ffn_of_qwens_72b_is_padded_where_it_is_split_by_groups() -> None:
    assert find_model("Qwen2.5-72B-Instruct-AWQ").config["intermediate_size"] == 29696
    assert find_model("Qwen2.5-72B-Instruct").config["intermediate_size"] == 29568
