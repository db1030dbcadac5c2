"""How an engine forms its steps, as far as it affects latency under load. Engine defaults are data, not here."""

from __future__ import annotations

from msgspec import Struct

from ...calibration.engine_profile import Mode, Reserve


class HostMemory(Struct, frozen=True):
    """Host memory for `tokens` of a scheduler's cache, each of which takes `s_per_token` to come back.

    `takes_evicted`: it gets what the GPU evicts; else a copy of what is computed, immediately.
    """

    tokens: int
    s_per_token: float
    takes_evicted: bool


class Policy(Struct, frozen=True):
    """The scheduler of one replica, and what lies between it and its users.

    `mode`: "mixed", each step decodes every running request, then fills `token_budget` with prompt chunks (vLLM V1);
    "prefill_first", steps of only prompt chunks as long as prompts wait and fit, decode in between (SGLang); "whole",
    as mixed, but a new prompt is never cut (TensorRT-LLM without chunked context).
    `max_sequences` requests are in the engine at once (and, where steps are shared, no more than `token_budget`), with
    at most `kv_tokens` in its cache.
    `reserve`: "prompt", a request is admitted when its prompt fits, and the youngest is preempted and recomputed later
    when the cache runs out; "full", when its prompt and whole output fit (guaranteed no eviction).
    `prefix_hit_rate`: share of each prompt whose keys and values are already cached; it is not computed, but attended
    to and, on the safe side, counted as cache of this request.
    `prefix_block_tokens`: tokens of a cache block, the unit of sharing; `host_memory` holds more blocks.
    `client_s` + `client_s_per_token` x prompt: client, HTTP and tokeniser, before the engine sees the request.
    `groups` such schedulers step together, each with its own cache (`kv_tokens` and `max_sequences` are for one):
    attention-DP ranks that meet in every layer, so that a prompt of one holds up the decode of all.
    `batches` of each scheduler are at work at once, one behind the other through the stages of a pipeline: each has its
    own token budget; cache and `max_sequences` are for all.
    `group_wait_steps`: prompts are held back until every group has one, or for so many steps (0: never; the
    `attention_dp_config` of TensorRT-LLM with `enable_balance` and `timeout_iters`).
    `jitter_s`: users of a closed loop wait uniformly up to this long before their next request.
    """

    token_budget: int
    max_sequences: int
    kv_tokens: int
    mode: Mode = "mixed"
    reserve: Reserve = "prompt"
    prefix_hit_rate: float = 0.0
    client_s: float = 0.0
    client_s_per_token: float = 0.0
    jitter_s: float = 0.0
    groups: int = 1
    batches: int = 1
    group_wait_steps: int = 0
    prefix_block_tokens: int = 16
    host_memory: HostMemory | None = None
