"""The facts of one serving engine (defaults are those of most): versions, memory at start-up, and its load generator.

Commands: those of `version`, which runs in the container `image` (on AMD's GPUs `rocm_image`, "" if none is known), are
written and read by its `vocabulary`. `programs` and `modules` start a server, as do `starting_images` by themselves;
`versioned_images` have the version as their tag.
`begins`: how a command begins in running text. `cut_variable` makes it cut stages otherwise than by default. It
`counts_all_groups` where its limits on requests and tokens are of all attention groups together. `makes`: formats that
it makes of a 16-bit checkpoint when it loads one, by its own names. `by_itself`: what it does unasked.

Degrees: `is_judged` engines have rules (EN). Their tensor ranks must divide the vocabulary padded to a multiple of
`vocabulary_padding` (`None`: any number will do), and one `deals_out_experts` where its ranks do not divide them.
Attention groups have at most `most_group_ranks` devices. Where it `slices_groups`, there may be several expert groups
of several devices each. `first_pipelined`: the first releases that run replicas of one phase as pipelines (`None`:
none does), where not all do.

Kernels: `kernel_tables` names the framework whose measured kernels it runs. Where it `reduces_pairs_over_pcie`, larger
groups of PCIe cards use NCCL. `shared_read_heads`: query heads of a KV head for which a kernel with one thread block a
head reads it once for all.

Serving: `handoff_s` is what handing a request from prefill to decode adds to its first token (`None`: not measured).
`quantised_cache`: the cache format that quantised checkpoints ask for; `None`: that of the activations.
`ends_at_last_position`: requests end at the model's last position, whatever was asked for. `cache_block_tokens`: tokens
of a block of the KV cache by default; prompts share whole blocks. `keeps_in_host`: which blocks go to host memory,
`copies` of what is computed or what the GPU `evicted`; `None`: no setting for it is known here. Its setting for that
memory counts in `host_unit_bytes`: whole units of each rank or, where it `counts_host_of_ranks`, fractions too, of all
ranks of a scheduler together. `refuses_unheld_length`: it does not start where its cache holds no request of the
greatest length, by default all the model's positions. `refuses_beyond_positions`: nor with a greatest length beyond
these, unless a variable of its environment allows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from .release import Release, release_of
from .vocabulary import NO_FLAGS, Vocabulary

if TYPE_CHECKING:
    from ..catalog.attention.spec import AttentionSpec
    from ..catalog.dtypes import DType
    from ..plan.document import Phase, Relaxation


class LoadToSend(Struct, frozen=True):
    """`requests` of random tokens, all as long: from `users` at once (closed loop), or `rate_per_s` at random."""

    model: str
    input_tokens: int
    output_tokens: int
    requests: int
    users: int | None = None
    rate_per_s: float | None = None

    # Options that the load generators of vLLM, SGLang and TensorRT-LLM have in common.

    @property
    def data(self) -> tuple[str, ...]:
        """Random prompts for the model."""
        return "--model", self.model, "--dataset-name", "random"

    @property
    def lengths(self) -> tuple[str, ...]:
        """Tokens of a prompt and of its output."""
        return "--random-input-len", str(self.input_tokens), "--random-output-len", str(self.output_tokens)

    @property
    def amount(self) -> tuple[str, ...]:
        """How many requests, and how they come."""
        rate, users = self.rate_per_s, self.users
        come = ("--max-concurrency", str(users)) if rate is None else ("--request-rate", f"{rate:g}")
        return "--num-prompts", str(self.requests), *come


RankOrder = Literal["stages", "groups"]
# Sizes of groups for which engines have all-reduce kernels of their own beside NCCL's.
OWN_REDUCTION_RANKS = frozenset((2, 4, 6, 8))


class Engine(Struct, frozen=True, kw_only=True):
    """One serving engine: its facts as fields, what depends on more than the engine as methods."""

    name: str
    title: str
    # Letters by which a text names it.
    spellings: tuple[str, ...]
    version: str = ""
    image: str = ""
    rocm_image: str = ""
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    starting_images: tuple[str, ...] = ()
    versioned_images: tuple[str, ...] = ()
    begins: str = ""
    vocabulary: Vocabulary = NO_FLAGS
    cut_variable: str = ""
    counts_all_groups: bool = False
    makes: Mapping[DType, str] = field(default_factory=dict["DType", str])
    by_itself: Mapping[str, str] = field(default_factory=dict[str, str])
    is_judged: bool = True
    vocabulary_padding: int | None = None
    refuses_split_blocks: bool = False
    deals_out_experts: bool = False
    most_group_ranks: int | None = None
    slices_groups: bool = True
    splits_dense_sequence: bool = True
    # Whether its ranks go stage by stage, or attention group by group and in each stage by stage.
    rank_order: RankOrder = "stages"
    # Whether the nodes of a replica are handed one list of GPUs.
    names_gpus_once: bool = False
    # How it cuts a prompt along the sequence.
    sequence_kinds: frozenset[str] = frozenset(("all_gather",))
    # Formats of the KV cache beside 16 bits, by its own names.
    cache_formats: Mapping[DType, str] = field(default_factory=dict["DType", str])
    # Relaxations that it has no setting for, or none that is known here.
    lacks: frozenset[Relaxation] = frozenset()
    first_pipelined: Mapping[Phase, Release | None] = field(default_factory=dict["Phase", "Release | None"])
    kernel_tables: str
    reduces_pairs_over_pcie: bool = False
    shared_read_heads: int = 0
    handoff_s: float | None = None
    quantised_cache: DType | None = None
    # Whether it computes the share of memory that it takes, where none is stated.
    computes_share: bool = False
    ends_at_last_position: bool = False
    # The option without which it takes prompts whole, and refuses those longer than a step; "": it cuts them by itself.
    cuts_prompts_by: str = ""
    cache_block_tokens: int = 16
    keeps_in_host: Literal["copies", "evicted"] | None = None
    host_unit_bytes: int = 1
    counts_host_of_ranks: bool = False
    # Whether servers that hand caches over have it too.
    keeps_beside_transfer: bool = True
    # The connector by which stages of a prefill server write their parts of a cache, where the usual one reads it.
    pushes_from_stages: str | None = None
    refuses_unheld_length: bool = False
    refuses_beyond_positions: bool = False
    # Flags by which a server hides its host behind the GPU (`hides_host`), or does not.
    host_flags: Mapping[str, bool] = field(default_factory=dict[str, bool])

    @property
    def caches(self) -> tuple[DType, ...]:
        """Formats that its KV cache may have."""
        return "bf16", "fp16", *self.cache_formats

    def quantises(self, weights: DType, stored: DType) -> bool:
        """Whether it makes `weights` of a checkpoint in `stored` when it loads one."""
        return weights in self.makes and stored in ("bf16", "fp16")

    def of_group(self, limit: int, groups: int) -> int:
        """The share of one of `groups` attention groups of a server in its `limit` on requests or tokens."""
        return max(1, limit // groups) if self.counts_all_groups else limit

    def of_server(self, limit: int, groups: int) -> int:
        """The limit to state to a server so that each of its `groups` attention groups has `limit`."""
        return limit * groups if self.counts_all_groups else limit

    def host_figure(self, bytes_per_gpu: int, ranks: int) -> float | int:
        """The figure, in its unit, that states so much host memory for each of the `ranks` of a scheduler."""
        if self.counts_host_of_ranks:
            return bytes_per_gpu * ranks / self.host_unit_bytes
        return max(1, bytes_per_gpu // self.host_unit_bytes)

    def host_bytes(self, figure: float, ranks: int) -> int:
        """Host memory in bytes of each of the `ranks` of a scheduler that `figure` states."""
        return round(figure * self.host_unit_bytes / (ranks if self.counts_host_of_ranks else 1))

    def generation(self, version: str | None) -> str:
        """The generation that a version belongs to: what changed how it runs, not each release."""
        return "any"

    def release(self, version: str | None) -> Release | None:
        """The release that a version names, or the last one that it can be; `None`: the newest."""
        return release_of(version)

    def first_stage_with_more(self, stages: int, extra: int) -> int:
        """The first of the `extra` stages that get one layer more, where the layers do not divide by `stages`."""
        return stages - extra

    def ffn_degrees(self, stage: int, group_ranks: int | None, *, is_moe: bool) -> tuple[int, ...] | None:
        """The degrees that it gives a dense FFN in a stage of `stage` devices, `group_ranks` to an attention group.

        `None`: it takes any, or it is not known which.
        """
        return None

    def refuses_cache_split(self, spec: AttentionSpec, tp: int, kv_sp: int) -> str | None:
        """Why it refuses to cut the KV cache along the sequence by these degrees; `None`: it does not."""
        return None

    def overlap_needs(self, ep: int, attention_dp: int, stage: int) -> str | None:
        """What these degrees of `stage` devices lack to overlap two halves of a batch; `None`: nothing."""
        return "has no setting for it that is known here"

    def overlaps_from_tokens(self, words: Sequence[str], *, is_decode: bool) -> int:
        """Tokens of a rank from which on it halves a pass, for a server with the flags `words`."""
        return 0

    def own_reduction_ranks(self, generation: str, *, over_pcie: bool) -> frozenset[int]:
        """Sizes of groups that a generation reduces by its own kernels, `over_pcie` or over other links."""
        return frozenset((2,)) if over_pcie and self.reduces_pairs_over_pcie else OWN_REDUCTION_RANKS

    def host_setting(self, flags: Sequence[str]) -> bool | None:
        """Whether flags of a server hide its host, word by word; `None`: none of them says so."""
        return next((self.host_flags[word] for word in flags if word in self.host_flags), None)

    def hands_over(self, version: str | None) -> bool:
        """Whether prefill servers of a release can hand their caches to others: it has the option for that."""
        release = release_of(version)
        return release is None or not self.vocabulary.lacks(self.vocabulary.flag("transfer").lstrip("-"), release)

    def hides_host(self, version: str | None) -> bool:
        """Whether by default its host prepares a step, and answers the one before, while the GPU works."""
        return False

    def gives_heads_one_block(self, generation: str) -> bool:
        """Whether decode attention of a generation gives each head of a sequence one thread block.

        Else blocks share a long sequence.
        """
        return False

    def matmul_share(self, generation: str, accelerator_class: str) -> float:
        """Share of a card's arithmetic that is open to 16-bit matmuls with weights, as kernels were then."""
        return 1.0

    def decodes_in_prompt_kernel(self, generation: str, accelerator_class: str) -> bool:
        """Whether decode attention of a step that carries prompts runs in one call with theirs, by their kernel."""
        return False

    def reads_for_each_head(self, generation: str, accelerator_class: str) -> bool:
        """Whether decode attention of a generation reads a KV head once for each of its query heads."""
        return False

    def chooses_always(self, version: str | None) -> bool:
        """Whether sparse attention runs its sparse kernels even on prompts shorter than what it may choose."""
        return False

    def logs_whole_requests(self, release: Release | None) -> bool:
        """Whether it prints the tokens of its cache as those of requests of full length, not as slots of blocks."""
        return False

    def memory_use(self, release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
        """What `release` (`None`: the newest) keeps of a GPU of an `architecture` with `total_bytes`."""
        raise NotImplementedError

    def load_generator(self, load: LoadToSend) -> tuple[str, ...] | None:
        """The command of its load generator that sends `load`; `None` where none is known."""
        return None

    def default_cut(self, layers: int, stages: int) -> tuple[int, ...]:
        """Layers of each stage as it cuts them without being told (61 layers in 4 stages: three different cuts)."""
        base, extra = divmod(layers, stages)
        first = self.first_stage_with_more(stages, extra)
        return tuple(base + (first <= index < first + extra) for index in range(stages))

    def pipelines_side(self, release: Release | None, phase: Phase) -> bool:
        """Whether `release` (`None`: the newest) runs replicas that serve only `phase` as pipelines."""
        first = self.first_pipelined.get(phase, ())
        return first is not None and (release is None or release >= first)

    def cut_setting(self, cut: Iterable[int]) -> str:
        """The setting by which it cuts stages of so many layers."""
        layers = ",".join(map(str, cut))
        return f'{self.cut_variable}="{layers}"' if self.cut_variable else f"{self.vocabulary.flag('cut')}: [{layers}]"

    def padded_vocabulary(self, size: int) -> int | None:
        """Rows of the embedding as it holds them; `None` where any number of ranks will do."""
        padding = self.vocabulary_padding
        return None if padding is None else -(-size // padding) * padding


GIB = 2**30
# Batch sizes that vLLM captures: 1, 2, 4, every 8 up to 256, every 16 up to 512.
_EVERY_8_UP_TO, _CAPTURED_AT_MOST = 256, 512


class Batch(Struct, frozen=True):
    """The largest batch of an engine, which its start-up run measures: tokens of a pass, and sequences sampled."""

    tokens: int
    sequences: int


class MemoryUse(Struct, frozen=True):
    """What lies beside weights and KV cache within an engine's share of a GPU, and what the share is taken of.

    `logit_bytes`: what sampling holds at its peak per sequence and entry of the vocabulary. `alone_bytes`,
    `group_bytes`, `linked_bytes`: what libraries take outside the framework's allocator, on a GPU by itself, on one of
    a tensor group, and where links other than PCIe join that group. `graph_bytes`: of one layer in a CUDA graph.
    `counts_passes`: whether activations lie within the share. `of_free`: the share is of what all else leaves free.
    `takes_whole_prompts`: the largest batch has at least a prompt of full length. `mxfp4_tile`: multiples that MXFP4
    experts are padded to, of the hidden size and of their width on a rank.
    """

    batch: Batch
    alone_bytes: float
    group_bytes: float
    linked_bytes: float
    logit_bytes: float = 0.0
    graph_bytes: float = 0.0
    counts_passes: bool = True
    of_free: bool = False
    takes_whole_prompts: bool = False
    mxfp4_tile: tuple[int, int] = (1, 1)

    def library_bytes(self, ranks: int, *, linked: bool) -> float:
        """Bytes outside the framework's allocator on one of `ranks` GPUs of a tensor group."""
        if ranks <= 1:
            return self.alone_bytes
        return self.linked_bytes if linked else self.group_bytes

    def padded_share(self, hidden: int, width: float) -> float:
        """By what share MXFP4 experts of this hidden size and width on a rank grow."""
        tall, wide = (
            math.ceil(size / tile) * tile / size for size, tile in zip((hidden, width), self.mxfp4_tile, strict=True)
        )
        return tall * wide - 1.0

    def graphs(self, sequences: int) -> int:
        """CUDA graphs of a layer: one for each batch size that is captured, up to twice the sequences."""
        most = min(_CAPTURED_AT_MOST, 2 * sequences)
        return 3 + min(most, _EVERY_8_UP_TO) // 8 + max(0, most - _EVERY_8_UP_TO) // 16
