"""What a command starts, whatever the engine: a group of ranks with its degrees, and the settings of its scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from ..catalog.dtypes import DTYPES, DType
from ..catalog.names import named_format
from ..engines.engine import Engine
from ..engines.release import Release
from ..errors import InputError
from ..input.bounds import MEMORY_BYTES
from ..plan.document import Phase
from ..plan.kv_offload import KVOffload
from .flags import Flags

# Formats as engines spell them, where names of checkpoints differ.
_SPELLED: Mapping[str, DType] = {
    "half": "fp16", "float16": "fp16", "bfloat16": "bf16", "float": "fp32", "float32": "fp32",
}  # fmt: skip
# How a prompt is cut over ranks, other than by gathering keys and values.
SequenceKind = Literal["ulysses"]


class Group(Struct, frozen=True, kw_only=True):
    """One server: `groups` attention groups, each of `context` x `tp` ranks, in each of `pp` stages.

    `context` are parts of a prompt, as `sequence_kind` cuts it, `cache_parts` those of the KV cache along the sequence
    in decode, which share the `tp` ranks. Experts are in `ep` groups, cut over `tp_expert` ranks each. `tp_ffn`: ranks
    of a dense FFN. `shared_is_whole`: whether each rank holds the shared experts whole all the same. `cut`: layers of
    each stage where they are stated. One command starts `servers` of them.
    """

    servers: int = 1
    groups: int = 1
    tp: int = 1
    context: int = 1
    sequence_kind: SequenceKind | None = None
    cache_parts: int = 1
    pp: int = 1
    cut: tuple[int, ...] | None = None
    ep: int = 1
    tp_expert: int = 1
    tp_ffn: int | None = None
    shared_is_whole: bool = False
    redundant_experts: int = 0

    @property
    def width(self) -> int:
        """Devices of a stage."""
        return self.groups * self.context * self.tp


class Scheduling(Struct, frozen=True, kw_only=True):
    """Settings of one scheduler, `None` where the command leaves them to the engine."""

    max_sequences: int | None = None
    token_budget: int | None = None
    overlaps: bool = False
    kv_offload: KVOffload | None = None


class Stated(Struct, frozen=True):
    """What commands of any engine state of a server's memory; `None` is left to the engine.

    `memory_share` is of a GPU's memory; `weights` is the format that the engine converts the checkpoint to.
    """

    memory_share: float | None
    weights: DType | None
    kv_cache: DType | None
    activations: DType | None


class Dialect(Struct, frozen=True, kw_only=True):
    """How the flags of one engine are read.

    `group` raises `InputError` for malformed figures. `follows`: whether a command starts a further node of the server
    before it. `role`: the phase that it serves, "" if it hands KV caches on without stating its side, `None` if it
    states nothing. `refusals`: why the engine does not start with the flags and environment of a server (of a model
    with experts or not). `joined`: ranks of a group that start together, on one node unless flags name more
    (`joins_nodes_by`); before the release `joins_nodes_since` the engine looked for further nodes by itself.
    `local_groups`: groups of data parallelism that one command starts on its node (`joins_groups_by`: on several).
    `of_further_nodes`: the concept of the switch without which no node of a group but the first starts. `without_e5m2`:
    methods beside whose weights it takes no KV cache in that format. `half_before`: methods that took activations in
    float16 alone before a release.
    """

    engine: Engine
    group: Callable[[Flags, Mapping[str, str], bool], Group]
    follows: Callable[[Flags], bool]
    role: Callable[[Flags], Phase | None]
    hands_over: Callable[[Flags], bool]
    refusals: Callable[[Flags, Mapping[str, str], Group, bool], Iterable[str]] = lambda a, b, c, d: ()
    joined: Callable[[Group], int] = lambda group: group.width * group.pp
    joins_nodes_by: str | None = None
    local_groups: Callable[[Flags], int] = lambda flags: 1
    joins_groups_by: str = ""
    joins_nodes_since: Release = ()
    of_further_nodes: str | None = None
    without_e5m2: frozenset[str] = frozenset()
    half_before: Mapping[str, Release] = {}

    def scheduling(self, flags: Flags, group: Group) -> Scheduling:
        """The settings of each attention group's scheduler. Raises InputError: a figure is malformed."""
        sequences, budget = flags.count("max_sequences"), flags.text("token_budget") or "-"
        # SGLang takes a chunk of -1 as a whole prompt.
        tokens = None if self.engine.counts_all_groups and budget.startswith("-") else flags.count("token_budget")
        return Scheduling(
            max_sequences=None if sequences is None else self.engine.of_group(sequences, group.groups),
            token_budget=None if tokens is None else self.engine.of_group(tokens, group.groups),
            overlaps=flags.on("two_batch"),
            kv_offload=self._kv_offload(flags, group.context * group.tp * group.pp),
        )

    def _kv_offload(self, flags: Flags, ranks: int) -> KVOffload | None:
        """Host memory for the KV cache of the `ranks` of a scheduler; `None` if no command states it."""
        figure, stated = flags.figure("host_cache"), flags.figure("host_bytes")
        if stated is not None:
            figure = stated / self.engine.host_unit_bytes
        size = None if figure is None else self.engine.host_bytes(figure, ranks)
        if size is not None and not MEMORY_BYTES.hold(size):
            written = flags.written.get("host_cache") or flags.written["host_bytes"]
            raise InputError(f"{written}: {size:,} bytes per GPU are no memory of a host")
        return None if size is None else KVOffload(bytes_per_gpu=size)


def stated_of(flags: Flags) -> Stated:
    """What a command states of memory. Raises InputError: a share is malformed."""
    return Stated(
        memory_share=flags.share("memory_share"),
        weights=format_of(flags.text("quantization")),
        kv_cache=format_of(flags.text("kv_cache")),
        activations=format_of(flags.text("dtype")),
    )


def format_of(text: str | None) -> DType | None:
    """The number format that a value names (`fp8_e4m3`, `bfloat16`, `awq_marlin`); `None` if it names none."""
    named = None if text is None else _SPELLED.get(text.lower()) or named_format(text)
    known: dict[str, DType] = {dtype: dtype for dtype in DTYPES}
    return None if named is None else known.get(named)


def layers_of(text: str | None) -> tuple[int, ...] | None:
    """Layers of each stage, in the form that engines take: `15,15,16,15`."""
    parts = [] if text is None else [part.strip() for part in text.strip("[]\"' ").split(",")]
    return tuple(map(int, parts)) if parts and all(part.isdecimal() and len(part) < 6 for part in parts) else None
