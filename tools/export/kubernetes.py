"""Kubernetes: servers of one node are a Deployment, those of several a LeaderWorkerSet (v1), each with its Service.

Servers of one phase each are the roles of one DisaggregatedSet (v1) instead: it makes a LeaderWorkerSet of each role,
even of one pod, and updates all together, as KV caches are handed on only between servers of one revision
(kubernetes-sigs/lws, `docs/concepts/disaggregatedset`, `pkg/controllers/disaggregatedset/planner.go`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .pods import Group, groups_of, pod, pod_remarks
from .target import CannotExportError, Written
from .text import refuse_mpirun, tail_lines, yaml_text

_LWS = "leaderworkerset.sigs.k8s.io"
_SET, _SET_NAME = "disaggregatedset.x-k8s.io", "servers"
_MOST_ROLES = 10
_SET_REMARK = "a DisaggregatedSet needs the controller of LeaderWorkerSet 0.9 or later in the cluster"
# Loading a checkpoint is no failed roll-out; and there are no spare GPUs for new pods beside the old.
_ROLLOUT = {"progressDeadlineSeconds": 7500, "strategy": {"type": "Recreate"}}


def manifests(written: Written) -> str:
    """The objects that run the servers of a plan, as one YAML text.

    Raises CannotExportError: servers of several nodes start by mpirun, which these objects do not support; no image is
    known that runs the engine on these GPUs.
    """
    if not written.image:
        raise CannotExportError(
            f"no image of {written.engine.title} {written.engine.version} for {written.card} is known here: export the "
            "plan to its engine, and run that script"
        )
    groups = groups_of(written)
    for group in groups:
        refuse_mpirun(group.server, group.launches, "for which no object is known")
    ways = [(group.server, f"{_service_name(group)}:{group.port}") for group in groups]
    objects = list(_objects(written, groups))
    return yaml_text(written, remarks_of(written, objects), objects, tail_lines(written, ways))


def remarks_of(written: Written, objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """What to take care of with these objects in a cluster."""
    return [*pod_remarks(written), *(_SET_REMARK for manifest in objects if manifest["kind"] == "DisaggregatedSet")]


def _service_name(group: Group) -> str:
    """The name of a Service; a LeaderWorkerSet makes another one under its own name."""
    return f"{group.name}-http"


def _objects(written: Written, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    for workload, members in workloads(written, groups):
        yield workload
        yield from (_service(group, _answering(workload["kind"], group)) for group in members)


def workloads(written: Written, groups: Sequence[Group]) -> Iterator[tuple[dict[str, Any], Sequence[Group]]]:
    """The objects that make the pods of `groups`, each with its groups."""
    roles = [group for group in groups if group.server.role != "both"]
    if len(roles) > _MOST_ROLES:
        roles = []
    if roles:
        spec = {"roles": [_role(written, group) for group in roles]}
        yield _object(f"{_SET}/v1", "DisaggregatedSet", _SET_NAME, spec), roles
    for group in groups:
        if group in roles:
            continue
        if len(group.launches) == 1:
            labels = _answering("Deployment", group)
            template = pod(written, group, is_leader=True, labels=labels)
            spec = {"replicas": group.count, **_ROLLOUT, "selector": {"matchLabels": labels}, "template": template}
            yield _object("apps/v1", "Deployment", group.name, spec), [group]
        else:
            spec = {"replicas": group.count, "leaderWorkerTemplate": _template(written, group)}
            yield _object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", group.name, spec), [group]


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _answering(kind: str, group: Group) -> dict[str, str]:
    """The labels of a group's pods that answer requests, if an object of this kind makes them."""
    if kind == "Deployment":
        return {"app": group.name}
    leader = {f"{_LWS}/worker-index": "0"}
    if kind == "LeaderWorkerSet":
        return {f"{_LWS}/name": group.name, **leader}
    return {f"{_SET}/name": _SET_NAME, f"{_SET}/role": group.name, **leader}


def _template(written: Written, group: Group) -> dict[str, Any]:
    """The template of a LeaderWorkerSet: for each server a pod per node."""
    size, leader = len(group.launches), pod(written, group, is_leader=True)
    template: dict[str, Any] = {"size": size, "restartPolicy": "RecreateGroupOnPodRestart"}
    if size == 1:
        return {**template, "workerTemplate": leader}
    return {**template, "leaderTemplate": leader, "workerTemplate": pod(written, group, is_leader=False)}


def _role(written: Written, group: Group) -> dict[str, Any]:
    # As in a Deployment, all servers of a role stop before new ones start.
    rollout = {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": group.count},
    }
    template = _template(written, group)
    spec = {"replicas": group.count, "rolloutStrategy": rollout, "leaderWorkerTemplate": template}
    return {"name": group.name, "spec": spec}


def _service(group: Group, labels: Mapping[str, str]) -> dict[str, Any]:
    ports = [{"name": "http", "port": group.port, "targetPort": group.port}]
    return _object("v1", "Service", _service_name(group), {"selector": labels, "ports": ports})
