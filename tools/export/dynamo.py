"""NVIDIA Dynamo 1.6.1: one DynamoGraphDeployment (nvidia.com/v1beta1) of a frontend and a component per kind of server.

The workers take the engine's own flags, except those that let its processes find each other: Dynamo's operator adds
these to each pod of a component on several nodes. Fields: ai-dynamo/dynamo, `deploy/operator/api/v1beta1`
(`common.go`, `dynamographdeployment_types.go`, `dynamocomponentdeployment_types.go`). Flags: `args.py` and
`backend_args.py` in `components/src/dynamo/<engine>`. What the operator adds: `deploy/operator/internal/dynamo/
backend_<engine>.go`.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from .pods import HF_TOKEN, Group, groups_of, literal, pod_remarks
from .target import CannotExportError, Written
from .text import checkpoint_name, engine_flags, is_plain, kept_environment, only_nvidia, yaml_text

_VERSION, _NAME, _PORT = "1.6.1", "servers", 8000
_MOST_COMPONENTS = 25
# The container of each engine, and the engine's version in it.
_RUNTIMES = {
    "vllm": ("vllm-runtime", "0.31.0"),
    "sglang": ("sglang-runtime", "0.5.21"),
    "trtllm": ("tensorrtllm-runtime", "1.3.0rc29"),
}
_TYPES = {"both": "worker", "prefill": "prefill", "decode": "decode"}


def graph(written: Written) -> str:
    """The object that runs the servers of a plan.

    Raises CannotExportError: the operator would start a server in another way than the plan.
    """
    only_nvidia(written, "Dynamo's containers are")
    groups = groups_of(written)
    if len(groups) >= _MOST_COMPONENTS:
        raise CannotExportError(
            f"a DynamoGraphDeployment has at most {_MOST_COMPONENTS} components; the plan has {len(groups)} kinds of "
            "servers beside the frontend"
        )
    image, inside = _RUNTIMES[written.engine.name]
    frontend = {"name": "main", "image": _image(image), "env": [HF_TOKEN]}
    components = [
        {"name": "frontend", "type": "frontend", "replicas": 1, "podTemplate": {"spec": {"containers": [frontend]}}},
        *(_component(written, group) for group in groups),
    ]
    deployment = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": _NAME},
        "spec": {"backendFramework": written.engine.name, "components": components},
    }
    remarks = [
        *pod_remarks(written),
        f"the way in is the Service {_NAME}-frontend, port {_PORT}: Dynamo {_VERSION} joins the servers",
    ]
    if inside != written.engine.version:
        remarks.append(
            f"the containers of Dynamo {_VERSION} have version {inside} of the engine, and these flags are those of "
            f"{written.engine.version}"
        )
    return yaml_text(written, remarks, [deployment], written.check)


def _image(name: str) -> str:
    return f"nvcr.io/nvidia/ai-dynamo/{name}:{_VERSION}"


def _component(written: Written, group: Group) -> dict[str, Any]:
    nodes = len(group.server.nodes)
    if nodes > 1:
        _check_nodes(written, group)
    # Each pod has its own address, which Dynamo passes to NIXL.
    variables = kept_environment(group.launches[0])
    container = {
        "name": "main",
        "image": _image(_RUNTIMES[written.engine.name][0]),
        "command": ["python3", "-m", f"dynamo.{written.engine.name}"],
        "args": _arguments(written, group),
        "env": [HF_TOKEN, *({"name": name, "value": value} for name, value in variables.items())],
        "resources": {"limits": {written.gpu_resource: str(group.gpus)}},
    }
    return {
        "name": group.name,
        "type": _TYPES[group.server.role],
        "replicas": group.count,
        **({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}),
        "podTemplate": {"spec": {"containers": [container]}},
    }


def _check_nodes(written: Written, group: Group) -> None:
    """Raise CannotExportError unless the operator starts a server of several nodes as planned.

    It counts the ranks of a vLLM group by TP and stages alone, and puts as many whole groups on a node as fit.
    """
    server, ranks = group.server, group.server.tp * group.server.pp
    if written.engine.name == "vllm" and (server.context > 1 or (ranks < group.gpus and group.gpus % ranks)):
        raise CannotExportError(
            f"replica {server.index}: Dynamo's operator starts vLLM on several nodes by TP x PP ({ranks}) and the GPUs "
            f"of a pod ({group.gpus}), which is not how the plan has it"
        )
    if not is_plain(written.model):
        raise CannotExportError(
            f"Dynamo's operator hands commands for several nodes to a shell, where the model's name "
            f"{written.model[:60]!r} may mean something else"
        )


def _arguments(written: Written, group: Group) -> list[str]:
    engine = written.engine.name
    words = ["--model-path" if engine == "sglang" else "--model", literal(checkpoint_name(written))]
    # SGLang's flags state it already.
    if group.server.role != "both" and engine != "sglang":
        words += ["--disaggregation-mode", group.server.role]
    if engine == "trtllm":
        return [*words, "--override-engine-args", json.dumps(yaml.safe_load(group.files[0].text))]
    return [*words, *engine_flags(written.engine, group.launches[0].arguments)]
