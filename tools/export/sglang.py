"""`sglang.launch_server`. Its checks: `server_args.py`, `arg_groups/`, `runtime_context.py`.

`--tp-size` is the width of a stage; attention DP, context and expert parallelism lie inside it. Ranks go stage by
stage, in each attention group by group, tensor ranks last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..engines.sglang import ENGINE
from ..plan.devices import NodeShare
from .result import Launch
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

_written = ENGINE.vocabulary.written


def _commands(server: Server, settings: ServingSettings) -> Commands:
    return Commands(tuple(_launches(server, settings, spread_of(server, ENGINE))))


def _launches(server: Server, settings: ServingSettings, spread: Sequence[NodeShare]) -> Iterator[Launch]:
    stated = [*_degrees(server, settings), *serving_flags(server, settings, ENGINE), *_handoff(server)]
    for place, share in enumerate(spread):
        words = ["python3", "-m", "sglang.launch_server", *_written(model=MODEL), *stated]
        if len(spread) > 1:
            meeting = f"{address_of(spread[0].node)}:{master_port_of(server)}"
            words += [*_written(nodes=len(spread), node_rank=str(place)), "--dist-init-addr", meeting]
        words += ["--host", "0.0.0.0", "--port", str(port_of(server))]
        yield launch(server, share, cut_variable(server, ENGINE), words)


def _degrees(server: Server, settings: ServingSettings) -> list[str]:
    words = _written(
        tp=server.width,
        pp=above_one(server.pp),
        attention_dp=above_one(server.groups),
        context=above_one(server.context),
        cache_parts=above_one(server.cache_parts),
        ep=above_one(server.ep),
    )
    if server.context > 1:
        words += ["--enable-prefill-cp", "--cp-strategy", "zigzag"]
    if settings.is_moe and settings.has_split_ffn and server.tp_ffn == 1 < server.width:
        words += _written(dense_tp=1)
    if server.redundant_experts:
        words += _written(eplb=True, redundant=server.redundant_experts)
    if settings.kv_offload_bytes is not None and server.role != "decode":
        words += ["--enable-hierarchical-cache"]
    if settings.overlaps:
        words += _written(two_batch=True, all_to_all="deepep")
    return words


def _handoff(server: Server) -> list[str]:
    if server.role == "both":
        return []
    words = _written(mode=server.role, transfer="nixl")
    is_asked = server.role == "prefill"
    return [*words, "--disaggregation-bootstrap-port", str(handoff_port_of(server))] if is_asked else words


def _fronts(prefill: Sequence[Way], decode: Sequence[Way]) -> tuple[str, ...]:
    if prefill:
        words = [f"--prefill http://{address} {handoff_port_of(server)}" for server, address in prefill]
        words += [f"--decode http://{address}" for _, address in decode]
        return (
            "SGLang's router (package sglang-router) pairs the servers:",
            f"python3 -m sglang_router.launch_router --pd-disaggregation {' '.join(words)}",
        )
    return ("SGLang's router, or any load balancer for HTTP, in front of the servers:", urls(decode))


TARGET = Target(ENGINE, _commands, _fronts)
