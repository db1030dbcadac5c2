"""What an evaluation must give and a claim leaves out: the parts of latency, the KV cache, the three throughputs.

Reads the claim and the graph's devices alone; nothing is computed.
"""

from __future__ import annotations

from ...plan.view import PlanView, as_list
from .claims import PARTS_OF, TOTAL_OF, claim_of, given, is_evaluated, is_on_several_devices

THROUGHPUTS = ("single_request_tokens_per_s", "batched_tokens_per_s", "dp_scaled_tokens_per_s")
# With one of these a latency is claimed as a whole; without, what users see (TTFT, TPOT) or parts of one phase.
_WHOLE = frozenset({"end_to_end_ms", "prefill_ms", "decode_ms"})


def lacking_latency(view: PlanView) -> tuple[str, ...]:
    """What a claimed latency lacks to be prefill + decode, each with its parts (PE001).

    A decode step of FLOPs alone is PE005's. Where the phase runs on one device there is no communication to give.
    """
    if not is_evaluated(view, "latency"):
        return ()
    latency = given(claim_of(view).get("latency"))
    is_whole = not latency or not _WHOLE.isdisjoint(latency)
    lacking = [total for total in TOTAL_OF.values() if is_whole and total not in latency]
    for phase, block in PARTS_OF.items():
        parts = given(latency.get(block))
        if not parts:
            lacking += [block] * is_whole
            continue
        wanted = ["compute_ms", "memory_ms", *["communication_ms"] * is_on_several_devices(view, phase)]
        if block == "decode_step" and lacking_memory_term(view):
            wanted = ["compute_ms"]
        lacking += [f"{block}.{name}" for name in wanted if name not in parts]
    return tuple(lacking)


def lacking_memory_term(view: PlanView) -> tuple[str, ...]:
    """The memory term, where a claimed decode step has parts and none of them is memory (PE005)."""
    parts = given(given(claim_of(view).get("latency")).get("decode_step"))
    return ("memory_ms",) if parts and "memory_ms" not in parts else ()


def lacking_cache(view: PlanView) -> tuple[str, ...]:
    """What a claimed memory lacks of the KV cache per token and per device (PE002)."""
    if not is_evaluated(view, "memory"):
        return ()
    memory = given(claim_of(view).get("memory"))
    devices = [given(item) for item in as_list(memory.get("per_device"))]
    lacking = [] if "kv_cache_bytes_per_token" in memory else ["kv_cache_bytes_per_token"]
    if not devices or any("kv_cache_bytes" not in device for device in devices):
        lacking.append("per_device.kv_cache_bytes")
    return tuple(lacking)


def lacking_throughput(view: PlanView) -> tuple[str, ...]:
    """Which of the three throughputs a claim lacks (PE003)."""
    if not is_evaluated(view, "throughput"):
        return ()
    throughput = given(claim_of(view).get("throughput"))
    return tuple(name for name in THROUGHPUTS if name not in throughput)
