"""Everything about a deployment that no strategy decides: model, hardware, load, number formats, policy.

All layouts that are compared share one `Setting`, so it caches the sums over layers and tensors that they need. It has
no degrees and no devices. When it is read out of a plan, a fault that makes the arithmetic impossible is an
`InputError` that names it; faults that rules judge are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from ..caches import Cache, Caches
from ..calibration.custom import CustomCalibration
from ..calibration.engine_profile import EngineProfile, accelerator_class, engine_profile
from ..catalog.architecture import Architecture, LayerSpec, WeightDTypes
from ..catalog.dtypes import TensorClass, WeightTensor, element_bytes, weight_bytes_per_element
from ..catalog.hardware import HardwareFacts
from ..engines.defaults import engine_relaxations
from ..engines.engine import Batch, MemoryUse
from ..engines.names import ENGINES, engine_name
from ..engines.release import Release
from ..plan.document import Phase, PrecisionBlock, ServingBlock, WorkloadBlock
from ..plan.load import spread_of
from ..plan.quantiles import Joint, Spread
from .clock import Clock
from .host_memory import without_effect

# Tokens of one prefill pass if the plan states none: vLLM's and SGLang's usual budget (`max_num_batched_tokens`,
# `chunked_prefill_size`) on large accelerators.
DEFAULT_PREFILL_CHUNK_TOKENS = 8192


class LayerRun(Struct, frozen=True):
    """`count` layers of one kind among a range of layers."""

    spec: LayerSpec
    count: int


class TensorBytes(Struct, frozen=True):
    """Bytes of an operator's tensors by how tensor parallelism cuts them."""

    sharded: float
    kv_heads: float
    replicated: float

    @property
    def total(self) -> float:
        """Bytes of the whole operator."""
        return self.sharded + self.kv_heads + self.replicated


_CLOCKS = Cache[float, Clock]("clocks by the share of the arithmetic that kernels have")
_RUNS = Cache[tuple[int, int], tuple[LayerRun, ...]]("kinds of layers by first and last layer")
_TENSOR_BYTES = Cache[int, TensorBytes]("bytes by the identity of a tuple of tensors, which the architecture holds")


