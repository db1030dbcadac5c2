"""Commands as a deployment of a model: the servers of each phase, their strategy, and their settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.architecture import Architecture
from ..engines.names import ENGINES, EngineName
from ..errors import InputError
from ..input.bounds import DEGREE
from ..plan.describe import describe_phase
from ..plan.document import PhaseStrategy, Relaxation, Strategy
from ..plan.placement import gpu_count, own_cut
from .caveats import check_nodes, differences, gpus_given, refusals
from .experts import has_shared_alone, shared_otherwise, without_effect
from .group import Group, Scheduling
from .launch import Launch
from .meeting import given_alone
from .servers import Server, servers_of


class Deployment(Struct, frozen=True):
    """The strategy of the started servers, the relaxations that it needs, and the settings of its schedulers.

    `servers` stand in the order of their commands. `devices[i]` are those of server i (prefill servers first) in the
    engine's rank order, empty unless the commands name them all. `refused`: why the engine does not start; `remarks`:
    what else no plan says.
    """

    engine: EngineName
    servers: tuple[Server, ...]
    strategy: Strategy
    relaxations: tuple[Relaxation, ...]
    redundant_experts: int
    scheduling: Scheduling
    devices: tuple[tuple[str, ...], ...]
    refused: tuple[str, ...]
    remarks: tuple[str, ...]


def deployment_of(launch: Launch, architecture: Architecture) -> Deployment:
    """The deployment of `architecture` that `launch` starts.

    Raises InputError: a figure is malformed or left to a variable; servers of a phase, or nodes of a server, differ;
    one phase has no server.
    """
    servers = tuple(servers_of(launch, architecture))
    check_nodes(servers)
    sides = {
        phase: [peer for peer in servers if peer.commands[0].phase == phase] for phase in ("prefill", "decode", None)
    }
    if (sides["prefill"] or sides["decode"]) and (sides[None] or not (sides["prefill"] and sides["decode"])):
        counts = ", ".join(f"{len(alike)} of {phase or 'both phases'}" for phase, alike in sides.items() if alike)
        raise InputError(
            f"servers of one phase without those of the other ({counts}): give the commands of both sides together"
        )
    for alike in sides.values():
        _check_alike(alike)
    first = (sides["prefill"] or servers)[0].group
    last = (sides["decode"] or servers)[0].group
    prefill, decode = (
        _phase(first, launch.engine, architecture),
        _phase(last, launch.engine, architecture, decodes=True),
    )
    if sides["prefill"]:
        counts = {phase: sum(server.copies for server in sides[phase]) for phase in ("prefill", "decode")}
        prefill = prefill.model_copy(update={"replicas": counts["prefill"]})
        decode = decode.model_copy(update={"replicas": counts["decode"]})
        dp = sum(counts.values())
    else:
        dp = sum(server.copies for server in servers)
    if not DEGREE.hold(dp):
        raise InputError(f"{dp:,} replicas are more than the {int(DEGREE.most):,} that a plan may have")
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    return Deployment(
        engine=launch.engine,
        servers=servers,
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        relaxations=tuple(_relaxations(prefill, decode, max(first.redundant_experts, last.redundant_experts))),
        redundant_experts=max(first.redundant_experts, last.redundant_experts),
        scheduling=_scheduling((sides["prefill"] or servers)[0].scheduling, (sides["decode"] or servers)[0].scheduling),
        devices=_devices(sides["prefill"] + sides["decode"] + sides[None]),
        refused=tuple(dict.fromkeys((*refusals(launch, servers, architecture), *gpus_given(servers, lacking=True)))),
        remarks=_remarks(launch, servers, architecture),
    )


def _scheduling(prefill: Scheduling, decode: Scheduling) -> Scheduling:
    """The settings of a plan: prompts are cut as in prefill, requests in flight are those of decode."""
    sequences = prefill.max_sequences if decode.max_sequences is None else decode.max_sequences
    budget = decode.token_budget if prefill.token_budget is None else prefill.token_budget
    return replace(prefill, max_sequences=sequences, token_budget=budget)


def _remarks(launch: Launch, servers: Sequence[Server], architecture: Architecture) -> tuple[str, ...]:
    """Remarks on servers that start: what no plan says of them."""
    alone = (words for server in servers for words in given_alone(launch, server.commands))
    effects = (*without_effect(servers, architecture), *shared_otherwise(servers, architecture))
    return tuple(dict.fromkeys((*alone, *differences(servers), *effects, *gpus_given(servers, lacking=False))))


def _check_alike(servers: Sequence[Server]) -> None:
    for other in servers[1:]:
        if replace(other.group, servers=1) != replace(servers[0].group, servers=1):
            raise InputError(
                "servers of one phase that differ: "
                + " and ".join(_shown(server.group) for server in (servers[0], other))
                + "; replicas of a plan are alike: import them one by one"
            )


def _shown(group: Group) -> str:
    return describe_phase(
        PhaseStrategy(pp=group.pp, sp=group.context, ep=group.ep, tp=group.tp, attention_dp=group.groups)
    )


def _phase(group: Group, engine: EngineName, architecture: Architecture, *, decodes: bool = False) -> PhaseStrategy:
    """The degrees of a phase that a server runs; context-parallel ranks hold attention weights as `tp` in decode."""
    parts = group.cache_parts if decodes else 1
    tp = group.tp * (group.context if decodes else 1)
    if tp % parts:
        raise InputError(f"{parts} parts of the KV cache do not divide {tp} tensor ranks: the engine refuses that")
    if not architecture.has_split_ffn or has_shared_alone(group, architecture):
        tp_ffn = 1
    else:
        allowed = ENGINES[engine].ffn_degrees(group.width, group.context * group.tp, is_moe=architecture.is_moe)
        tp_ffn = group.tp_ffn or (max(allowed) if allowed else group.context * group.tp)
    cut = group.cut
    if cut is None and group.pp > 1:
        cut = ENGINES[engine].default_cut(architecture.num_layers, group.pp)
    if cut is not None and (len(cut) != group.pp or sum(cut) != architecture.num_layers):
        raise InputError(
            f"layers {', '.join(map(str, cut))} for {group.pp} stages of {architecture.num_layers} layers: as many "
            "figures as stages, which add up to the layers, are expected"
        )
    return PhaseStrategy(
        pp=group.pp,
        sp=1 if decodes else group.context,
        sp_kind=None if decodes else group.sequence_kind,
        ep=group.ep,
        tp=tp // parts,
        tp_ffn=tp_ffn,
        stage_layers=None if cut is None else own_cut(cut),
        attention_dp=group.groups if group.groups > 1 else None,
        tp_expert=group.tp_expert if group.tp_expert > 1 else None,
        kv_sp=parts if parts > 1 else None,
    )


def _relaxations(prefill: PhaseStrategy, decode: PhaseStrategy, copies: int) -> Iterable[Relaxation]:
    """The relaxations, in the format's sense, that the started servers need."""
    if prefill.attention_dp or decode.attention_dp:
        yield "attention_dp"
    if prefill.tp_expert or decode.tp_expert:
        yield "tp_in_expert"
    if decode.kv_sp:
        yield "kv_sequence_decode"
    if copies:
        yield "redundant_experts"


def _devices(servers: Sequence[Server]) -> tuple[tuple[str, ...], ...]:
    """The devices of each server by the GPUs that its commands see; empty unless all name theirs and their nodes."""
    devices: list[tuple[str, ...]] = []
    for server in servers:
        server_devices: list[str] = []
        for command in server.commands:
            node = command.process.node
            listed = command.process.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
            if not all(gpu.isdecimal() and len(gpu) < 5 for gpu in listed):
                return ()
            if node is not None and not (node[:1] == "n" and node[1:].isdecimal()):
                return ()
            server_devices += [f"{node or 'n0'}.g{int(gpu)}" for gpu in listed]
        if len(server_devices) != server.group.width * server.group.pp or server.copies != 1:
            return ()
        devices.append(tuple(server_devices))
    used = [device for server_devices in devices for device in server_devices]
    return tuple(devices) if len({*used}) == len(used) else ()
