"""What every server of a plan is started with beside its degrees: the figures that the estimate of the plan goes by."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.dtypes import DType
from ..performance.capacity import cache_tokens
from ..performance.layout import LoadedLayout
from ..performance.overlap_halves import is_two_batch
from ..performance.setting import Setting

# Engines keep a token or two of a request for themselves (SGLang takes two off its output), and a prompt that is read
# back from text may have a few more.
_SLACK_TOKENS = 16
_LEAST_TOKENS = 1024
_SIXTEEN_BIT: tuple[DType, ...] = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """`max_sequences` and `token_budget` are of one scheduler (an attention group), `memory_share` of a GPU's memory.

    `max_tokens` is the longest request that is taken, prompt and output: the power of two above `longest_tokens`, that
    of the load, or that with a few tokens to spare where cache or model hold no more. `kv_cache` is none where the
    cache has the format of the activations; `quantisation` is what the engine makes of a 16-bit checkpoint, and
    `checkpoint_format` what the checkpoint has to be in, where neither it nor the engine's own quantisation gives that.
    `overlaps`: two halves of a batch overlap. `kv_offload_bytes`: memory of the host per GPU that keeps KV cache.
    """

    max_sequences: int
    token_budget: int
    memory_share: float
    longest_tokens: int
    max_tokens: int
    kv_cache: DType | None
    dtype: DType | None
    quantisation: DType | None
    checkpoint_format: DType | None
    is_moe: bool
    has_split_ffn: bool
    overlaps: bool
    kv_offload_bytes: int | None


def settings_of(layout: LoadedLayout, makes: tuple[DType, ...]) -> ServingSettings:
    """The settings of the servers of `layout` on an engine that `makes` these formats of a 16-bit checkpoint."""
    setting = layout.setting
    precision, native = setting.precision, setting.architecture.native_precision
    differs = precision.weights != native and not (precision.weights in _SIXTEEN_BIT and native in _SIXTEEN_BIT)
    longest = _longest(setting)
    made = differs and precision.weights in makes and native in _SIXTEEN_BIT
    return ServingSettings(
        # No scheduler runs more requests in a step than the step has tokens.
        max_sequences=min(setting.max_sequences, setting.token_budget),
        token_budget=setting.token_budget,
        memory_share=setting.memory_utilization,
        longest_tokens=longest,
        max_tokens=_most_tokens(layout, longest),
        kv_cache=None if precision.kv_cache in _SIXTEEN_BIT else precision.kv_cache,
        dtype=precision.activations if precision.activations in _SIXTEEN_BIT else None,
        quantisation=precision.weights if made else None,
        checkpoint_format=precision.weights if differs and not made else None,
        is_moe=setting.architecture.is_moe,
        has_split_ffn=setting.architecture.has_split_ffn,
        overlaps=is_two_batch(setting),
        kv_offload_bytes=None if setting.kv_offload is None else setting.kv_offload.bytes_per_gpu,
    )


def _longest(setting: Setting) -> int:
    load = setting.workload
    tokens = load.input_tokens + load.output_tokens if setting.spread is None else setting.spread.longest_request
    return min(tokens, setting.architecture.max_position_embeddings)


def _most_tokens(layout: LoadedLayout, longest: int) -> int:
    """The longest request to take where the load's has so many tokens: engines refuse one that no cache holds."""
    positions = layout.setting.architecture.max_position_embeddings
    least = min(longest + _SLACK_TOKENS, positions)
    wanted = min(max(_LEAST_TOKENS, 1 << (least - 1).bit_length()), positions)
    # What prefill servers hold of their own is not counted, where they are apart.
    return least if layout.is_disaggregated or cache_tokens(layout) < wanted else wanted
