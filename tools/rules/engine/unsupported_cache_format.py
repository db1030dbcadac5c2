"""EN014: the KV cache is in a format that the engine has.

It needs a plan that names its engine, and reads only the declared formats.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView, as_str
from ..base import Example, Finding, Rule, served_by, set_top
from ..reading import named_engine


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the cache's format if the engine has no such cache."""
    engine, dtype = named_engine(view), as_str(view.precision.get("kv_cache"))
    if engine is None or dtype is None or dtype in engine.caches:
        return
    yield Finding(
        "no-such-cache",
        f"a KV cache in {dtype}; {engine.title} has {', '.join(engine.caches)}",
        where="/precision/kv_cache",
        value=dtype,
        expected=list(engine.caches),
        remedy=f"name one of {', '.join(engine.caches)}, or another engine",
    )


RULE = Rule(
    id="EN014",
    name="unsupported cache format",
    requirement=(
        "In a plan that names its engine, the KV cache is in 16 bits, fp8 or nvfp4, or in SGLang in mxfp8: the formats "
        "that the engine has."
    ),
    rationale=(
        "An engine's kernels read the cache in few formats, which one option names. A plan with another has no value "
        "for that option, and with the engine's own format the cache would be of another size than the plan's."
    ),
    source=(
        "vLLM 0.33.0 config/cache.py (cache_dtype); SGLang 0.5.23 server_args.py (kv_cache_dtype); TensorRT-LLM "
        "llmapi/llm_args.py (kv_cache_config.dtype)"
    ),
    fix="report",
    remedy="name a format that the engine has, or another engine",
    check=check,
    bad=Example(
        "dense-tp2",
        (
            served_by("vllm"),
            set_top("/precision/kv_cache", "int8"),
        ),
    ),
)
