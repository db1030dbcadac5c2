"""Time of any kernel on one chip as one engine runs it: chooses the constants and calls the form.

Results are cached, since a plan asks for the same few hundred kernels repeatedly. Host time, overlap and imbalance are
left to the caller.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..caches import SharedCache
from ..catalog.dtypes import DType, element_bytes, weight_bytes_per_element
from ..engines.engine import OWN_REDUCTION_RANKS
from .chip import Chip
from .chosen_constants import ChosenConstants
from .forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_bytes,
    attention_decode_parts,
    attention_flops,
    attention_prefill_parts,
    is_decode,
)
from .forms.collective import CollectiveConstants, CollectiveLevels, collective_floor_s, collective_s
from .forms.constant import ElementwiseConstants, elementwise_s
from .forms.elementary import Number, exceeds, larger, smaller
from .forms.exchange import ExchangeConstants, exchange_floor_s, exchange_s
from .forms.gemm import (
    GemmConstants,
    GroupedGemmConstants,
    gemm_activation_bytes,
    gemm_flops,
    gemm_parts,
    gemm_roofs_s,
    gemm_weight_bytes,
    grouped_gemm_flops,
    grouped_gemm_parts,
    grouped_gemm_weight_bytes,
)
from .forms.mla import (
    MlaDecodeConstants,
    MlaPrefillConstants,
    absorbed_bytes,
    absorbed_flops,
    mla_decode_parts,
    mla_prefill_parts,
    mla_sparse_parts,
    naive_bytes,
    naive_flops,
    sparse_bytes,
    sparse_flops,
    sparse_kernels,
)
from .profile import MEASURED, KernelProfile, Origin
from .shapes import (
    Attention,
    Collective,
    Elementwise,
    ExpertExchange,
    Gemm,
    GroupedGemm,
    Kernel,
    LatentAttention,
)

Bound = Literal["compute", "memory", "communication"]

_SMALLEST_BYTES = 0.75
# The most cached bytes per accelerator, and those of a kernel with its times.
_MOST_KNOWN_BYTES, _KERNEL_BYTES = 16 * 2**20, 700


class KernelTime(Struct, frozen=True):
    """Seconds of a kernel, and what bounds it (for arrays: memory, unless arithmetic binds in each element).

    `fixed_s` is the part that does not depend on the work, `floor_s` the time at datasheet rates: no factor on a
    kernel's time may take it below that (0 for kernels whose data may stay in a cache). For matmuls, `compute_s` and
    `memory_s` are the times of FLOPs alone and bytes alone at attained rates. `origin`: where its constants come from.
    """

    seconds: Number
    bound: Bound
    origin: Origin
    fixed_s: Number = 0.0
    floor_s: Number = 0.0
    compute_s: Number = 0.0
    memory_s: Number = 0.0


def matmul_variant(kernel: Gemm | GroupedGemm) -> str:
    """The format of a matmul in profiles: the one it computes in, or that of the weights if these are expanded."""
    stored, computed = weight_bytes_per_element(kernel.weights), element_bytes(kernel.dtype)
    if kernel.weights == kernel.dtype or stored >= computed:
        return "fp8_block" if kernel.blockwise and kernel.dtype == "fp8" else kernel.dtype
    if computed <= 1.0:
        # Four-bit weights against eight-bit activations run in the four-bit kernels.
        return kernel.weights
    if stored >= _SMALLEST_BYTES:
        return "int8_wo"
    return "mxfp4_wo" if kernel.weights == "mxfp4" else "int4_wo"


class KernelTimes:
    """Times of kernels on `chip` with the constants of `profile`.

    `staged_links`: the accelerators of a node have no peer-to-peer path and go through host memory.
    `own_reduction_ranks`: sizes of groups for which the engine has all-reduce kernels beside NCCL's. `matmul_share`:
    share of the arithmetic that the engine's 16-bit matmuls with weights get.
    """

    def __init__(
        self,
        chip: Chip,
        profile: KernelProfile,
        *,
        staged_links: bool = False,
        own_reduction_ranks: frozenset[int] = OWN_REDUCTION_RANKS,
        matmul_share: float = 1.0,
    ) -> None:
        self.chip = chip
        self.profile = profile
        self.staged_links = staged_links
        self.own_reduction_ranks = own_reduction_ranks
        self.matmul_share = matmul_share
        self._known = SharedCache[Kernel, tuple[KernelTime, ...]](
            _MOST_KNOWN_BYTES, lambda _, times: _KERNEL_BYTES * len(times)
        )
        self._chosen = ChosenConstants(profile)

    def seconds(self, kernel: Kernel) -> KernelTime:
        """Time of `kernel`: the fastest if the engine has several.

        Raises MissingFieldError: the chip lacks a needed fact (a peak, a link); InputError: no profile has constants
        for it.
        """
        first, *others = self.choices(kernel)
        return min((first, *others), key=lambda time: time.seconds) if others else first

    def choices(self, kernel: Kernel) -> tuple[KernelTime, ...]:
        """Times of all kernels that the engine may run for `kernel`: several only for matmuls that stacks share.

        Raises as `seconds` does.
        """
        try:
            known = self._known.get(kernel)
        except TypeError:
            # Arrays have no hash, and what they are part of is cached as a whole (`performance/timing.py`).
            return self._times(kernel)
        return known if known is not None else self._known.keep(kernel, self._times(kernel))

    def _times(self, kernel: Kernel) -> tuple[KernelTime, ...]:
        if isinstance(kernel, Gemm):
            matmuls, origin = self._chosen.alternatives("gemm", matmul_variant(kernel), GemmConstants)
            return tuple(self._gemm(constants, kernel, origin) for constants in matmuls)
        if isinstance(kernel, GroupedGemm):
            grouped, origin = self._chosen.alternatives("grouped_gemm", matmul_variant(kernel), GroupedGemmConstants)
            return tuple(self._grouped_gemm(constants, kernel, origin) for constants in grouped)
        return (self._time(kernel),)

    def _time(self, kernel: Elementwise | Collective | ExpertExchange | LatentAttention | Attention) -> KernelTime:
        if isinstance(kernel, Elementwise):
            constants, origin = self._chosen.single("elementwise", kernel.kind, ElementwiseConstants)
            return KernelTime(elementwise_s(constants, self.chip, kernel), "memory", origin, constants.launch_us * 1e-6)
        if isinstance(kernel, Collective):
            return self._collective(kernel)
        if isinstance(kernel, ExpertExchange):
            return self._exchange(kernel)
        if isinstance(kernel, LatentAttention):
            return self._latent_attention(kernel)
        return self._attention(kernel)

    def _attention(self, kernel: Attention) -> KernelTime:
        if is_decode(kernel.new_tokens) and not kernel.beside_prompts:
            decode, origin = self._chosen.single("attention_decode", kernel.kv, DecodeConstants)
            fixed_s, work_s = attention_decode_parts(decode, self.chip, kernel)
        else:
            prefill, origin = self._chosen.single("attention_prefill", kernel.kv, PrefillConstants)
            fixed_s, work_s = attention_prefill_parts(prefill, self.chip, kernel)
        work = _Work(attention_flops(kernel), attention_bytes(kernel), "bf16")
        return self._of_roof((fixed_s, work_s), work, origin)

    def _latent_attention(self, kernel: LatentAttention) -> KernelTime:
        if exceeds(kernel.chosen, 0):
            return self._sparse_attention(kernel)
        if is_decode(kernel.new_tokens):
            decode, origin = self._chosen.single("mla_decode", kernel.kv, MlaDecodeConstants)
            parts = mla_decode_parts(decode, self.chip, kernel)
            return self._of_roof(parts, _Work(absorbed_flops(kernel), absorbed_bytes(kernel), kernel.kv), origin)
        prefill, origin = self._chosen.single("mla_prefill", kernel.kv, MlaPrefillConstants)
        parts = mla_prefill_parts(prefill, self.chip, kernel)
        return self._of_roof(parts, _Work(naive_flops(kernel), naive_bytes(kernel), "bf16"), origin)

    def _sparse_attention(self, kernel: LatentAttention) -> KernelTime:
        kernels = sparse_kernels(self.chip)
        if kernels is None:
            # Each token chooses for itself, so it counts as a sequence that sees its chosen tokens.
            tokens = kernel.sequences * kernel.new_tokens
            alone = replace(kernel, sequences=tokens, new_tokens=1, context=kernel.chosen - 1, chosen=0)
            return self._latent_attention(alone)
        parts = mla_sparse_parts(kernels, self.chip, kernel)
        # A library's published figures on one card of the generation.
        origin = Origin("carried", "published figures of its generation")
        return self._of_roof(parts, _Work(sparse_flops(kernel), sparse_bytes(kernel), "bf16"), origin)

    def _grouped_gemm(self, constants: GroupedGemmConstants, kernel: GroupedGemm, origin: Origin) -> KernelTime:
        parts = grouped_gemm_parts(constants, self.chip, kernel)
        work = _Work(grouped_gemm_flops(kernel), grouped_gemm_weight_bytes(kernel), kernel.dtype)
        return self._of_roof(parts, work, origin)

    def _of_roof(self, parts: tuple[Number, Number], work: _Work, origin: Origin) -> KernelTime:
        """The time of the fixed part and the work, with the roofline bound of the work."""
        fixed_s, work_s = parts
        compute_s, memory_s = work.flops / self.chip.peak(work.dtype), work.moved_bytes / self.chip.memory_bytes_s
        bound: Bound = "compute" if exceeds(compute_s, memory_s) else "memory"
        return KernelTime(fixed_s + work_s, bound, origin, fixed_s, larger(compute_s, memory_s))

    def _gemm(self, constants: GemmConstants, kernel: Gemm, origin: Origin) -> KernelTime:
        moved_bytes = gemm_weight_bytes(kernel) + gemm_activation_bytes(kernel)
        work = _Work(gemm_flops(kernel), moved_bytes, kernel.dtype)
        chip = self.chip.with_compute(self.matmul_share if kernel.dtype in ("bf16", "fp16") else 1.0)
        time = self._of_roof(gemm_parts(constants, chip, kernel), work, origin)
        compute_s, memory_s = gemm_roofs_s(constants, chip, kernel)
        return replace(time, compute_s=compute_s, memory_s=memory_s)

    def _collective(self, kernel: Collective) -> KernelTime:
        if kernel.ranks <= 1:
            return KernelTime(0.0, "communication", MEASURED)
        nodes = float(kernel.nodes)
        local = float(kernel.ranks) / nodes
        suffix = "_staged" if self.staged_links else ""
        levels: list[tuple[CollectiveConstants, Origin]] = []
        if local > 1:
            levels.append(self._chosen.between("collective", kernel.op + suffix, CollectiveConstants, "ranks", local))
        if nodes > 1:
            levels.append(self._chosen.between("collective", "network", CollectiveConstants, "nodes", nodes))
        (inside, _), (network, origin) = levels[0], levels[-1]
        best = collective_s(CollectiveLevels(inside, network), self.chip, kernel)
        if self._may_reduce(kernel):
            custom, _ = self._chosen.between("collective", "all_reduce_custom", CollectiveConstants, "ranks", local)
            best = smaller(best, collective_s(CollectiveLevels(custom, custom), self.chip, kernel))
        floor_s = collective_floor_s(self.chip, kernel)
        return KernelTime(best, "communication", origin, smaller(inside.alpha_us * 1e-6, best), floor_s)

    def _may_reduce(self, kernel: Collective) -> bool:
        """Whether the engine has its own all-reduce kernel for `kernel`."""
        # Such kernels read the memory of the other GPUs.
        known = kernel.ranks in self.own_reduction_ranks and self.profile.framework and not self.staged_links
        return bool(known) and kernel.op == "all_reduce" and kernel.nodes == 1

    def _exchange(self, kernel: ExpertExchange) -> KernelTime:
        if kernel.ranks <= 1:
            return KernelTime(0.0, "communication", MEASURED)
        variant = kernel.phase + ("_low_latency" if kernel.low_latency else "")
        ranks, nodes = float(kernel.ranks), float(kernel.nodes)
        if nodes > 1:
            network = f"{variant}_network"
            constants, origin = self._chosen.between("exchange", network, ExchangeConstants, "nodes", nodes)
        else:
            constants, origin = self._chosen.between("exchange", variant, ExchangeConstants, "ranks", ranks)
        seconds, floor_s = exchange_s(constants, self.chip, kernel), exchange_floor_s(self.chip, kernel)
        return KernelTime(seconds, "communication", origin, constants.alpha_us * 1e-6, floor_s)


class _Work(Struct, frozen=True):
    """FLOPs and bytes of a kernel, independent of its implementation."""

    flops: Number
    moved_bytes: Number
    dtype: DType
