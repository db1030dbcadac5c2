"""llm-d: the Kubernetes objects of vLLM with the labels that its router's InferencePool selects.

Every server answers on the pool's one port; in front of a decode server runs llm-d's routing proxy, which has a prefill
server fill the cache first. The pool itself comes with the router, from the chart and values of llm-d's guide.
Labels, ports, proxy: llm-d/llm-d, `guides/pd-disaggregation` and `guides/optimized-baseline` (`README.md`,
`modelserver/gpu/vllm`, `router/*.values.yaml`), `guides/recipes/modelserver/base/single-host/pd/vllm`; flags of the
proxy: llm-d/llm-d-router, `pkg/sidecar/proxy/options.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from .kubernetes import remarks_of, workloads
from .pods import Group, groups_of
from .target import CannotExportError, Written
from .text import only_nvidia, yaml_text

_PROXY_IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0"
_CHART = "oci://ghcr.io/llm-d/charts/llm-d-router-standalone"
# The port of the pool, and the engine's port behind the proxy.
_POOL_PORT, _PROXIED_PORT = 8000, 8200
# The proxy keeps idle connections to a prefill server for 90 s, so the server must keep them longer.
_KEEP_ALIVE = {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120"}


def stack(written: Written) -> str:
    """The objects that run the servers of a plan behind llm-d's router.

    Raises CannotExportError: the engine is not vLLM, or the GPUs are not NVIDIA's.
    """
    if written.engine.name != "vllm":
        raise CannotExportError(f"llm-d runs vLLM here, not {written.engine.name}: have the plan name vLLM, or none")
    only_nvidia(written, "what is named here of llm-d is")
    groups = groups_of(written)
    guide = "optimized-baseline" if all(group.server.role == "both" for group in groups) else "pd-disaggregation"
    objects = [workload for workload, _ in workloads(written, [_labelled(group, guide) for group in groups])]
    return yaml_text(written, remarks_of(written, objects), objects, [*_router(guide), *written.check])


def _router(guide: str) -> Iterator[str]:
    yield (
        f"The way in is llm-d's router, from a checkout of llm-d/llm-d (guides/{guide}): it makes the InferencePool of "
        "the pods with these labels. What its values say of throughput was measured with another model."
    )
    yield (
        f"helm install {guide} {_CHART} --version v0 -f guides/recipes/router/base.values.yaml "
        f"-f guides/{guide}/router/{guide}.values.yaml"
    )


def _labelled(group: Group, guide: str) -> Group:
    """The servers with llm-d's labels, on the port of the pool."""
    labels = {"llm-d.ai/inference-serving": "true", "llm-d.ai/guide": guide}
    role = group.server.role
    if role != "both":
        labels["llm-d.ai/role"] = role
    port = _PROXIED_PORT if role == "decode" else _POOL_PORT
    leader, *others = group.launches
    words = list(leader.arguments)
    words[words.index("--port") + 1] = str(port)
    environment = {**leader.environment, **(_KEEP_ALIVE if role == "prefill" else {})}
    leader = leader.model_copy(update={"arguments": tuple(words), "environment": environment})
    return replace(
        group,
        port=port,
        launches=(leader, *others),
        labels=labels,
        sidecars=(_proxy(),) if role == "decode" else (),
    )


def _proxy() -> dict[str, Any]:
    return {
        "name": "routing-proxy",
        "image": _PROXY_IMAGE,
        "args": [
            f"--port={_POOL_PORT}",
            f"--model-server-port={_PROXIED_PORT}",
            "--kv-connector=nixlv2",
            "--secure-proxy=false",
        ],
        "ports": [{"containerPort": _POOL_PORT}],
        "restartPolicy": "Always",
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }
