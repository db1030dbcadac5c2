"""`export --to kubernetes`: objects of the known form, whose pods run the commands of the launch script."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .plans import EXPORTED, plan_named, run_script

# The fields of these objects, strict: of the LeaderWorkerSet's definition (v0.10) and of Kubernetes 1.33, as far as
# they are written.
SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "kubernetes_schema.json").read_text(encoding="utf-8")
)
_VARIABLES = {"MODEL": "/models/m", "POD_IP": "10.0.0.9", "LWS_LEADER_ADDRESS": "leader.svc"}


@cache
def _exported(name: str, engine: str) -> Export:
    return export({**plan_named(name).model_dump(mode="json"), "serving": {"engine": engine}}, "kubernetes")


def _objects(found: Export) -> list[dict[str, Any]]:
    assert found.text is not None
    return list(yaml.safe_load_all(found.text))


def _pods(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of the pods of one group, first the leader's."""
    spec = workload["spec"]
    if workload["kind"] == "Deployment":
        return [spec["template"]["spec"]["containers"][0]]
    group = spec["leaderWorkerTemplate"]
    worker = group["workerTemplate"]["spec"]["containers"][0]
    return [group["leaderTemplate"]["spec"]["containers"][0], *[worker] * (group["size"] - 1)]


def _workloads(found: Export) -> list[dict[str, Any]]:
    return [one for one in _objects(found) if one["kind"] != "Service"]


# What TensorRT-LLM starts by mpirun has no object.
WRITTEN = [(name, engine) for name, engine in EXPORTED if not _exported(name, engine).refused]


@pytest.mark.parametrize(("name", "engine"), WRITTEN)
def test_every_object_is_of_the_known_form(name: str, engine: str) -> None:
    for one in _objects(_exported(name, engine)):
        jsonschema.validate(one, {"$defs": SCHEMA["$defs"], **SCHEMA[one["kind"]]})


@pytest.mark.parametrize(("name", "engine"), WRITTEN)
def test_the_pods_have_all_gpus_of_the_plan(name: str, engine: str) -> None:
    gpus = 0
    for workload in _workloads(_exported(name, engine)):
        each = [int(pod["resources"]["limits"]["nvidia.com/gpu"]) for pod in _pods(workload)]
        gpus += workload["spec"]["replicas"] * sum(each)
    assert gpus == plan_named(name).strategy.gpu_count


@pytest.mark.parametrize(
    ("name", "engine"), [(n, e) for n, e in WRITTEN if n in ("stages on nodes", "phases and groups")]
)
def test_the_pods_run_the_commands_of_the_script(name: str, engine: str, tmp_path: Path) -> None:
    found = _exported(name, engine)
    said: list[list[str]] = []
    for workload in _workloads(found):
        for place, pod in enumerate(_pods(workload)):
            error, calls = run_script(pod["args"][0], "", tmp_path, LWS_WORKER_INDEX=str(place), **_VARIABLES)
            assert error == ""
            said += [call[1:] for call in calls]
    expected: list[list[str]] = []
    for launch in found.launches:
        leader = next(one.node for one in found.launches if one.server == launch.server)
        alone = len([one for one in found.launches if one.server == launch.server]) == 1
        words = [word.replace("$MODEL", _VARIABLES["MODEL"]) for word in launch.arguments]
        address = _VARIABLES["POD_IP"] if alone else _VARIABLES["LWS_LEADER_ADDRESS"]
        expected.append([word.replace(f"${leader.upper()}", address) for word in words])
    assert sorted(said) == sorted(expected)


def test_each_service_reaches_the_pods_that_answer() -> None:
    for name, engine in WRITTEN:
        objects = _objects(_exported(name, engine))
        for workload, service in zip(objects[::2], objects[1::2], strict=True):
            # A LeaderWorkerSet makes a Service of its own name, through which its pods find their leader.
            assert service["metadata"]["name"] != workload["metadata"]["name"]
            selector, leader = service["spec"]["selector"], _pods(workload)[0]
            assert service["spec"]["ports"][0]["targetPort"] == leader["ports"][0]["containerPort"]
            assert str(leader["ports"][0]["containerPort"]) in leader["args"][0]
            if workload["kind"] == "Deployment":
                assert workload["spec"]["template"]["metadata"]["labels"] == selector
            else:
                assert selector["leaderworkerset.sigs.k8s.io/name"] == workload["metadata"]["name"]


def test_what_starts_by_mpirun_is_refused() -> None:
    found = _exported("tensor over nodes", "trtllm")
    assert found.text is None and "mpirun" in found.refused[0]


def test_a_models_name_stays_a_value() -> None:
    plan = plan_named("tensor")
    name = "a: [b\n---\nkind: Pod"
    hostile = plan.model_copy(update={"model": plan.model.model_copy(update={"name": name})})
    deployment, service = _objects(export(hostile, "kubernetes"))
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    assert _pods(deployment)[0]["env"][0] == {"name": "MODEL", "value": name}
