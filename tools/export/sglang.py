"""SGLang 0.5.23: `sglang.launch_server`. Its flags and checks: `server_args.py`, `arg_groups/`, `runtime_context.py`.

`--tp-size` is the width of a stage; attention DP, context and expert parallelism lie inside it. Ranks go stage by
stage, in each attention group by group, tensor ranks last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..plan.rank_order import NodeShare
from .result import Launch
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

_LENGTH = "--context-length"


def _commands(server: Server, settings: ServingSettings) -> Commands:
    spread = spread_of(server, "sglang")
    return Commands(tuple(_launches(server, settings, spread)))


def _launches(server: Server, settings: ServingSettings, spread: Sequence[NodeShare]) -> Iterator[Launch]:
    environment = cut_variable(server, "sglang")
    for place, share in enumerate(spread):
        words = ["python3", "-m", "sglang.launch_server", "--model-path", MODEL]
        words += [*_degrees(server, settings), *_serving(server, settings), *_handoff(server)]
        if len(spread) > 1:
            meeting = f"{address_of(spread[0].node)}:{master_port_of(server)}"
            words += options(("--nnodes", len(spread)), ("--node-rank", place), ("--dist-init-addr", meeting))
        words += ["--host", "0.0.0.0", "--port", str(port_of(server))]
        yield launch(server, share, environment, words)


def _degrees(server: Server, settings: ServingSettings) -> list[str]:
    words = options(
        ("--tp-size", server.width),
        ("--pp-size", above_one(server.pp)),
        ("--attn-dp-size", above_one(server.groups)),
        ("--attn-cp-size", above_one(server.context)),
        ("--dcp-size", above_one(server.cache_parts)),
        ("--ep-size", above_one(server.ep)),
    )
    if server.context > 1:
        words += ["--enable-prefill-cp", "--cp-strategy", "zigzag"]
    if settings.is_moe and settings.has_split_ffn and server.tp_ffn == 1 < server.width:
        words += ["--moe-dense-tp-size", "1"]
    if server.redundant_experts:
        words += ["--enable-eplb", "--ep-num-redundant-experts", str(server.redundant_experts)]
    if settings.overlaps:
        words += ["--enable-two-batch-overlap", "--moe-a2a-backend", "deepep"]
    return words


def _serving(server: Server, settings: ServingSettings) -> list[str]:
    return options(
        # It divides both by the attention groups.
        ("--max-running-requests", settings.max_sequences * server.groups),
        ("--chunked-prefill-size", settings.token_budget * server.groups),
        (_LENGTH, settings.max_tokens),
        ("--mem-fraction-static", f"{settings.memory_share:g}"),
        ("--kv-cache-dtype", cache_format(settings, "sglang")),
        ("--dtype", DTYPES.get(settings.dtype)),
        ("--quantization", settings.quantisation),
    )


def _handoff(server: Server) -> list[str]:
    if server.role == "both":
        return []
    return options(
        ("--disaggregation-mode", server.role),
        ("--disaggregation-transfer-backend", "nixl"),
        ("--disaggregation-bootstrap-port", handoff_port_of(server) if server.role == "prefill" else None),
    )


def _fronts(prefill: Sequence[Way], decode: Sequence[Way]) -> tuple[str, ...]:
    if prefill:
        words = [f"--prefill http://{address} {handoff_port_of(server)}" for server, address in prefill]
        words += [f"--decode http://{address}" for _, address in decode]
        return (
            "SGLang's router (package sglang-router) pairs the servers:",
            f"python3 -m sglang_router.launch_router --pd-disaggregation {' '.join(words)}",
        )
    return ("SGLang's router, or any load balancer for HTTP, in front of the servers:", urls(decode))


TARGET = Target(
    name="sglang",
    version="0.5.23",
    image="lmsysorg/sglang:v0.5.23",
    commands=_commands,
    length_setting=_LENGTH,
    batch_setting="--max-running-requests",
    makes=("fp8",),
    by_itself={
        "experts": "each expert rank gets a run of experts in their order",
        "all-to-all": "without --moe-a2a-backend dispatch and combine are an all-gather and a reduce-scatter; "
        "deepep, where it is installed, sends each token to its experts alone",
        "prefix cache": "prompts that share a beginning are served from its cache (--disable-radix-cache to "
        "stop), but on decode servers",
    },
    fronts=_fronts,
)
