"""vLLM 0.33.0: `vllm serve`. Flags and checks: `engine/arg_utils.py`, `config/parallel.py`, `config/kv_transfer.py`.

Ranks go data-parallel group by group, in each stage by stage, tensor ranks last (`distributed/parallel_state.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..catalog.dtypes import DType
from ..plan.rank_order import NodeShare
from .result import Launch, Role
from .server import Server
from .settings import ServingSettings
from .target import (
    DTYPES,
    MODEL,
    Commands,
    Target,
    Way,
    above_one,
    address_of,
    cache_format,
    cut_variable,
    handoff_port_of,
    launch,
    master_port_of,
    options,
    port_of,
    spread_of,
    urls,
)

# Formats that it makes of a 16-bit checkpoint, by its names.
_ONLINE: dict[DType, str] = {"fp8": "fp8_per_tensor"}
_KV_ROLES: dict[Role, str] = {"prefill": "kv_producer", "decode": "kv_consumer"}
_LENGTH = "--max-model-len"


def _commands(server: Server, settings: ServingSettings) -> Commands:
    spread = spread_of(server, "vllm")
    return Commands(tuple(_launches(server, settings, spread)))


def _launches(server: Server, settings: ServingSettings, spread: Sequence[NodeShare]) -> Iterator[Launch]:
    environment = cut_variable(server, "vllm")
    for place, share in enumerate(spread):
        own = dict(environment)
        if server.role != "both":
            own["VLLM_NIXL_SIDE_CHANNEL_HOST"] = address_of(share.node)
            own["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(handoff_port_of(server))
        words = ["vllm", "serve", MODEL, *_degrees(server, settings), *_serving(settings), *_handoff(server.role)]
        words += _across_nodes(server, spread, place)
        words += ["--headless"] if place else ["--host", "0.0.0.0", "--port", str(port_of(server))]
        yield launch(server, share, own, words)


def _degrees(server: Server, settings: ServingSettings) -> list[str]:
    words = options(
        ("--tensor-parallel-size", server.tp),
        ("--pipeline-parallel-size", above_one(server.pp)),
        ("--prefill-context-parallel-size", above_one(server.context)),
        ("--decode-context-parallel-size", above_one(server.cache_parts)),
        ("--data-parallel-size", above_one(server.groups)),
    )
    if settings.is_moe and server.ep > 1:
        words.append("--enable-expert-parallel")
    if server.redundant_experts:
        balance = json.dumps({"num_redundant_experts": server.redundant_experts})
        words += ["--enable-eplb", "--eplb-config", balance]
    if settings.overlaps:
        # It takes no other backend, and refuses the one that it has by itself.
        backend = "deepep_low_latency" if server.role == "decode" else "deepep_high_throughput"
        words += ["--enable-dbo", "--all2all-backend", backend]
    return words


def _serving(settings: ServingSettings) -> list[str]:
    return options(
        ("--max-num-seqs", settings.max_sequences),
        ("--max-num-batched-tokens", settings.token_budget),
        (_LENGTH, settings.max_tokens),
        ("--gpu-memory-utilization", f"{settings.memory_share:g}"),
        ("--kv-cache-dtype", cache_format(settings, "vllm")),
        ("--dtype", DTYPES.get(settings.dtype)),
        ("--quantization", None if settings.quantisation is None else _ONLINE[settings.quantisation]),
    )


def _handoff(role: Role) -> list[str]:
    if role == "both":
        return []
    return ["--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": _KV_ROLES[role]})]


def _across_nodes(server: Server, spread: Sequence[NodeShare], place: int) -> list[str]:
    """How the processes of a server on several nodes find each other: whole groups on a node, or ranks of one."""
    nodes, leader = len(spread), address_of(spread[0].node)
    if nodes == 1:
        return options(("--data-parallel-rpc-port", master_port_of(server) if server.groups > 1 else None))
    if server.groups % nodes == 0:
        local = server.groups // nodes
        return options(
            ("--data-parallel-size-local", local),
            ("--data-parallel-start-rank", place * local if place else None),
            ("--data-parallel-address", leader),
            ("--data-parallel-rpc-port", master_port_of(server)),
        )
    return options(
        ("--nnodes", nodes),
        ("--node-rank", place),
        ("--master-addr", leader),
        ("--master-port", master_port_of(server)),
    )


def _fronts(prefill: Sequence[Way], decode: Sequence[Way]) -> tuple[str, ...]:
    if prefill:
        return (
            "a proxy that sends each request to a prefill server and then to a decode server: vLLM ships none for "
            "production; llm-d and Dynamo have one",
            f"prefill servers: {urls(prefill)}",
            f"decode servers: {urls(decode)}",
        )
    return ("any load balancer for HTTP in front of the servers, by requests in flight:", urls(decode))


TARGET = Target(
    name="vllm",
    version="0.33.0",
    image="vllm/vllm-openai:v0.33.0",
    commands=_commands,
    length_setting=_LENGTH,
    batch_setting="--max-num-seqs",
    makes=tuple(_ONLINE),
    by_itself={
        "experts": "each rank gets a run of experts in their order (--expert-placement-strategy linear)",
        "all-to-all": "dispatch and combine run over --all2all-backend allgather_reducescatter; DeepEP, where it is "
        "installed, is faster: deepep_high_throughput for prefill, deepep_low_latency for decode",
        "prefix cache": "prompts that share a beginning are served from its cache (--no-enable-prefix-caching to stop)",
    },
    fronts=_fronts,
)
