"""Number formats of commands that an engine refuses, or that their checkpoint chooses: activations and the KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..catalog.dtypes import DType
from ..engines.names import ENGINES
from ..engines.release import release_of
from .caveats import Caveat, Checkpoint
from .flags import Flags
from .group import format_of
from .launch import DIALECTS, Launch
from .servers import Server

# NVIDIA's method, whose checkpoints say in `hf_quant_config.json` what format `auto` is for the KV cache.
_CHOOSES_CACHE = "modelopt"


def told_of_formats(launch: Launch, checkpoint: Checkpoint, kv_cache: DType) -> Iterator[Caveat]:
    """Why the engine refuses formats beside the weights of a checkpoint, or that it may have another `kv_cache`."""
    dialect, release, stored = DIALECTS[launch.engine], release_of(launch.version), checkpoint.method or ""
    for flags in (command.flags for command in launch.commands):
        cache, method = (flags.text("kv_cache") or "").lower(), (flags.text("quantization") or "").lower()
        if cache.endswith("e5m2") and stored in dialect.without_e5m2:
            yield (
                "refused",
                f"{flags.written['kv_cache']} {cache}: beside {stored} weights it takes e4m3 alone; name fp8",
            )
        if release is not None and release < dialect.half_before.get(method, ()) and _is_bf16(flags):
            names = f"{flags.written['dtype']} {flags.text('dtype')}", f"{flags.written['quantization']} {method}"
            yield "refused", f"{names[0]} with {names[1]}: {launch.version} takes float16 alone"
        if cache in ("", "auto") and stored.startswith(_CHOOSES_CACHE) and kv_cache != "fp8":
            yield "remark", _chosen_cache(checkpoint.name, ENGINES[launch.engine].title, kv_cache)


def _chosen_cache(name: str, engine: str, kv_cache: DType) -> str:
    return (
        f"{name} may ask for an fp8 KV cache (kv_cache_quant_algo in its hf_quant_config.json, which is not known "
        f"here), and {engine} then has one; judged with {kv_cache}, --kv-precision fp8 judges it so"
    )


def _is_bf16(flags: Flags) -> bool:
    return format_of(flags.text("dtype")) == "bf16"


def unlike_caches(servers: Sequence[Server], checkpoint: Checkpoint | None) -> Iterator[Caveat]:
    """That the servers of the two phases have KV caches of different formats, which cannot be handed over.

    vLLM's NIXL connector compares the formats and the releases (`compute_nixl_compatibility_hash`).
    """
    heads = {server.commands[0].phase: server.commands[0].flags for server in reversed(servers)}
    if "prefill" not in heads or "decode" not in heads:
        return
    sides = {phase: _cache_of(heads[phase]) for phase in ("prefill", "decode")}
    if None in sides.values() or sides["prefill"] == sides["decode"]:
        return
    shown = " and ".join(f"{phase} servers {cache or '16 bits'}" for phase, cache in sides.items())
    chooses = checkpoint is not None and (checkpoint.method or "").startswith(_CHOOSES_CACHE)
    why = f"formats of the KV cache differ ({shown}), and it is handed over as it is: give both sides the same"
    yield ("unknown" if chooses and "" in sides.values() else "refused"), why


def _cache_of(flags: Flags) -> str | None:
    """The format of a cache, "" if it has 16 bits or that of the checkpoint; `None` if a variable states it."""
    stated = flags.text("kv_cache")
    if stated is None:
        return None if "kv_cache" in flags.values else ""
    known = format_of(stated)
    if known in (None, "bf16", "fp16"):
        return ""
    return "fp8_e5m2" if stated.lower().endswith("e5m2") else known
