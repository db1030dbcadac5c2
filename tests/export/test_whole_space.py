"""Over the whole space, every plan that the rules accept for an engine is exported and runs on the plan's devices."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from shardwright.agent.importing.api import import_plan
from shardwright.tools.catalog.models import find_model
from shardwright.tools.engines.defaults import possible_relaxations
from shardwright.tools.export import sglang, trtllm, vllm
from shardwright.tools.export.export import export
from shardwright.tools.export.result import EngineTarget, Export
from shardwright.tools.export.server import servers_of, settings_of
from shardwright.tools.performance.layout import LoadedLayout, layout_from_view, make_layout
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.plan.document import PHASES, ModelBlock, PolicyBlock, ServingBlock, Strategy
from shardwright.tools.plan.reader import read_document
from shardwright.tools.search.search import base_setting
from shardwright.tools.search.space import SpaceRequest
from shardwright.tools.validate import validate

from ..examples import examples
from ..plan.test_layout_law import documents
from ..search.requests import search_request
from ..spaces import each_replica
from .placements import stages, world
from .plans import ENGINES

pytestmark = pytest.mark.thorough

# Prompts long enough to split along the sequence; clusters that few numbers of stages or groups divide evenly.
_LONG_PROMPT_TOKENS = 65_536
_CLUSTERS = ((2, 4), (3, 4), (2, 6))
_MODELS = ("Qwen3-30B-A3B", "DeepSeek-V2-Lite", "Qwen3-8B")
_HEAD = dict.fromkeys(("engine", "engine_version", "content_hash", "strategy"), "")
_TARGETS = {target.engine.name: target for target in (vllm.TARGET, sglang.TARGET, trtllm.TARGET)}


def runs_as_placed(result: Export, layout: LoadedLayout) -> None:
    """Check that every server's ranks compute the plan's stages on its devices, equally many ranks on each node."""
    for server, replica in enumerate(layout.replicas):
        phase = replica.phases[0]
        assert stages(result, server) == [list(stage.devices) for stage in phase.stages]
        launches = [launch for launch in result.launches if launch.server == server]
        assert world(result, launches[0]) == len(phase.devices)
        assert len({launch.node for launch in launches}) == len(launches)
        assert len({launch.environment["CUDA_VISIBLE_DEVICES"].count(",") for launch in launches}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@examples(15)
@given(document=documents())
def test_only_rules_refuse_and_what_they_accept_runs_on_the_devices_of_the_plan(
    engine: str, document: dict[str, Any]
) -> None:
    result = export(document, engine)
    assert (result.text is None) is bool(result.refused)
    if result.refused:
        assert all(re.match(r"[A-Z]{2}\d{3}: |and \d+ more$", reason) for reason in result.refused)
        assert not result.launches and result.benchmark is None
        return
    runs_as_placed(result, layout_from_view(read_document(document).view))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", _MODELS)
def test_every_strategy_that_the_rules_accept_for_an_engine_runs_on_the_devices_of_its_plan(
    model: str, engine: EngineTarget
) -> None:
    target = _TARGETS[engine]
    for nodes, gpus in _CLUSTERS:
        request = search_request(
            model, (nodes, gpus, "h100-sxm"), input_tokens=_LONG_PROMPT_TOKENS, output_tokens=64, concurrency=1
        )
        relaxations = frozenset(possible_relaxations(engine, request.architecture))
        setting = replace(
            base_setting(replace(request, serving=ServingBlock(engine=engine))), relaxations=relaxations, caches={}
        )
        space = SpaceRequest(request.architecture, nodes, gpus, _LONG_PROMPT_TOKENS, relaxations, engine=engine)
        strategies = list(each_replica(space))
        assert len(strategies) > 20
        for strategy in strategies:
            layout = make_layout(setting, strategy)
            commands = [
                target.commands(server, settings_of(layout, target.engine, "any/model"))
                for server in servers_of(layout)
            ]
            result = Export(
                **_HEAD,
                target=engine,
                launches=tuple(launch for written in commands for launch in written.launches),
                files=tuple(file for written in commands for file in written.files),
            )
            runs_as_placed(result, layout)


def test_stages_of_attention_groups_over_nodes_are_placed_as_the_engine_numbers_its_ranks() -> None:
    request = search_request("Qwen3-30B-A3B", (2, 4, "h100-sxm"), input_tokens=1024, output_tokens=64, concurrency=8)
    strategy = Strategy.model_validate(
        {"dp": 1, "gpu_count": 8, **{name: {"pp": 2, "ep": 4, "attention_dp": 4} for name in PHASES}}
    )
    policy = PolicyBlock(relaxations=("attention_dp",))
    for engine in ENGINES:
        serving = ServingBlock(engine=engine)
        block = ModelBlock(name="Qwen/Qwen3-30B-A3B", config=dict(find_model("Qwen3-30B-A3B").config))
        plan = build_plan(
            BuildRequest(
                model=block, hardware=request.hardware, workload=request.workload, precision=request.precision,
                strategy=strategy, policy=policy, serving=serving,
            )
        )  # fmt: skip
        assert validate(plan).valid
        result = export(plan, engine)
        assert result.text is not None
        runs_as_placed(result, layout_from_view(read_document(plan).view))
        imported = import_plan(result.text)
        assert imported.plan is not None and content_hash(imported.plan) == content_hash(plan)
