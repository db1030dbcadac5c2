"""`export --to kubernetes` and `--to llm-d`: objects of the known form, whose pods run the commands of the script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .manifests import objects_of
from .plans import BY_MPIRUN, OF_VLLM, WITHOUT_MPIRUN, formed, hostile, laid_out, plan_named, run_script

_LEADER, _OWN = "leader.svc", "10.0.0.9"
_VARIABLES = {"MODEL": "/models/m", "POD_IP": _OWN, "LWS_LEADER_ADDRESS": _LEADER}


def _workloads(found: Export) -> list[tuple[str, dict[str, Any]]]:
    """What makes pods, with the kind of what it stands in: an object, or a role of one."""
    workloads: list[tuple[str, dict[str, Any]]] = []
    for one in objects_of(found):
        if one["kind"] == "DisaggregatedSet":
            workloads += [(one["kind"], role) for role in one["spec"]["roles"]]
        elif one["kind"] != "Service":
            workloads.append((one["kind"], {"name": one["metadata"]["name"], "spec": one["spec"]}))
    return workloads


def _pods(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """The templates of the pods of one group, first the leader's."""
    spec = workload["spec"]
    if "template" in spec:
        return [spec["template"]]
    group = spec["leaderWorkerTemplate"]
    leader = group.get("leaderTemplate", group["workerTemplate"])
    return [leader, *[group["workerTemplate"]] * (group["size"] - 1)]


def _engines(workload: dict[str, Any]) -> list[dict[str, Any]]:
    return [template["spec"]["containers"][0] for template in _pods(workload)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "engine", "form"), [(*row, "kubernetes") for row in WITHOUT_MPIRUN] + [(*row, "llm-d") for row in OF_VLLM]
)
def test_every_object_is_of_the_known_form_and_the_pods_have_all_gpus(name: str, engine: str, form: str) -> None:
    found, gpus = formed(name, engine, form), 0
    for _, workload in _workloads(found):
        each = [int(pod["resources"]["limits"]["nvidia.com/gpu"]) for pod in _engines(workload)]
        gpus += workload["spec"]["replicas"] * sum(each)
    assert gpus == plan_named(name).strategy.gpu_count


def _said(found: Export, folder: Path) -> list[list[str]]:
    """The calls that the pods of one group of each kind make."""
    said: list[list[str]] = []
    for _, workload in _workloads(found):
        for place, pod in enumerate(_engines(workload)):
            error, calls = run_script(pod["args"][0], "", folder, LWS_WORKER_INDEX=str(place), **_VARIABLES)
            assert error == ""
            said += [call[1:] for call in calls]
    return said


