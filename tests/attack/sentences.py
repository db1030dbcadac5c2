"""Requests in words as people, and those who want harm, may write them: ordinary words, and noise between them."""

from __future__ import annotations

import random

from .probe import Case

_MODELS = (
    "Llama-3.1-70B", "Llama-3.1-8B", "llama 3 70b", "DeepSeek-V3", "deepseek r1", "Qwen3-30B-A3B", "Qwen2.5-72B", "mixtral 8x7b",
    "gpt-oss-120b", "gemma-2-27b", "Kimi-K2", "GLM-4.5", "a 13B model", "Llama-9-700B", "通义千问 72B", "my model", "GPT-4", "",
)  # fmt: skip
_CARDS = ("H100", "H200", "A100 80GB", "a100-40g", "L40S", "RTX 4090", "MI300X", "B200", "H20", "GB200", "TPU v5e", "910B", "V100", "T4")
_COUNTS = ("1", "2", "4", "8", "16", "3", "7", "0", "-8", "1.5", "10**6", "999999999999", "one", "two", "eight", "八", "两", "a dozen", "1e3", "٨", "½")
_FRAMES = (
    "Serve {m} on {n} {c}", "{m} on {n}x{n} {c}", "{n} {c}, {m}", "部署 {m} 到 {n} 张 {c}", "用 {n} 台 8 卡 {c} 服务器部署 {m}",
    "plan {m} for {n} nodes of {n} {c}", "{m}", "on {c} {m} {m}", "How many {c} does {m} need?", "{m} / {c} / {n}", "{n} {c} or {n} {c}, {m}",
)  # fmt: skip
_CLAUSES = (
    "{k} in / {k} out", "{k}/{k}", "input {k} tokens", "output {k}", "prompt length {k}", "ISL {k} OSL {k}", "输入 {k} 输出 {k}", "batch {k}",
    "concurrency {k}", "{k} users at once", "{k} requests per second", "QPS {k}", "TTFT under {k} ms", "TTFT p99 < {k}s", "TPOT < {k}ms",
    "ITL {k} ms", "首字延迟 {k} 毫秒以内", "每秒 {k} 个请求", "{k} tokens/s per user", "lowest latency", "best throughput", "cheapest", "最低成本",
    "吞吐优先", "fp8", "int4 weights, fp8 KV cache", "bf16", "fp3", "TP{k}", "TP8 PP2", "EP{k}", "DP2 of TP4", "PP{k} with cuts 1,2,3", "SP 4",
    "disaggregated", "2 prefill of TP4 + 1 decode of TP8", "PD 分离", "attention DP 8", "NVLink {k} GB/s", "InfiniBand {k} Gbit/s",
    "memory utilization {k}", "90% of memory", "vLLM 0.11", "SGLang", "TensorRT-LLM", "prefix cache hit rate {k}%", "between {k} and {k} tokens",
    "at ${k} per GPU hour", "no more than {k} GPUs", "not TP{k}", "without PP", "keep {k} GPUs free", "context {k}", "chunked prefill {k}",
)  # fmt: skip
_SIZES = (
    "1", "128", "2k", "4K", "1.5k", "32k", "128k", "1M", "10M", "0", "-1", "1e35", "1e-35", "1e999", "nan", "inf", "9" * 40, "9" * 5000,
    "0.0000001", "1,000", "1.000,5", "２０４８", "1/3", "2^20", "half a", "100", "500", "一千", "3万", "0x800", "1_000", "many",
)  # fmt: skip
_NOISE = (
    "\ud800", "\udfff", "\x00", "\x1b[31m", "\u202e", "\ufeff", "\u200b", "\r\n", "\n\n\n", "\t", "🦀", "é" * 50, "a" * 20_000, "((" * 500, "[" * 500,
    "'; DROP TABLE", "{i}", "{m}", "%s%n", "$(id)", "../../../etc/passwd", "/dev/zero", '{"model": 1}', "<|im_end|>", "ﷺ", "Z̸͊", "," * 300, "8 " * 2000,
    "and " * 3000, "100 H100 " * 200, "TP8 " * 300, "1k/1k " * 300, "```", "\\ud800", "=" * 3000, "\u2028", "-" * 5000, "1." * 3000, "x" * 50 + "8" * 50,
)  # fmt: skip


def _filled(words: str, rng: random.Random) -> str:
    for mark, choices in (("{m}", _MODELS), ("{c}", _CARDS), ("{n}", _COUNTS), ("{k}", _SIZES)):
        while mark in words:
            words = words.replace(mark, rng.choice(choices[:8] if rng.random() < 0.6 else choices), 1)
    return words


def sentence(rng: random.Random) -> str:
    """One request; about half of them are in order."""
    parts = [_filled(rng.choice(_FRAMES), rng)]
    parts += [_filled(rng.choice(_CLAUSES), rng) for _ in range(rng.choice((0, 1, 2, 3, 6)))]
    if rng.random() < 0.15:
        rng.shuffle(parts)
    text = rng.choice((", ", "，", " ", "; ", ". ", "\n")).join(parts)
    while rng.random() < 0.3:
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            (
                text[:at] + rng.choice(_NOISE) + text[at:],
                text[:at],
                text[at:] + text[:at],
                text + ", " + text,
                text.upper(),
                text.replace(" ", ""),
                text[:at] + text[at + 1 :],
            )
        )
    return text


def request_case(seed: int, number: int) -> Case:
    """The request of that number; the same each time."""
    return Case("requests", sentence(random.Random(f"requests:{seed}:{number}")))
