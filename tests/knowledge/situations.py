"""Requests of each typical kind, and the situations that select texts for them."""

from __future__ import annotations

from functools import cache

from shardwright.agent.loop.situation import situation_of
from shardwright.agent.stated.request import intent_of
from shardwright.knowledge.situation import Situation

REQUESTS = {
    "dense": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "moe": "Serve DeepSeek-V3 in fp8 on 16 H200, 4k in / 1k out, 64 concurrent, throughput, TPOT below 50 ms",
    "long-context": "Serve Llama-3.1-70B on 16 H100, 100k in / 1k out, TTFT below 20 s",
    "64 GPUs": "Serve DeepSeek-V3 on 64 H100, 4k in / 1k out, 512 concurrent, throughput, TTFT < 5 s, TPOT < 60 ms",
    "sliding window": "Serve gpt-oss-120b on 4 H100, 8k in / 500 out, 32 concurrent, lowest cost",
    "relaxed": "Serve DeepSeek-V3 on 64 H100, 4k in / 1k out, 512 concurrent, throughput, allow attention_dp",
}


@cache
def situation(name: str) -> Situation:
    """The situation of the request `name`."""
    return situation_of(intent_of(REQUESTS[name]))
