"""Valid plans that hostile documents are made out of: every shape of graph and header that the builder writes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import shardwright
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.rules.examples import base_names, base_plan

# Real models: a long config, many devices, special number formats.
_REQUESTS = {
    "llama-8b": "Serve Llama-3.1-8B on one H100",
    "llama-70b": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "llama-405b-fp8": "Llama-3.1-405B in fp8 on 2x8 H100 with PP2, 1k in 1k out",
    "qwen3-64-gpus": "Qwen3-235B-A22B on 64 H100, 8k in 1k out, best throughput",
    "deepseek-mla": "DeepSeek-V3 on 16 H200, 4k/1k, best throughput",
    "gpt-oss": "gpt-oss-120b on 2 H100, 2k/512, TTFT under 2 s",
}
# Small ones are quick: most attacks begin there.
_SMALL = tuple(base_names())


def seed_names() -> tuple[str, ...]:
    """The names that `seed_plan` knows: small plans, real ones, and small ones with every header field."""
    return (*_SMALL, *_REQUESTS, *(f"{name}+full" for name in ("dense-tp2", "moe-ep2", "dense-pp2-tp2")))


@cache
def seed_text(name: str) -> str:
    """The plan `name` as JSON."""
    if name in _REQUESTS:
        plan = shardwright.plan(_REQUESTS[name]).plan
        assert plan is not None, name
        return plan.model_dump_json()
    document = base_plan(name.removesuffix("+full"))
    return json.dumps(_with_all_fields(document) if name.endswith("+full") else document)


def seed_plan(name: str) -> dict[str, Any]:
    """A fresh copy of the plan `name`."""
    return json.loads(seed_text(name))


def _with_all_fields(document: dict[str, Any]) -> dict[str, Any]:
    """The document with an inline card and every field of the load and of serving stated."""
    card: Any = find_accelerator("h100-sxm")
    document["hardware"] |= {
        "accelerator": {**card.model_dump(mode="json", exclude_none=True), "compute_efficiency": 0.6},
        "intra_node_bw_gb_s": 400.0,
        "inter_node_bw_gb_s": 40.0,
    }
    document["workload"] |= {
        "request_rate": 0.1,
        "ttft_ms_max": 1e6,
        "tpot_ms_max": 1e5,
        "min_tokens_per_second": 0.1,
        "prefix_cache_hit_rate": 0.5,
        "input_tokens_range": [64, 16384],
        "output_tokens_range": [1, 64],
    }
    document["serving"] = {"prefill_chunk_tokens": 2048, "max_batch": 64}
    return document
