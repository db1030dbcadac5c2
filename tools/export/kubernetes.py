"""Kubernetes: servers of one node are a Deployment, those of several a LeaderWorkerSet (v1), each with its Service.

The pods of a LeaderWorkerSet are told the address of their leader and their place in it, which are the nodes and their
places in the launch script; its commands are run in them. Which nodes and GPUs a pod gets is the scheduler's choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import yaml

from .result import ConfigFile, Launch
from .script import command_text, comment, file_lines, nodes_named, tail_lines
from .server import Server
from .target import CannotExportError, Written, port_of, variable_of

_LWS = "leaderworkerset.sigs.k8s.io"
# A server that loads a checkpoint of a terabyte is not given up before: checks of ten seconds for two hours.
_STARTUP = {"periodSeconds": 10, "failureThreshold": 720}
_NAMES = {"both": "serve", "prefill": "prefill", "decode": "decode"}

_REMARKS = (
    "Kubernetes chooses nodes and GPUs: let pods of one group run on nodes with the links that were planned with, and "
    "give them the cluster's RDMA devices, without which traffic between nodes goes over TCP",
    "the secret hf-token (key token) opens gated models; each pod fetches the checkpoint anew unless a volume keeps it",
)
# The load of a checkpoint is no failed roll-out; nor are there spare GPUs to start new pods beside the old.
_ROLLOUT = {"progressDeadlineSeconds": 7500, "strategy": {"type": "Recreate"}}


def manifests(written: Written) -> str:
    """The objects that run the servers of a plan, as one YAML text.

    Raises:
        CannotExportError: servers of several nodes start by mpirun, which needs more than these objects give.
    """
    groups = dict(_groups(written.servers))
    objects = [one for name, places in groups.items() for one in _objects(written, name, places)]
    texts = [yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=10_000) for one in objects]
    comments = "".join(f"{comment(line)}\n" for line in (*written.head, *(f"Mind: {remark}" for remark in _REMARKS)))
    firsts = {name: written.servers[places[0]] for name, places in groups.items()}
    tail = tail_lines(written, [(server, f"{_service(name)}:{port_of(server)}") for name, server in firsts.items()])
    return comments + "---\n".join(["", *texts]) + "".join(f"{comment(line)}\n" for line in tail)


def _service(name: str) -> str:
    """The name of a Service; a LeaderWorkerSet makes one of its own by its own name."""
    return f"{name}-http"


def _groups(servers: Sequence[Server]) -> Iterator[tuple[str, list[int]]]:
    """Servers that differ in nothing but their devices, by their places, with a name for their objects."""
    alike: dict[Server, list[int]] = {}
    for place, server in enumerate(servers):
        shape = tuple(tuple("" for _ in stage) for stage in server.stages)
        alike.setdefault(replace(server, index=0, stages=shape), []).append(place)
    used: dict[str, int] = {}
    for server, places in alike.items():
        name = _NAMES[server.role]
        used[name] = used.get(name, 0) + 1
        yield (name if used[name] == 1 else f"{name}-{used[name]}"), places


def _objects(written: Written, name: str, places: Sequence[int]) -> Iterator[dict[str, Any]]:
    launches, files, server = written.launches[places[0]], written.files[places[0]], written.servers[places[0]]
    if launches[0].arguments[0] == "mpirun":
        raise CannotExportError(
            f"replica {server.index} starts on several nodes by mpirun, for which no object is known: export the plan "
            "to its engine, and run that script"
        )
    size, port = len(launches), port_of(server)
    if size == 1:
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": _pod(written, launches, files, port)}
        spec = {"replicas": len(places), **_ROLLOUT, "selector": {"matchLabels": labels}, "template": pod}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    else:
        labels = {f"{_LWS}/name": name, f"{_LWS}/worker-index": "0"}
        template = {
            "size": size,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": {"spec": _pod(written, launches, files, port)},
            "workerTemplate": {"spec": _pod(written, launches, files, None)},
        }
        yield {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name},
            "spec": {"replicas": len(places), "leaderWorkerTemplate": template},
        }
    ports = [{"name": "http", "port": port, "targetPort": port}]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _service(name)},
        "spec": {"selector": labels, "ports": ports},
    }


def _pod(written: Written, launches: Sequence[Launch], files: Sequence[ConfigFile], port: int | None) -> dict[str, Any]:
    """A pod that runs the command of its place in the group; `port`: where it answers requests, if it does."""
    gpus = len(launches[0].environment["CUDA_VISIBLE_DEVICES"].split(","))
    container: dict[str, Any] = {
        "name": "engine",
        "image": written.image,
        "command": ["bash", "-c"],
        "args": [_script(launches, files)],
        "env": [
            {"name": "MODEL", "value": _checkpoint(written)},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "resources": {"limits": {written.gpu_resource: str(gpus)}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    if port is not None:
        health = {"httpGet": {"path": "/health", "port": port}}
        container |= {
            "ports": [{"containerPort": port}],
            "startupProbe": {**health, **_STARTUP},
            "readinessProbe": health,
        }
    return {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}


def _checkpoint(written: Written) -> str:
    """The checkpoint; in place of one that only the caller can name, what it has to be: no server starts with it."""
    wanted = written.checkpoint_format
    return written.model if wanted is None else f"A-CHECKPOINT-IN-{wanted.upper()}"


def _script(launches: Sequence[Launch], files: Iterable[ConfigFile]) -> str:
    lines = ["set -euo pipefail", *file_lines(files)]
    for node in nodes_named(launches):
        # A node other than the first is only named as the place where its own process is.
        is_leader = node == launches[0].node and len(launches) > 1
        lines.append(f'{variable_of(node)}="{"$LWS_LEADER_ADDRESS" if is_leader else "$POD_IP"}"')
    if len(launches) == 1:
        return "\n".join([*lines, f"exec {_command(launches[0], '')}", ""])
    lines.append('case "$LWS_WORKER_INDEX" in')
    for place, launch in enumerate(launches):
        lines += [f"{place})", f"  exec {_command(launch, '  ')}", "  ;;"]
    return "\n".join([*lines, f'*) echo "a group has {len(launches)} pods" >&2; exit 2 ;;', "esac", ""])


def _command(launch: Launch, indent: str) -> str:
    """The command, which sees the GPUs that the pod was given."""
    environment = [(name, value) for name, value in launch.environment.items() if name != "CUDA_VISIBLE_DEVICES"]
    text = command_text(environment, launch.arguments, indent)
    return f"env {text}" if environment else text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and everything where it stands."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """A text; as a block where it has several lines."""
        return (
            yaml.ScalarNode("tag:yaml.org,2002:str", data, style="|") if "\n" in data else super().represent_str(data)
        )

    def ignore_aliases(self, data: object) -> bool:
        """Whether a value that stands twice is written twice."""
        return True


_Dumper.add_representer(str, _Dumper.represent_str)
