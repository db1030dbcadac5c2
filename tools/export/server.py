"""The servers of a plan: for each replica one group of an engine's processes, with its degrees, devices, and start-up
settings.

A replica that serves both phases is one server with one set of degrees. Rule EN010 makes its phases agree, so that
prefill determines all but the split of the cache in decode.
"""

from __future__ import annotations

from msgspec import Struct

from ..catalog.dtypes import DType
from ..catalog.names import named_format
from ..engines.engine import Engine, RankOrder
from ..errors import InputError
from ..performance.capacity import cache_tokens
from ..performance.layout import LoadedLayout
from ..performance.overlap_halves import is_two_batch
from ..performance.setting import Setting
from ..plan.devices import in_rank_order
from ..plan.layout import ReplicaLayout
from .result import Role


class Server(Struct, frozen=True):
    """One engine process group. `stages[i]` are the devices of stage i in rank order, `layers[i]` its layers.

    A stage has `groups` attention groups of `context` x `tp` ranks each: `tp` splits the attention weights, `context`
    the prompt as `sequence_kind` cuts it. `cache_parts` splits the KV cache along the sequence in decode. Experts are
    in `ep` groups, cut over `tp_expert` ranks each; `redundant_experts` are copies of some.
    """

    index: int
    role: Role
    groups: int
    tp: int
    context: int
    sequence_kind: str | None
    cache_parts: int
    tp_ffn: int
    ep: int
    tp_expert: int
    redundant_experts: int
    layers: tuple[int, ...]
    stages: tuple[tuple[str, ...], ...]

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        return len(self.stages)

    @property
    def width(self) -> int:
        """Devices of a stage."""
        return len(self.stages[0])

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its devices, in the order of its stages."""
        return tuple(dict.fromkeys(device.partition(".")[0] for device in self.devices()))

    def devices(self, order: RankOrder = "stages") -> tuple[str, ...]:
        """All devices in the order of ranks."""
        return in_rank_order(self.stages, self.groups, order)


def servers_of(layout: LoadedLayout) -> tuple[Server, ...]:
    """The servers of `layout`, in the order of its replicas."""
    experts = layout.setting.architecture.num_experts
    return tuple(_server(replica, experts) for replica in layout.replicas)


def _server(replica: ReplicaLayout, experts: int) -> Server:
    prefill, decode = replica.prefill, replica.decode
    phase = prefill or decode
    if phase is None:
        raise InputError(f"replica {replica.index} serves no phase")
    degrees = phase.degrees
    cache_parts = 1 if decode is None else decode.degrees.kv_sp or 1
    hosted = max((sum(map(len, stage.experts)) for stage in phase.stages), default=0) // (degrees.tp_expert or 1)
    return Server(
        index=replica.index,
        role="both" if prefill and decode else phase.phase,
        groups=degrees.attention_dp or 1,
        tp=degrees.tp if prefill is not None else degrees.tp * cache_parts,
        context=degrees.sp,
        sequence_kind=degrees.sp_kind,
        cache_parts=cache_parts,
        tp_ffn=degrees.tp_ffn,
        ep=degrees.ep,
        tp_expert=degrees.tp_expert or 1,
        redundant_experts=max(0, hosted - experts),
        layers=tuple(last - first + 1 for first, last in (stage.layers for stage in phase.stages)),
        stages=tuple(stage.devices for stage in phase.stages),
    )


# Engines reserve a token or two per request (SGLang takes two off its output), and a prompt that is tokenised again may
# have a few more.
_SLACK_TOKENS = 16
_LEAST_TOKENS = 1024
_SIXTEEN_BIT: tuple[DType, ...] = ("bf16", "fp16")


class ServingSettings(Struct, frozen=True):
    """`max_sequences` and `token_budget` are per scheduler (attention group), `memory_share` is of a GPU's memory.

    `token_budget` is `None` if the plan states none: the server then gets the engine's `own_tokens`.

    `max_tokens` is the longest accepted request, prompt and output: the power of two above the load's `longest_tokens`,
    or that length with a few tokens to spare if cache or model hold no more. `kv_cache` is `None` if the cache has the
    format of the activations; `quantisation` is the engine's conversion of a 16-bit checkpoint, and `checkpoint_format`
    the format that the checkpoint must have if neither it nor such a conversion gives the plan's. `overlaps`: two
    halves of a batch overlap. `kv_offload_bytes`: host memory per GPU for KV cache. `hands_on_in_stages`: some server
    that hands caches on has several pipeline stages. `keeps_max_tokens`: `max_tokens` comes from kept flags.
    """

    max_sequences: int
    token_budget: int | None
    own_tokens: int
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
    hands_on_in_stages: bool
    keeps_max_tokens: bool = False


def settings_of(layout: LoadedLayout, engine: Engine, checkpoint: str) -> ServingSettings:
    """The settings of the servers of `layout` on `engine`.

    `checkpoint`: its name; one that states its format ("Llama-3.1-405B-FP8") is stored in it.
    """
    setting = layout.setting
    precision, native = setting.precision, named_format(checkpoint) or setting.architecture.native_precision
    differs = precision.weights != native and not (precision.weights in _SIXTEEN_BIT and native in _SIXTEEN_BIT)
    longest, offload = _longest(setting), setting.serving.kv_offload
    is_quantised = engine.quantises(precision.weights, native)
    return ServingSettings(
        # A scheduler runs at most one request per token of a step.
        max_sequences=min(setting.max_sequences, setting.token_budget(1)),
        token_budget=setting.serving.prefill_chunk_tokens,
        own_tokens=setting.token_budget(1),
        memory_share=setting.memory_utilization,
        longest_tokens=longest,
        max_tokens=_most_tokens(layout, longest),
        kv_cache=None if precision.kv_cache in _SIXTEEN_BIT else precision.kv_cache,
        dtype=precision.activations if precision.activations in _SIXTEEN_BIT else None,
        quantisation=precision.weights if is_quantised else None,
        checkpoint_format=precision.weights if differs and not is_quantised else None,
        is_moe=setting.architecture.is_moe,
        has_split_ffn=setting.architecture.has_split_ffn,
        overlaps=is_two_batch(setting),
        kv_offload_bytes=None if offload is None else offload.bytes_per_gpu,
        hands_on_in_stages=any(
            replica.decode is None and len(phase.stages) > 1
            for replica in layout.prefill_replicas
            for phase in replica.phases
        ),
    )


def _longest(setting: Setting) -> int:
    load = setting.workload
    tokens = load.input_tokens + load.output_tokens if setting.spread is None else setting.spread.longest_request
    return min(tokens, setting.architecture.max_position_embeddings)


def _most_tokens(layout: LoadedLayout, longest: int) -> int:
    """The longest request to accept for a load of `longest` tokens: engines refuse one that no cache holds."""
    positions = layout.setting.architecture.max_position_embeddings
    least = min(longest + _SLACK_TOKENS, positions)
    wanted = min(max(_LEAST_TOKENS, 1 << (least - 1).bit_length()), positions)
    # The cache of separate prefill servers is not counted.
    return least if layout.is_disaggregated or cache_tokens(layout) < wanted else wanted
