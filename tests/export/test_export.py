"""`export`: what is written starts the plan, on the devices and with the settings that the plan has, or is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import shardwright
from shardwright.tools.engines.names import ENGINES as KNOWN_ENGINES
from shardwright.tools.errors import InputError
from shardwright.tools.export.export import export
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.plan.layout import PhaseLayout
from shardwright.tools.plan.reader import read_document

from .placements import config_of, options, stages, world
from .plans import CASES, ENGINES, EXPORTED, REFUSED, exported, plan_named, run_script

# The flags that each engine's own parser knows, of those that may be written (its documentation of that version).
KNOWN: dict[str, set[str]] = {
    name: set(flags)
    for name, flags in json.loads(
        (Path(__file__).parents[1] / "cases" / "engine_flags.json").read_text(encoding="utf-8")
    ).items()
}


_ACCEPTED = {
    row["id"]: (row["environment"], row["arguments"])
    for row in json.loads((Path(__file__).parents[1] / "cases" / "accepted_commands.json").read_text(encoding="utf-8"))
}


def _phases(name: str) -> list[PhaseLayout]:
    """One phase of each replica, as the document has it."""
    layout = layout_from_view(read_document(plan_named(name)).view)
    return [replica.phases[0] for replica in layout.replicas]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_every_stage_runs_on_the_devices_of_the_plan(name: str, target: str) -> None:
    found = exported(name, target)
    assert not found.refused
    for server, phase in enumerate(_phases(name)):
        assert stages(found, server) == [list(stage.devices) for stage in phase.stages]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_the_degrees_make_as_many_ranks_as_the_replica_has_devices(name: str, target: str) -> None:
    found = exported(name, target)
    for server, phase in enumerate(_phases(name)):
        launch = next(one for one in found.launches if one.server == server)
        assert world(found, launch) == len(phase.devices)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_stages_have_the_layers_of_the_plan(name: str, target: str) -> None:
    """An engine is told where it would cut otherwise, and only there."""
    found, engine = exported(name, target), KNOWN_ENGINES[target]
    for server, phase in enumerate(_phases(name)):
        layers = tuple(last - first + 1 for first, last in (stage.layers for stage in phase.stages))
        launch = next(one for one in found.launches if one.server == server)
        if target == "trtllm":
            said = config_of(found, launch).get("pp_partition")
        else:
            text = launch.environment.get(f"{target.upper()}_PP_LAYER_PARTITION")
            said = None if text is None else [int(count) for count in text.split(",")]
        default = engine.default_cut(sum(layers), len(layers))
        assert said == (None if default == layers else list(layers))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_every_flag_and_key_is_the_engines_own(name: str, target: str) -> None:
    found = exported(name, target)
    for launch in found.launches:
        flags = set(options(launch.arguments))
        assert flags <= KNOWN[target], flags - KNOWN[target]
    keys = {key for file in found.files for key in yaml.safe_load(file.text)}
    assert keys <= KNOWN["trtllm yaml"], keys - KNOWN["trtllm yaml"]


def _but_length(arguments: Sequence[str]) -> list[str]:
    """The arguments without the longest request, which is any whole number to the engines' parsers."""
    place = next(i for i, one in enumerate(arguments) if one in ("--max-model-len", "--context-length")) + 1
    assert arguments[place].isdigit()
    return [*arguments[:place], *arguments[place + 1 :]]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "target"), [one for one in EXPORTED if one[1] != "trtllm"])
def test_the_engines_own_code_has_accepted_every_command(name: str, target: str) -> None:
    """What vLLM 0.33.0 and SGLang 0.5.23 accepted when they were asked (`benchmarks/engine_parsers.py`)."""
    # Context parallelism takes the runner of GPUs alone: it cannot be asked.
    unasked = {"--prefill-context-parallel-size"}
    written = {
        f"{name} > {target} #{place}": (launch.environment, _but_length(launch.arguments))
        for place, launch in enumerate(exported(name, target).launches)
        if unasked.isdisjoint(launch.arguments)
    }
    accepted = {
        one: (environment, _but_length(arguments))
        for one, (environment, arguments) in _ACCEPTED.items()
        if one.startswith(f"{name} > {target} #")
    }
    assert written == accepted


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), REFUSED)
def test_what_an_engine_cannot_run_is_refused_with_the_nearest_that_it_can(name: str, target: str) -> None:
    found, expected = exported(name, target), CASES["refused"][name][target]
    assert found.text is None and not found.launches and found.exit_status == 1
    assert any(expected["why"] in reason for reason in found.refused)
    assert found.nearest == expected["nearest"]
    if found.nearest_plan is not None:
        assert shardwright.validate(found.nearest_plan).valid
        assert not export(found.nearest_plan, target).refused


@pytest.mark.one_in(9)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("model", "hardware", "load"),
    [
        ("Mixtral-8x7B", "1x4:h100-sxm", {"concurrency": 16}),
        ("Qwen3-30B-A3B", "1x2:h100-sxm", {"concurrency": 64, "objective": "throughput"}),
        ("Llama-3.1-405B", "2x8:h100-sxm", {"concurrency": 16}),
    ],
)
def test_a_plan_that_was_made_for_an_engine_is_not_refused_by_it(
    model: str, hardware: str, load: dict[str, Any], engine: str
) -> None:
    stated = {"model": model, "hardware": hardware, "input_tokens": 2048, "output_tokens": 256, "engine": engine}
    found = shardwright.plan(**{**stated, **load})
    assert found.plan is not None
    assert not export(found.plan, engine).refused


