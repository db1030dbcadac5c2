"""`export` writes commands that start the plan on its devices with its settings, or refuses."""

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

# Flags that an export may write and the engine's own parser knows (from its documentation of that version).
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
    """The first phase of each replica, from the document."""
    layout = layout_from_view(read_document(plan_named(name)).view)
    return [replica.phases[0] for replica in layout.replicas]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_every_stage_runs_on_the_devices_of_the_plan(name: str, target: str) -> None:
    result = exported(name, target)
    assert not result.refused
    for server, phase in enumerate(_phases(name)):
        assert stages(result, server) == [list(stage.devices) for stage in phase.stages]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_the_degrees_make_as_many_ranks_as_the_replica_has_devices(name: str, target: str) -> None:
    result = exported(name, target)
    for server, phase in enumerate(_phases(name)):
        launch = next(launch for launch in result.launches if launch.server == server)
        assert world(result, launch) == len(phase.devices)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_stages_have_the_layers_of_the_plan(name: str, target: str) -> None:
    """A cut is written where the engine's default differs, and only there."""
    result, engine = exported(name, target), KNOWN_ENGINES[target]
    for server, phase in enumerate(_phases(name)):
        layers = tuple(last - first + 1 for first, last in (stage.layers for stage in phase.stages))
        launch = next(launch for launch in result.launches if launch.server == server)
        if target == "trtllm":
            partition = config_of(result, launch).get("pp_partition")
        else:
            text = launch.environment.get(f"{target.upper()}_PP_LAYER_PARTITION")
            partition = None if text is None else [int(count) for count in text.split(",")]
        default = engine.default_cut(sum(layers), len(layers))
        assert partition == (None if default == layers else list(layers))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), EXPORTED)
def test_every_flag_and_key_is_the_engines_own(name: str, target: str) -> None:
    result = exported(name, target)
    for launch in result.launches:
        flags = set(options(launch.arguments))
        assert flags <= KNOWN[target], flags - KNOWN[target]
    keys = {key for file in result.files for key in yaml.safe_load(file.text)}
    assert keys <= KNOWN["trtllm yaml"], keys - KNOWN["trtllm yaml"]


def _but_length(arguments: Sequence[str]) -> list[str]:
    """The arguments without the value of the longest request: the engines' parsers take any whole number."""
    place = next(i for i, word in enumerate(arguments) if word in ("--max-model-len", "--context-length")) + 1
    assert arguments[place].isdigit()
    return [*arguments[:place], *arguments[place + 1 :]]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "target"), [row for row in EXPORTED if row[1] != "trtllm"])
def test_the_engines_own_code_has_accepted_every_command(name: str, target: str) -> None:
    """The commands are those that vLLM 0.33.0 and SGLang 0.5.23 accepted (`benchmarks/engine_parsers.py`)."""
    # Context parallelism needs the runner for GPUs: without GPUs the parsers cannot check it.
    unasked = {"--prefill-context-parallel-size"}
    written = {
        f"{name} > {target} #{place}": (launch.environment, _but_length(launch.arguments))
        for place, launch in enumerate(exported(name, target).launches)
        if unasked.isdisjoint(launch.arguments)
    }
    accepted = {
        command_id: (environment, _but_length(arguments))
        for command_id, (environment, arguments) in _ACCEPTED.items()
        if command_id.startswith(f"{name} > {target} #")
    }
    assert written == accepted


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "target"), REFUSED)
def test_what_an_engine_cannot_run_is_refused_with_the_nearest_that_it_can(name: str, target: str) -> None:
    result, expected = exported(name, target), CASES["refused"][name][target]
    assert result.text is None and not result.launches and result.exit_status == 1
    assert any(expected["why"] in reason for reason in result.refused)
    assert result.nearest == expected["nearest"]
    if result.nearest_plan is not None:
        assert shardwright.validate(result.nearest_plan).valid
        assert not export(result.nearest_plan, target).refused


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
    planned = shardwright.plan(**{**stated, **load})
    assert planned.plan is not None
    assert not export(planned.plan, engine).refused


@pytest.mark.parametrize(("name", "target"), [("phases and groups", target) for target in ENGINES])
def test_the_script_makes_on_each_node_the_calls_that_the_export_lists(name: str, target: str, tmp_path: Path) -> None:
    result = exported(name, target)
    assert result.text is not None
    addresses = {"N0": "10.0.0.1", "N1": "10.0.0.2", "N2": "10.0.0.3"}
    for node in dict.fromkeys(launch.node for launch in result.launches):
        error, calls = run_script(result.text, node, tmp_path, MODEL="/models/r1", **addresses)
        assert error == ""
        expected: list[list[str]] = []
        for launch in result.launches:
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
    result = export(stated, "vllm")
    flags = options(result.launches[0].arguments)
    assert flags["--max-num-seqs"] == "48" and flags["--max-num-batched-tokens"] == "4096"
    assert flags["--gpu-memory-utilization"] == "0.9" and flags["--max-model-len"] == "2048"
    estimate = shardwright.estimate(stated)
    assert result.benchmark == estimate.benchmark and result.benchmark is not None
    assert result.text is not None and f"# {result.benchmark.command}\n" in result.text


def test_a_limit_that_the_engine_misses_is_told_and_not_refused() -> None:
    plan = plan_named("tensor")
    tight = plan.model_copy(update={"workload": plan.workload.model_copy(update={"tpot_ms_max": 1.0})})
    result = export(tight, "sglang")
    assert not result.refused and any("above the limit of 1 ms" in remark for remark in result.remarks)


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