@pytest.mark.parametrize("name", ["stages on nodes", "phases and groups"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_pods_run_the_commands_of_the_script(name: str, engine: str, tmp_path: Path) -> None:
    found = formed(name, engine, "kubernetes")
    expected: list[list[str]] = []
    for launch in found.launches:
        leader = next(one.node for one in found.launches if one.server == launch.server)
        # The leader itself binds to an address, for which no name will do.
        address = _OWN if launch.node == leader else _LEADER
        words = [word.replace("$MODEL", _VARIABLES["MODEL"]) for word in launch.arguments]
        expected.append([word.replace(f"${leader.upper()}", address) for word in words])
    assert sorted(_said(found, tmp_path)) == sorted(expected)


@pytest.mark.one_in(12)
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_each_service_reaches_the_pods_that_answer(name: str, engine: str) -> None:
    found = formed(name, engine, "kubernetes")
    services = {one["metadata"]["name"]: one["spec"] for one in objects_of(found) if one["kind"] == "Service"}
    for kind, workload in _workloads(found):
        # A LeaderWorkerSet makes a Service of its own name, through which its pods find their leader.
        service = services.pop(f"{workload['name']}-http")
        selector, leader = service["selector"], _engines(workload)[0]
        assert service["ports"][0]["targetPort"] == leader["ports"][0]["containerPort"]
        assert str(leader["ports"][0]["containerPort"]) in leader["args"][0]
        if kind == "Deployment":
            assert _pods(workload)[0]["metadata"]["labels"] == selector
            continue
        leads = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
        if kind == "DisaggregatedSet":
            names = {"disaggregatedset.x-k8s.io/name": "servers", **leads}
            assert selector == {**names, "disaggregatedset.x-k8s.io/role": workload["name"]}
        else:
            assert selector == {"leaderworkerset.sigs.k8s.io/name": workload["name"], **leads}
    assert not services


@pytest.mark.parametrize(
    ("accelerator", "label"), [("l40s", "nvidia.com/gpu.product"), ("mi300x", "amd.com/gpu.product-name")]
)
def test_a_deployment_takes_no_spare_gpus_and_says_how_its_kind_of_gpu_is_chosen(accelerator: str, label: str) -> None:
    plan = laid_out("TP2", model="Llama-3.2-1B", hardware=f"1x2:{accelerator}")
    found = export(plan, "kubernetes")
    (one,) = [workload["spec"] for kind, workload in _workloads(found) if kind == "Deployment"]
    assert one["strategy"] == {"type": "Recreate"}
    told = [line for line in (found.text or "").split("\n") if "nodeSelector" in line]
    assert len(told) == 1 and f"get nodes -L {label} " in told[0] and accelerator.upper() in told[0]


def test_servers_of_two_phases_are_roles_of_one_set_which_stop_before_new_ones_start() -> None:
    found = formed("phases and groups", "vllm", "kubernetes")
    assert found.text is not None and "LeaderWorkerSet 0.9 or later" in found.text
    workloads = _workloads(found)
    assert [(kind, one["name"]) for kind, one in workloads] == [
        ("DisaggregatedSet", "prefill"),
        ("DisaggregatedSet", "decode"),
    ]
    assert [one["spec"]["leaderWorkerTemplate"]["size"] for _, one in workloads] == [1, 2]
    for _, one in workloads:
        rollout = one["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        assert rollout == {"maxSurge": 0, "maxUnavailable": one["spec"]["replicas"]}


@pytest.mark.parametrize(("name", "engine"), BY_MPIRUN)
@pytest.mark.parametrize("form", ["kubernetes", "docker-compose"])
def test_what_starts_by_mpirun_is_refused(name: str, engine: str, form: str) -> None:
    found = formed(name, engine, form)
    assert found.text is None and "starts on several nodes by mpirun" in found.refused[0]


@pytest.mark.parametrize("form", ["kubernetes", "llm-d"])
def test_a_models_name_stays_a_value(form: str) -> None:
    name = "a: [b\n---\nkind: Pod $$(HF_TOKEN)"
    kinds = [one["kind"] for one in objects_of(export(hostile(name), form))]
    assert kinds == (["Deployment", "Service"] if form == "kubernetes" else ["Deployment"])
    ((_, deployment),) = _workloads(export(hostile(name), form))
    # Kubernetes makes one `$` of two, and of `$(NAME)` the variable.
    assert _engines(deployment)[0]["env"][0] == {"name": "MODEL", "value": name.replace("$", "$$")}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "_engine"), OF_VLLM)
def test_llm_d_finds_every_server_on_the_port_of_its_pool(name: str, _engine: str) -> None:
    found, plain = formed(name, "vllm", "llm-d"), formed(name, "vllm", "kubernetes")
    assert not any(one["kind"] == "Service" for one in objects_of(found))
    for (_, workload), (_, known) in zip(_workloads(found), _workloads(plain), strict=True):
        role = workload["name"].partition("-")[0]
        leader, *workers = _pods(workload)
        labels = leader["metadata"]["labels"]
        assert labels["llm-d.ai/guide"] == ("optimized-baseline" if role == "serve" else "pd-disaggregation")
        assert labels.get("llm-d.ai/role", "serve") == role
        assert not any("metadata" in worker for worker in workers)
        proxies = leader["spec"].get("initContainers", [])
        entrance = (proxies or leader["spec"]["containers"])[0]
        assert entrance["ports"] == [{"containerPort": 8000}] and bool(proxies) is (role == "decode")
        own = _engines(workload)[0]["ports"][0]["containerPort"]
        assert own == (8200 if proxies else 8000)
        # But for the port, and how long idle connections live, the commands are those of the plan.
        said = _engines(workload)[0]["args"][0].replace(" \\\n    VLLM_HTTP_TIMEOUT_KEEP_ALIVE=120", "")
        said = said.replace(" \\\n  VLLM_HTTP_TIMEOUT_KEEP_ALIVE=120", "")
        port = _engines(known)[0]["ports"][0]["containerPort"]
        assert said.replace(f"--port {own}", f"--port {port}") == _engines(known)[0]["args"][0]


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_llm_d_refuses_other_engines(engine: str) -> None:
    assert f"runs vLLM here, not {engine}" in formed("tensor", engine, "llm-d").refused[0]