@pytest.mark.parametrize(("name", "target"), [("phases and groups", target) for target in ENGINES])
def test_the_script_makes_on_each_node_the_calls_that_the_export_lists(name: str, target: str, tmp_path: Path) -> None:
    found = exported(name, target)
    assert found.text is not None
    addresses = {"N0": "10.0.0.1", "N1": "10.0.0.2", "N2": "10.0.0.3"}
    for node in dict.fromkeys(launch.node for launch in found.launches):
        error, calls = run_script(found.text, node, tmp_path, MODEL="/models/r1", **addresses)
        assert error == ""
        expected: list[list[str]] = []
        for launch in found.launches:
            if launch.node == node:
                words = [launch.environment["CUDA_VISIBLE_DEVICES"], *launch.arguments]
                for variable, address in {**addresses, "MODEL": "/models/r1"}.items():
                    words = [word.replace(f"${variable}", address) for word in words]
                expected.append(words)
        assert sorted(calls) == sorted(expected)


def test_a_missing_address_or_an_unknown_node_is_said(tmp_path: Path) -> None:
    text = exported("stages on nodes", "vllm").text
    assert text is not None
    error, calls = run_script(text, "n0", tmp_path)
    assert "the address of node n0" in error and not calls
    error, calls = run_script(text, "n7", tmp_path, N0="10.0.0.1")
    assert "no node n7" in error and not calls


def test_a_node_that_others_start_needs_an_address_too(tmp_path: Path) -> None:
    text = exported("phases and groups", "trtllm").text
    assert text is not None and "Run nothing on n2" in text
    error, calls = run_script(text, "n1", tmp_path, N0="10.0.0.1", N1="10.0.0.2")
    assert "the address of node n2" in error and not calls


def test_another_checkpoint_than_the_models_own_has_to_be_named(tmp_path: Path) -> None:
    text = exported("another checkpoint", "trtllm").text
    assert text is not None
    error, calls = run_script(text, "n0", tmp_path)
    assert "a checkpoint in nvfp4" in error and not calls
    assert run_script(text, "n0", tmp_path, MODEL="/models/fp4")[1]


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("name", ["x'; touch pwned; '", "$(touch pwned)", "a\ntouch pwned\n#", "`touch pwned`"])
def test_a_models_name_is_neverrun_script(name: str, target: str, tmp_path: Path) -> None:
    plan = plan_named("tensor")
    hostile = plan.model_copy(update={"model": plan.model.model_copy(update={"name": name})})
    text = export(hostile, target).text
    assert text is not None
    error, calls = run_script(text, "n0", tmp_path)
    assert error == "" and not (tmp_path / "pwned").exists()
    assert any(name in call for call in calls)


def test_a_models_name_is_never_a_flag() -> None:
    plan = plan_named("tensor")
    hostile = plan.model_copy(update={"model": plan.model.model_copy(update={"name": "--trust-remote-code"})})
    assert "would be read as a flag" in export(hostile, "vllm").refused[0]


def test_what_is_predicted_is_what_is_started_and_the_check_says_what_to_expect() -> None:
    plan = plan_named("tensor")
    serving = {"engine": "vllm", "max_batch": 48, "prefill_chunk_tokens": 4096}
    stated = {**plan.model_dump(mode="json"), "serving": serving}
    found = export(stated, "vllm")
    said = options(found.launches[0].arguments)
    assert said["--max-num-seqs"] == "48" and said["--max-num-batched-tokens"] == "4096"
    assert said["--gpu-memory-utilization"] == "0.9" and said["--max-model-len"] == "2048"
    estimate = shardwright.estimate(stated)
    assert found.benchmark == estimate.benchmark and found.benchmark is not None
    assert found.text is not None and f"# {found.benchmark.command}\n" in found.text


def test_a_limit_that_the_engine_misses_is_told_and_not_refused() -> None:
    plan = plan_named("tensor")
    tight = plan.model_copy(update={"workload": plan.workload.model_copy(update={"tpot_ms_max": 1.0})})
    found = export(tight, "sglang")
    assert not found.refused and any("above the limit of 1 ms" in remark for remark in found.remarks)


def test_another_engine_takes_the_place_of_the_one_that_is_named() -> None:
    plan = plan_named("tensor")
    named = {**plan.model_dump(mode="json"), "serving": {"engine": "sglang", "engine_version": "0.5.0"}}
    assert not any("version" in remark for remark in export(named, "vllm").remarks)
    assert any("names version 0.5.0" in remark for remark in export(named, "sglang").remarks)


@pytest.mark.parametrize("source", [{}, "{}", '{"nodes": 3}'])
def test_what_is_no_plan_or_no_target_is_one_line(source: Any) -> None:
    with pytest.raises(InputError, match="no plan document"):
        export(source, "vllm")
    with pytest.raises(InputError, match="one of vllm, sglang, trtllm, kubernetes, docker-compose"):
        export(plan_named("tensor"), "helm")
