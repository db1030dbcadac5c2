"""`trtllm-serve` with a YAML of options (`llmapi/llm_args.py`, `mapping.py`, `commands/serve.py`).

Ranks go stage by stage, tensor ranks last. Attention DP is on or off: its degree is the whole tensor group.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engines.trtllm import ENGINE
from .result import ConfigFile
from .server import Server, ServingSettings
from .target import (
    MODEL,
    Commands,
    Target,
    Way,
    address_of,
    cache_format,
    host_figure,
    launch,
    own_cut,
    port_of,
    spread_of,
    urls,
)
from .text import as_yaml

# The port of the front end of disaggregated servers; no server has it.
_FRONT_PORT = 7999


def _commands(server: Server, settings: ServingSettings) -> Commands:
    spread = spread_of(server, ENGINE)
    name = f"trtllm_{server.index}.yaml"
    words = ["trtllm-serve", MODEL, "--config", name, "--host", "0.0.0.0", "--port", str(port_of(server))]
    if server.role != "both":
        words += ["--server_role", "context" if server.role == "prefill" else "generation"]
    if len(spread) > 1:
        hosts = ",".join(f"{address_of(share.node)}:{len(share.gpus)}" for share in spread)
        # mpirun passes on to other nodes only variables that are named.
        start = ["mpirun", "--allow-run-as-root", "-x", "CUDA_VISIBLE_DEVICES", "-H", hosts]
        words = [*start, "trtllm-llmapi-launch", *words]
    config = as_yaml(_config(server, settings))
    return Commands((launch(server, spread[0], {}, words),), (ConfigFile(name=name, text=config),))


def _config(server: Server, settings: ServingSettings) -> dict[str, object]:
    named, cut = ENGINE.vocabulary.tree, own_cut(server, ENGINE)
    config: dict[str, object] = {
        "backend": "pytorch",
        **named(tp=server.groups * server.tp, pp=server.pp, max_sequences=settings.max_sequences),
        **named(token_budget=settings.token_budget or settings.own_tokens, max_tokens=settings.max_tokens),
        "enable_chunked_prefill": True,
        **named(
            memory_share=settings.memory_share,
            kv_cache=cache_format(settings, ENGINE),
            host_cache=host_figure(server, settings, ENGINE),
        ),
    }
    if server.context > 1:
        config |= named(context=server.context, sequence_kind="ULYSSES")
    if server.groups > 1:
        config |= named(attention_dp=True)
    if settings.is_moe:
        config |= named(ep=server.ep, tp_expert=server.tp_expert)
    config |= named(cut=None if cut is None else list(cut))
    if server.role != "both":
        config["cache_transceiver_config"] = {"backend": "NIXL", "max_tokens_in_buffer": settings.max_tokens}
        config["disable_overlap_scheduler"] = server.role == "prefill"
    return config


def _fronts(prefill: Sequence[Way], decode: Sequence[Way]) -> tuple[str, ...]:
    if prefill:
        sides = {"context_servers": prefill, "generation_servers": decode}
        lists = [f"{name}: {{num_instances: {len(ways)}, urls: [{_quoted(ways)}]}}" for name, ways in sides.items()]
        return (
            "trtllm-serve disaggregated -c FILE joins the servers, with these lines in FILE (addresses written out):",
            *("hostname: 0.0.0.0", f"port: {_FRONT_PORT}", *lists),
        )
    return ("any load balancer for HTTP in front of the servers, by requests in flight:", urls(decode))


def _quoted(ways: Sequence[Way]) -> str:
    return ", ".join(f'"{address}"' for _, address in ways)


TARGET = Target(ENGINE, _commands, _fronts)
