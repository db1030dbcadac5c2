"""A form refuses with the reason what it cannot express, or expresses it otherwise, for servers made up here."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.engines.names import ENGINES
from shardwright.tools.export.dynamo import graph
from shardwright.tools.export.export import export
from shardwright.tools.export.kubernetes import manifests
from shardwright.tools.export.ray import application
from shardwright.tools.export.result import Launch, Role
from shardwright.tools.export.server import Server
from shardwright.tools.export.slurm import batch_script
from shardwright.tools.export.target import CannotExportError, Written

from .plans import laid_out

_NO_FILES: tuple[()] = ()


def _server(index: int, role: Role, devices: tuple[str, ...]) -> Server:
    return Server(
        index=index, role=role, groups=1, tp=len(devices), context=1, sequence_kind=None, cache_parts=1,
        tp_ffn=len(devices), ep=1, tp_expert=1, redundant_experts=0, layers=(index + 1,), stages=(devices,),
    )  # fmt: skip


def _written(*servers: Server, arguments: tuple[str, ...] = ("vllm", "serve", "$MODEL")) -> Written:
    """The input of a form for `servers`, one command for each."""
    launches = tuple(
        Launch(
            node=server.nodes[0],
            server=server.index,
            role=server.role,
            environment={"CUDA_VISIBLE_DEVICES": "0"},
            arguments=arguments,
        )
        for server in servers
    )
    return Written(
        engine=ENGINES["trtllm" if "trtllm-serve" in arguments else "vllm"], image="i", model="m", gpus_per_node=8,
        checkpoint_format=None, card="H100", gpu_resource="nvidia.com/gpu", servers=servers,
        launches=tuple((launch,) for launch in launches), files=(_NO_FILES,) * len(servers), head=("h",), check=(),
        fronts=lambda _prefill, _others: (),
    )  # fmt: skip


def _kinds(count: int, role: Role) -> tuple[Server, ...]:
    """`count` servers, no two alike."""
    return tuple(_server(index, role, (f"n{index}.g0",)) for index in range(count))


@pytest.mark.parametrize(("count", "kind"), [(10, "DisaggregatedSet"), (11, "Deployment")])
def test_a_set_has_at_most_ten_roles_and_more_stand_by_themselves(count: int, kind: str) -> None:
    text = manifests(_written(*_kinds(count, "decode")))
    assert f"kind: {kind}\n" in text and text.count("kind: Service\n") == count


def test_a_graph_of_dynamo_has_at_most_25_components() -> None:
    assert graph(_written(*_kinds(24, "both"))).count("type: worker\n") == 24
    with pytest.raises(CannotExportError, match="at most 25 components"):
        graph(_written(*_kinds(25, "both")))


def test_replicas_of_several_kinds_are_no_application_of_ray() -> None:
    with pytest.raises(CannotExportError, match="the plan has serve, serve-2"):
        application(_written(*_kinds(2, "both")))


def test_servers_that_are_on_other_numbers_of_nodes_are_not_alike() -> None:
    first, second = _server(0, "both", ("n0.g0", "n0.g1")), _server(1, "both", ("n1.g0", "n2.g0"))
    assert graph(_written(first, replace(second, layers=first.layers))).count("type: worker\n") == 2
    near = _server(1, "both", ("n1.g4", "n1.g5"))
    assert graph(_written(first, replace(near, layers=first.layers))).count("type: worker\n") == 1


def test_ranks_that_go_over_nodes_against_slurms_order_are_refused() -> None:
    words = ("mpirun", "trtllm-serve", "$MODEL")
    assert "srun" in batch_script(_written(_server(0, "both", ("n0.g0", "n1.g0")), arguments=words))
    with pytest.raises(CannotExportError, match="n1, n0 in this order"):
        batch_script(_written(_server(0, "both", ("n1.g0", "n0.g0")), arguments=words))


@pytest.mark.parametrize(
    ("hardware", "words", "form", "why"),
    [
        ("4x8:h200-sxm", "attention-DP2 × TP16 × EP32", "ray", "groups of 16 ranks on 8 GPUs a node"),
        ("2x6:h200-sxm", "attention-DP3 × TP4 × EP12", "ray", "groups of 4 ranks on 6 GPUs a node"),
        ("2x6:h200-sxm", "attention-DP3 × TP4 × EP12", "dynamo", "TP x PP (4) and the GPUs of a pod (6)"),
    ],
)
def test_groups_of_attention_that_would_be_placed_otherwise_are_refused(
    hardware: str, words: str, form: str, why: str
) -> None:
    model = "DeepSeek-R1" if hardware.startswith("4") else "Qwen3-235B-A22B"
    named = {
        **laid_out(words, model=model, hardware=hardware).model_dump(mode="json"),
        "serving": {"engine": "vllm"},
    }
    assert not export(named, "vllm").refused and why in export(named, form).refused[0]
