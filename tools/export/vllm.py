"""`vllm serve`. Its checks: `engine/arg_utils.py`, `config/parallel.py`, `config/kv_transfer.py`.

Ranks go data-parallel group by group, in each stage by stage, tensor ranks last (`distributed/parallel_state.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..engines.vllm import ENGINE
from ..plan.devices import NodeShare
from .result import Launch, Role
from .server import Server, ServingSettings
from .target import (
    MODEL,
    Commands,
    Target,
    Way,
    above_one,
    address_of,
    cut_variable,
    handoff_port_of,
    launch,
    master_port_of,
    port_of,
    serving_flags,
    spread_of,
    urls,
)

_KV_ROLES: dict[Role, str] = {"prefill": "kv_producer", "decode": "kv_consumer"}
_written = ENGINE.vocabulary.written


def _commands(server: Server, settings: ServingSettings) -> Commands:
    return Commands(tuple(_launches(server, settings, spread_of(server, ENGINE))))


def _launches(server: Server, settings: ServingSettings, spread: Sequence[NodeShare]) -> Iterator[Launch]:
    stated = [*_degrees(server, settings), *serving_flags(server, settings, ENGINE), *_handoff(server, settings)]
    for place, share in enumerate(spread):
        environment = cut_variable(server, ENGINE)
        if server.role != "both":
            environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] = address_of(share.node)
            environment["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(handoff_port_of(server))
        words = ["vllm", "serve", MODEL, *stated, *_across_nodes(server, spread, place)]
        words += _written(headless=True) if place else ["--host", "0.0.0.0", "--port", str(port_of(server))]
        yield launch(server, share, environment, words)


def _degrees(server: Server, settings: ServingSettings) -> list[str]:
    words = _written(
        tp=server.tp,
        pp=above_one(server.pp),
        context=above_one(server.context),
        cache_parts=above_one(server.cache_parts),
        dp=above_one(server.groups),
        expert_parallel=settings.is_moe and server.ep > 1,
        eplb=server.redundant_experts > 0,
    )
    if server.redundant_experts:
        words += ["--eplb-config", json.dumps({"num_redundant_experts": server.redundant_experts})]
    if settings.overlaps:
        # It supports no other backend, and refuses its own default.
        backend = "deepep_low_latency" if server.role == "decode" else "deepep_high_throughput"
        words += [*_written(two_batch=True), "--all2all-backend", backend]
    return words


def _handoff(server: Server, settings: ServingSettings) -> list[str]:
    """Decode servers read the caches, or, where stages of a prefill server have parts of them, it writes them.

    A reader asks the first stage alone (`nixl/pull_worker.py`); stages can write their parts (`nixl/push_worker.py`).
    """
    if server.role == "both":
        return []
    pushes = ENGINE.pushes_from_stages if settings.hands_on_in_stages else None
    connector = pushes or "NixlConnector"
    return _written(transfer=json.dumps({"kv_connector": connector, "kv_role": _KV_ROLES[server.role]}))


def _across_nodes(server: Server, spread: Sequence[NodeShare], place: int) -> list[str]:
    """How the processes of a server on several nodes meet: whole groups on a node, or ranks of one."""
    nodes, leader, port = len(spread), address_of(spread[0].node), str(master_port_of(server))
    if nodes > 1 and server.groups % nodes:
        return [*_written(nodes=nodes, node_rank=str(place)), "--master-addr", leader, "--master-port", port]
    local = server.groups // nodes
    words: list[str] = []
    if nodes > 1:
        words = [*_written(local=local, first_rank=place * local), "--data-parallel-address", leader]
    return [*words, "--data-parallel-rpc-port", port] if server.groups > 1 else words


def _fronts(prefill: Sequence[Way], decode: Sequence[Way]) -> tuple[str, ...]:
    if prefill:
        return (
            "a proxy that sends each request to a prefill server and then to a decode server: vLLM ships none for "
            "production; llm-d and Dynamo have one",
            f"prefill servers: {urls(prefill)}",
            f"decode servers: {urls(decode)}",
        )
    return ("any load balancer for HTTP in front of the servers, by requests in flight:", urls(decode))


TARGET = Target(ENGINE, _commands, _fronts)
