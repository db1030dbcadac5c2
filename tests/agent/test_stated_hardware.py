"""Hardware is stated as a cluster, in words or by name, and an error has the argument's name as it was used."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.agent.intent.cluster import said_hardware
from shardwright.agent.intent.complete import complete
from shardwright.tools.errors import InputError
from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.request import read_request
from shardwright.tools.language.said import Said

SMALL: dict[str, Any] = {"model": "Llama-3.2-1B", "input_tokens": 512, "output_tokens": 32}
CLUSTERS = [
    ("8xH100", 1, 8), ("8 x H100", 1, 8), ("8*h100-sxm", 1, 8), ("16xH100", 2, 8), ("2 nodes of 4 H100", 2, 4),
    ("2x4:h100", 2, 4), ("H100 x 4", 1, 4), ("DGX H100", 1, 8),
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("text", "nodes", "gpus"), CLUSTERS)
def test_a_cluster_is_read_from_an_argument(text: str, nodes: int, gpus: int) -> None:
    plan = shardwright.plan(**SMALL, hardware=text).plan
    assert plan is not None
    hardware = plan.hardware
    assert (hardware.accelerator, hardware.nodes, hardware.gpus_per_node) == ("h100-sxm", nodes, gpus)


@pytest.mark.parametrize("text", ["", "8", "h100.yaml", "8 GPUs", "8 H100, no pp", "8 H100 and Llama-3.1-8B", "fast"])
def test_what_is_no_hardware_is_refused_with_the_forms_that_are_read(text: str) -> None:
    with pytest.raises(InputError, match=r"is no hardware; write NODESxGPUS:ACCELERATOR .* words \(8xH100"):
        shardwright.plan(**SMALL, hardware=text)


def test_the_flag_reads_what_the_argument_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--model", "Llama-3.2-1B", "--hardware", "8 x H100"]) == 0
    assert "on 1 node × 8 h100-sxm" in capsys.readouterr().out
    assert run(["plan", "--model", "Llama-3.2-1B", "--hardware", "hw.yaml"]) == 2
    assert "'--hardware': 'hw.yaml' is no hardware; write NODESxGPUS" in capsys.readouterr().err


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"ttft_ms": -1}, "ttft_ms: "),
    ({"tpot_ms": 0}, "tpot_ms: "),
    ({"tpot_ms_max": 0}, "tpot_ms_max: "),
    ({"input_tokens": 0}, "input_tokens: "),
    ({"workload": {"ttft_ms_max": -1}}, "workload.ttft_ms_max: "),
    ({"workload": {"ttft_ms": -1}}, "workload.ttft_ms: "),
]


@pytest.mark.parametrize(("arguments", "begins"), WRONG, ids=str)
def test_an_error_calls_an_argument_what_the_caller_did(arguments: dict[str, Any], begins: str) -> None:
    stated: dict[str, Any] = {**SMALL, "hardware": "8xH100", **arguments}
    with pytest.raises(InputError) as caught:
        shardwright.plan(**stated)
    assert str(caught.value).startswith(begins)


def test_arguments_that_there_are_are_listed_once_and_each_can_be_given() -> None:
    with pytest.raises(TypeError) as caught:
        shardwright.plan(**SMALL, zzz=1)  # pyright: ignore[reportCallIssue]
    listed = str(caught.value).partition("there are ")[2].split(", ")
    assert len(listed) == len({name.removesuffix("_max") for name in listed})
    assert "stated" not in listed and {"hardware", "ttft_ms"} <= set(listed)


def test_a_call_that_lacks_an_argument_names_the_function_and_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"export\(\): missing a required argument: 'to'; it takes document, to"):
        shardwright.export("plan.json")  # pyright: ignore[reportCallIssue]


# Words for hardware, the variant that is taken, and the others that they may mean.
VARIANTS: list[tuple[str, str, str | None]] = [
    ("8 A100", "a100-80gb-sxm", "a100-40gb-sxm, a100-40gb-pcie or a100-80gb-pcie"),
    ("8 H100s", "h100-sxm", "h100-pcie or h100-nvl"),
    ("8 A100-80GB", "a100-80gb-sxm", "a100-80gb-pcie"),
    ("8 A100s with 80GB each", "a100-80gb-sxm", "a100-80gb-pcie"),
    ("2 DGX A100", "a100-80gb-sxm", "a100-40gb-sxm"),
    ("8 A100 80GB SXM", "a100-80gb-sxm", None),
    ("2 DGX H100", "h100-sxm", None),
    ("one p5.48xlarge", "h100-sxm", None),
    ("4 h100-nvl", "h100-nvl", None),
    ("8 H200", "h200-sxm", "h200-nvl"),
    ("8 H200 SXM", "h200-sxm", None),
]


@pytest.mark.parametrize(("words", "taken", "others"), VARIANTS)
def test_a_variant_that_nobody_named_is_assumed_by_name(words: str, taken: str, others: str | None) -> None:
    in_words = complete(read_request(f"Llama-3.1-8B on {words}"))
    as_option = complete(Said(model="Llama-3.1-8B"), Said.model_validate(said_hardware(words)))
    as_brief = complete(read_brief([("brief.md", f"# Llama-3.1-8B\n\nWe have {words}.")]))
    for intent in (in_words, as_option, as_brief):
        assumed = [assumption for assumption in intent.assumptions if assumption.field == "hardware.accelerator"]
        assert intent.hardware is not None and intent.hardware.accelerator == taken
        assert [assumption.value for assumption in assumed] == ([taken] if others else [])
        assert all(assumption.reason.endswith(f"not {others}") for assumption in assumed)


def test_a_card_that_a_later_statement_names_in_full_is_not_assumed() -> None:
    intent = complete(read_request("Llama-3.1-8B on 8 A100"), Said(accelerator="a100-40gb-pcie"))
    assert not [assumption for assumption in intent.assumptions if assumption.field == "hardware.accelerator"]


@pytest.mark.parametrize(("hardware", "billed"), [("at most 4 L4", 1), ("no more than 4 L4", 1), ("4 L4", 4)])
def test_of_the_most_that_may_be_used_only_what_is_used_is_paid_for(hardware: str, billed: int) -> None:
    result = shardwright.plan(f"Llama-3.2-1B at 1 request/s, 512 in, 64 out, cheapest, on {hardware}")
    assert result.plan is not None and result.estimate is not None and result.estimate.cost is not None
    assert result.plan.strategy.gpu_count == 1
    assert result.estimate.cost.billed_gpus == billed
