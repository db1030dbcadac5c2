"""`export --to kubernetes` and `--to llm-d` write objects, valid by schema, whose pods run the script's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .manifests import objects_of
from .plans import BY_MPIRUN, OF_VLLM, WITHOUT_MPIRUN, formed, hostile, laid_out, plan_named, run_script

_LEADER, _POD_IP = "leader.svc", "10.0.0.9"
_VARIABLES = {"MODEL": "/models/m", "POD_IP": _POD_IP, "LWS_LEADER_ADDRESS": _LEADER}


def _workloads(result: Export) -> list[tuple[str, dict[str, Any]]]:
    """Each workload that makes pods (an object, or a role of a DisaggregatedSet) with the kind of its object."""
    workloads: list[tuple[str, dict[str, Any]]] = []
    for manifest in objects_of(result):
        if manifest["kind"] == "DisaggregatedSet":
            workloads += [(manifest["kind"], role) for role in manifest["spec"]["roles"]]
        elif manifest["kind"] != "Service":
            workloads.append((manifest["kind"], {"name": manifest["metadata"]["name"], "spec": manifest["spec"]}))
    return workloads


def _pods(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """The templates of the pods of one group, the leader's first."""
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
    result, gpus = formed(name, engine, form), 0
    for _, workload in _workloads(result):
        each = [int(pod["resources"]["limits"]["nvidia.com/gpu"]) for pod in _engines(workload)]
        gpus += workload["spec"]["replicas"] * sum(each)
    assert gpus == plan_named(name).strategy.gpu_count


def _calls_of_pods(result: Export, folder: Path) -> list[list[str]]:
    """The calls that the pods of one group of each kind make."""
    calls_made: list[list[str]] = []
    for _, workload in _workloads(result):
        for place, pod in enumerate(_engines(workload)):
            error, calls = run_script(pod["args"][0], "", folder, LWS_WORKER_INDEX=str(place), **_VARIABLES)
            assert error == ""
            calls_made += [call[1:] for call in calls]
    return calls_made