class Setting(Struct, frozen=True, eq=False, dict=True):
    """Model, hardware, load, precision and policy of a deployment (compared by identity)."""

    architecture: Architecture
    hardware: HardwareFacts
    workload: WorkloadBlock
    precision: PrecisionBlock
    dtypes: WeightDTypes
    relaxations: frozenset[str] = frozenset()
    memory_utilization: float = 0.90
    serving: ServingBlock = field(default_factory=ServingBlock)
    usd_per_gpu_hour: float | None = None
    # Whether the server overlaps host work with the GPU; `None`: the engine's default.
    asks_to_hide_host: bool | None = None
    # Replaces the shipped profile of the engine.
    profile: EngineProfile | None = None
    # The user's calibration, which overrides what ships.
    calibration: CustomCalibration | None = None
    # Results that other modules compute from it; none depends on the load.
    caches: Caches = field(default_factory=Caches)

    @cached_property
    def engine(self) -> EngineProfile:
        """The profile of the engine that the plan names, or of the assumed one."""
        serving, accelerator = self.serving, self.hardware.accelerator
        return self.profile or self.own_engine or engine_profile(serving.engine, serving.engine_version, accelerator)

    @cached_property
    def own_engine(self) -> EngineProfile | None:
        """The engine's profile in the user's calibration; `None` if it has none."""
        serving, custom = self.serving, self.calibration
        accelerator = self.hardware.accelerator
        return None if custom is None else custom.engine(serving.engine, serving.engine_version, accelerator)

    @cached_property
    def laid_out_relaxations(self) -> frozenset[str]:
        """The relaxations that a layout uses: the policy's, and those the engine always applies (rules.md R15)."""
        return self.relaxations.union(engine_relaxations(self.serving.engine, self.architecture))

    @cached_property
    def chooses_always(self) -> bool:
        """Whether the plan's engine runs sparse attention sparse even on short prompts."""
        name = engine_name(self.serving.engine)
        return name is not None and ENGINES[name].chooses_always(self.serving.engine_version)

    @cached_property
    def hides_host(self) -> bool:
        """Whether the host prepares the next step and handles the last one's output while the GPU works."""
        facts, asked = self.engine.facts, self.asks_to_hide_host
        if asked is None and self.serving.flags is not None:
            asked = facts.host_setting(self.serving.flags.words)
        return facts.hides_host(self.serving.engine_version) if asked is None else asked

    @cached_property
    def clock(self) -> Clock:
        """The clock of kernels and collectives in this setting."""
        return Clock(self.hardware, self.engine, self.calibration)

    def clock_with(self, compute_share: float) -> Clock:
        """The clock of kernels that get `compute_share` of the arithmetic."""
        if compute_share == 1.0:
            return self.clock
        return _CLOCKS.get(
            self.caches, compute_share, lambda: Clock(self.hardware, self.engine, self.calibration, compute_share)
        )

    def with_profile(self, profile: EngineProfile) -> Setting:
        """The same setting with another engine profile; no cached times are shared."""
        return replace(self, profile=profile, caches={})

    def with_calibration(self, calibration: CustomCalibration | None) -> Setting:
        """The same setting with the user's calibration; no cached times are shared."""
        return self if calibration is None else replace(self, calibration=calibration, caches={})

    def with_workload(self, workload: WorkloadBlock, serving: ServingBlock | None = None) -> Setting:
        """The same setting under another load; caches are shared, since none depends on the load.

        `serving` may differ only in the batch for the load.
        """
        return replace(self, workload=workload, serving=serving or self.serving)

    @cached_property
    def kv_element_bytes(self) -> float:
        """Bytes of one cached element."""
        return element_bytes(self.precision.kv_cache)

    @cached_property
    def activation_bytes(self) -> float:
        """Bytes of one activation element between operators: at least 2, since the residual stream stays 16-bit."""
        return max(2.0, element_bytes(self.precision.activations))

    @property
    def prefill_chunk_tokens(self) -> int:
        """Tokens of one prefill pass: the plan's, else `DEFAULT_PREFILL_CHUNK_TOKENS`."""
        return self.serving.prefill_chunk_tokens or DEFAULT_PREFILL_CHUNK_TOKENS

    @property
    def keeps_in_host(self) -> bool:
        """Whether the plan states host memory for the KV cache and it has an effect."""
        offload = self.serving.kv_offload
        return offload is not None and without_effect(offload, self.engine.facts, self.workload.prefixes) is None

    @cached_property
    def release(self) -> Release | None:
        """The release of the plan's engine, or of the assumed one."""
        version = None if self.serving.engine is None else self.serving.engine_version
        return self.engine.facts.release(version)

    @cached_property
    def memory_use(self) -> MemoryUse:
        """The memory of a GPU that the plan's engine, or the assumed one, reserves for itself."""
        accelerator = self.hardware.accelerator
        return self.engine.facts.memory_use(
            self.release, accelerator_class(accelerator), accelerator.memory_bytes_to_processes()
        )

    def batch_of(self, use: MemoryUse) -> Batch:
        """The largest batch: the plan's for one scheduler, else the engine's default for a server."""
        least = self.request_tokens if use.takes_whole_prompts else 0
        tokens = self.serving.prefill_chunk_tokens or max(least, use.batch.tokens)
        return Batch(tokens, self.serving.max_batch or use.batch.sequences)

    def token_budget(self, groups: int) -> int:
        """The most tokens in a step of one scheduler, on a server with `groups` attention groups."""
        stated = self.serving.prefill_chunk_tokens
        return stated or self.engine.facts.of_group(self.batch_of(self.memory_use).tokens, groups)

    @property
    def max_sequences(self) -> int:
        """The most requests that one scheduler runs at once."""
        return self.batch_of(self.memory_use).sequences

    @property
    def request_tokens(self) -> int:
        """Tokens of a mean request at its end, input and output, at most what the model can attend to."""
        return min(
            self.workload.input_tokens + self.workload.output_tokens, self.architecture.max_position_embeddings
        )  # fmt: skip

    @property
    def prompt_tokens(self) -> int:
        """Tokens of a mean prompt, at most what the model can attend to."""
        return min(self.workload.input_tokens, self.architecture.max_position_embeddings)

    @cached_property
    def spread(self) -> Spread | None:
        """How the lengths of requests spread; `None` if all are alike."""
        return spread_of(self.workload)

    @property
    def are_unlike(self) -> bool:
        """Whether requests of a run differ in length (beyond some too rare to be drawn).

        Always true of a spread with shared prefixes: a replay takes the lengths of each request, alike or not.
        """
        spread, shares_prefixes = self.spread, self.workload.prefixes is not None
        is_one_pair = isinstance(spread, Joint) and len(set(spread.pairs)) == 1
        return spread is not None and (shares_prefixes or not is_one_pair)

    def longest_tokens(self, phase: Phase) -> int | None:
        """Tokens of the longest prompt, or in decode of the longest request; `None` if all are alike (rule ME001).

        At most what the model can attend to.
        """
        if self.spread is None:
            return None
        tokens = self.spread.longest[0] if phase == "prefill" else self.spread.longest_request
        return min(tokens, self.architecture.max_position_embeddings)

    @property
    def mean_decode_context(self) -> int:
        """Cached tokens of a request on average over its decode steps."""
        prompt = self.prompt_tokens
        return max(0, prompt + (self.request_tokens - prompt) // 2 - 1)

    def weight_bytes(self, tensor_class: TensorClass) -> float:
        """Bytes of one weight of `tensor_class`, block scales included."""
        native = self.architecture.native_dtypes
        int4_group = self.architecture.scale_block if "int4" in (native.linear, native.expert) else None
        return weight_bytes_per_element(self.dtypes.of(tensor_class), int4_group)

    def runs(self, first: int, last: int) -> tuple[LayerRun, ...]:
        """The layers `first`…`last` (inclusive), counted by kind, in order of first appearance."""
        return _RUNS.get(self.caches, (first, last), lambda: tuple(self._layer_runs(first, last)))

    def _layer_runs(self, first: int, last: int) -> Iterator[LayerRun]:
        layers = {id(layer): layer for layer in self.architecture.layers[first : last + 1]}
        counts = Counter(id(layer) for layer in self.architecture.layers[first : last + 1])
        return (LayerRun(layers[kind], count) for kind, count in counts.items())

    def tensor_bytes(self, tensors: tuple[WeightTensor, ...]) -> TensorBytes:
        """Bytes of `tensors` by split, each in its own number format; cached by the tuple's identity."""
        return _TENSOR_BYTES.get(self.caches, id(tensors), lambda: self._sums(tensors))

    def _sums(self, tensors: tuple[WeightTensor, ...]) -> TensorBytes:
        sums = {"sharded": 0.0, "kv_heads": 0.0, "replicated": 0.0}
        for tensor in tensors:
            sums[tensor.split] += tensor.elements * self.weight_bytes(tensor.tensor_class)
        return TensorBytes(**sums)
