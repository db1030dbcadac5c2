"""Servers as pods: equal servers form a group; each pod runs the command of its place among the nodes.

The pods of a LeaderWorkerSet get the address of their leader and their index, which are the nodes and their order in
the launch script; its commands run in them. The scheduler chooses which nodes and GPUs a pod gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from .result import ConfigFile, Launch
from .server import Server
from .target import Written, port_of, variable_of
from .text import checkpoint_name, command_text, file_lines, nodes_named

# Two hours of checks every ten seconds: a server may load a checkpoint of a terabyte.
_STARTUP = {"periodSeconds": 10, "failureThreshold": 720}
_NAMES = {"both": "serve", "prefill": "prefill", "decode": "decode"}
HF_TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}}

# Each vendor's feature-discovery label with the GPU's product name, as the driver reports it.
_PRODUCT_LABELS = {"nvidia.com/gpu": "nvidia.com/gpu.product", "amd.com/gpu": "amd.com/gpu.product-name"}


def pod_remarks(written: Written) -> tuple[str, ...]:
    """What to take care of with pods of any kind."""
    label = _PRODUCT_LABELS[written.gpu_resource]
    return (
        "Kubernetes chooses nodes and GPUs: let pods of one group run on nodes with the links that were planned with, "
        "and give them the cluster's RDMA devices, without which traffic between nodes goes over TCP",
        f"nothing here chooses the kind of GPU ({written.card}): in a cluster with several give each pod a "
        f"nodeSelector {label} with the name of the right nodes (kubectl get nodes -L {label} lists them)",
        "the secret hf-token (key token) opens gated models; each pod fetches the checkpoint anew unless a volume "
        "keeps it",
    )


class Group(Struct, frozen=True):
    """`count` servers that differ only in their devices; `server`, `launches` and `files` are of the first.

    The answering pod listens on `port`, has `labels`, and `sidecars` that start before the engine.
    """

    name: str
    count: int
    server: Server
    port: int
    launches: tuple[Launch, ...]
    files: tuple[ConfigFile, ...]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    sidecars: tuple[Mapping[str, Any], ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs per node of the server."""
        return len(self.launches[0].environment["CUDA_VISIBLE_DEVICES"].split(","))


def groups_of(written: Written) -> tuple[Group, ...]:
    """The servers of `written` in groups, ordered by their first server."""
    alike: dict[Server, list[int]] = {}
    for place, server in enumerate(written.servers):
        # What counts is which devices share a node, not which node it is.
        shape = tuple(
            tuple(str(server.nodes.index(device.partition(".")[0])) for device in stage) for stage in server.stages
        )
        alike.setdefault(replace(server, index=0, stages=shape), []).append(place)
    return tuple(_named(written, list(alike.values())))


def _named(written: Written, alike: Sequence[Sequence[int]]) -> Iterator[Group]:
    used: dict[str, int] = {}
    for places in alike:
        first = places[0]
        server = written.servers[first]
        name = _NAMES[server.role]
        used[name] = used.get(name, 0) + 1
        yield Group(
            name=name if used[name] == 1 else f"{name}-{used[name]}",
            count=len(places),
            server=server,
            port=port_of(server),
            launches=written.launches[first],
            files=written.files[first],
        )


def literal(value: str) -> str:
    """`value` escaped for Kubernetes, which replaces `$(NAME)` and reads `$$` as `$`."""
    return value.replace("$", "$$")


def pod(written: Written, group: Group, *, is_leader: bool, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The template of a pod that runs the command of its place in the group; the leader answers requests.

    `labels`: those by which the object that makes the pod selects it.
    """
    container: dict[str, Any] = {
        "name": "engine",
        "image": written.image,
        "command": ["bash", "-c"],
        "args": [_script(group)],
        "env": [
            {"name": "MODEL", "value": literal(checkpoint_name(written))},
            HF_TOKEN,
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "resources": {"limits": {written.gpu_resource: str(group.gpus)}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    if is_leader:
        health = {"httpGet": {"path": "/health", "port": group.port}}
        container |= {
            "ports": [{"containerPort": group.port}],
            "startupProbe": {**health, **_STARTUP},
            "readinessProbe": health,
        }
    spec: dict[str, Any] = {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
    if is_leader and group.sidecars:
        spec = {"initContainers": list(group.sidecars), **spec}
    labels = {**(labels or {}), **(group.labels if is_leader else {})}
    return {**({"metadata": {"labels": labels}} if labels else {}), "spec": spec}


def _script(group: Group) -> str:
    launches, leader, size = group.launches, group.launches[0].node, len(group.launches)
    lines = ["set -euo pipefail", *file_lines(group.files)]
    for node in nodes_named(launches):
        # A node other than the first is named only where its own process runs.
        if node == leader and size > 1:
            # ZeroMQ, which vLLM and NIXL meet through, cannot bind to a host name: the leader uses its own address.
            lines.append(f'{variable_of(node)}="$LWS_LEADER_ADDRESS"')
            lines.append(f'[ "$LWS_WORKER_INDEX" != 0 ] || {variable_of(node)}="$POD_IP"')
        else:
            lines.append(f'{variable_of(node)}="$POD_IP"')
    if size == 1:
        return "\n".join([*lines, f"exec {_command(launches[0], '')}", ""])
    lines.append('case "$LWS_WORKER_INDEX" in')
    for place, launch in enumerate(launches):
        lines += [f"{place})", f"  exec {_command(launch, '  ')}", "  ;;"]
    return "\n".join([*lines, f'*) echo "a group has {size} pods" >&2; exit 2 ;;', "esac", ""])


def _command(launch: Launch, indent: str) -> str:
    """The command, which sees the GPUs of its pod."""
    environment = [(name, value) for name, value in launch.environment.items() if name != "CUDA_VISIBLE_DEVICES"]
    text = command_text(environment, launch.arguments, indent)
    return f"env {text}" if environment else text