@pytest.mark.parametrize("name", ["stages on nodes", "phases and groups"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_pods_run_the_commands_of_the_script(name: str, engine: str, tmp_path: Path) -> None:
    result = formed(name, engine, "kubernetes")
    expected: list[list[str]] = []
    for launch in result.launches:
        leader = next(peer.node for peer in result.launches if peer.server == launch.server)
        # The leader binds to an address; a name would not do.
        address = _POD_IP if launch.node == leader else _LEADER
        words = [word.replace("$MODEL", _VARIABLES["MODEL"]) for word in launch.arguments]
        expected.append([word.replace(f"${leader.upper()}", address) for word in words])
    assert sorted(_calls_of_pods(result, tmp_path)) == sorted(expected)


@pytest.mark.one_in(12)
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_each_service_reaches_the_pods_that_answer(name: str, engine: str) -> None:
    result = formed(name, engine, "kubernetes")
    services = {entry["metadata"]["name"]: entry["spec"] for entry in objects_of(result) if entry["kind"] == "Service"}
    for kind, workload in _workloads(result):
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
    ("accelerator", "image"), [("h100-sxm", "vllm/vllm-openai:v"), ("mi300x", "vllm/vllm-openai-rocm:v")]
)
def test_the_image_is_that_for_the_gpus(accelerator: str, image: str) -> None:
    result = export(laid_out("TP2", model="Llama-3.2-1B", hardware=f"1x2:{accelerator}"), "kubernetes")
    assert [
        engine["image"].startswith(image) for _, workload in _workloads(result) for engine in _engines(workload)
    ] == [True]


def test_an_engine_without_a_known_image_for_the_gpus_is_refused() -> None:
    plan = laid_out("TP2", model="Llama-3.2-1B", hardware="1x2:mi300x").model_dump(mode="json")
    result = export({**plan, "serving": {"engine": "sglang"}}, "kubernetes")
    assert "no image of SGLang" in result.refused[0] and "MI300X is known here" in result.refused[0]


@pytest.mark.parametrize(
    ("accelerator", "label"), [("l40s", "nvidia.com/gpu.product"), ("mi300x", "amd.com/gpu.product-name")]
)
def test_a_deployment_takes_no_spare_gpus_and_says_how_its_kind_of_gpu_is_chosen(accelerator: str, label: str) -> None:
    plan = laid_out("TP2", model="Llama-3.2-1B", hardware=f"1x2:{accelerator}")
    result = export(plan, "kubernetes")
    (deployment,) = [workload["spec"] for kind, workload in _workloads(result) if kind == "Deployment"]
    assert deployment["strategy"] == {"type": "Recreate"}
    hints = [line for line in (result.text or "").split("\n") if "nodeSelector" in line]
    assert len(hints) == 1 and f"get nodes -L {label} " in hints[0] and accelerator.upper() in hints[0]


def test_servers_of_two_phases_are_roles_of_one_set_which_stop_before_new_ones_start() -> None:
    result = formed("phases and groups", "vllm", "kubernetes")
    assert result.text is not None and "LeaderWorkerSet 0.9 or later" in result.text
    workloads = _workloads(result)
    assert [(kind, role["name"]) for kind, role in workloads] == [
        ("DisaggregatedSet", "prefill"),
        ("DisaggregatedSet", "decode"),
    ]
    assert [role["spec"]["leaderWorkerTemplate"]["size"] for _, role in workloads] == [1, 2]
    for _, role in workloads:
        rollout = role["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        assert rollout == {"maxSurge": 0, "maxUnavailable": role["spec"]["replicas"]}


@pytest.mark.parametrize(("name", "engine"), BY_MPIRUN)
@pytest.mark.parametrize("form", ["kubernetes", "docker-compose"])
def test_what_starts_by_mpirun_is_refused(name: str, engine: str, form: str) -> None:
    result = formed(name, engine, form)
    assert result.text is None and "starts on several nodes by mpirun" in result.refused[0]


@pytest.mark.parametrize("form", ["kubernetes", "llm-d"])
def test_a_models_name_stays_a_value(form: str) -> None:
    name = "a: [b\n---\nkind: Pod $$(HF_TOKEN)"
    kinds = [manifest["kind"] for manifest in objects_of(export(hostile(name), form))]
    assert kinds == (["Deployment", "Service"] if form == "kubernetes" else ["Deployment"])
    ((_, deployment),) = _workloads(export(hostile(name), form))
    # Kubernetes replaces `$$` by `$`, and `$(NAME)` by the variable.
    assert _engines(deployment)[0]["env"][0] == {"name": "MODEL", "value": name.replace("$", "$$")}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "_engine"), OF_VLLM)
def test_llm_d_finds_every_server_on_the_port_of_its_pool(name: str, _engine: str) -> None:
    result, plain = formed(name, "vllm", "llm-d"), formed(name, "vllm", "kubernetes")
    assert not any(manifest["kind"] == "Service" for manifest in objects_of(result))
    for (_, workload), (_, known) in zip(_workloads(result), _workloads(plain), strict=True):
        role = workload["name"].partition("-")[0]
        leader, *workers = _pods(workload)
        labels = leader["metadata"]["labels"]
        assert labels["llm-d.ai/guide"] == ("optimized-baseline" if role == "serve" else "pd-disaggregation")
        assert labels.get("llm-d.ai/role", "serve") == role
        assert not any("metadata" in worker for worker in workers)
        proxies = leader["spec"].get("initContainers", [])
        entrance = (proxies or leader["spec"]["containers"])[0]
        assert entrance["ports"] == [{"containerPort": 8000}] and bool(proxies) is (role == "decode")
        engine_port = _engines(workload)[0]["ports"][0]["containerPort"]
        assert engine_port == (8200 if proxies else 8000)
        # Except for the port and the lifetime of idle connections, the commands are those of the plan.
        command = _engines(workload)[0]["args"][0].replace(" \\\n    VLLM_HTTP_TIMEOUT_KEEP_ALIVE=120", "")
        command = command.replace(" \\\n  VLLM_HTTP_TIMEOUT_KEEP_ALIVE=120", "")
        port = _engines(known)[0]["ports"][0]["containerPort"]
        assert command.replace(f"--port {engine_port}", f"--port {port}") == _engines(known)[0]["args"][0]


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_llm_d_refuses_other_engines(engine: str) -> None:
    assert f"runs vLLM here, not {engine}" in formed("tensor", engine, "llm-d").refused[0]
