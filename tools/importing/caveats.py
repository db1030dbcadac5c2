"""What a person has to know of servers beyond the plan: flags that differ, GPUs that do not fit, refusals, weights that
a checkpoint lacks.

vLLM and SGLang compare `--quantization` with the `quant_method` of the checkpoint's config and refuse one that differs
(`ModelConfig._verify_quantization` of both), unless the method reads the files of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..catalog.architecture import Architecture
from ..catalog.dtypes import DType
from ..catalog.names import named_format
from ..engines.names import ENGINES
from ..engines.release import release_of
from ..errors import InputError
from ..plan.document import HardwareBlock
from ..plan.elements import as_mapping, as_str
from .group import format_of
from .hardware import NamedHardware
from .launch import DIALECTS, Command, Launch
from .meeting import apart
from .resources import Allotment, listed
from .servers import Server

_DEGREES = (
    "tp", "pp", "dp", "ep", "attention_dp", "dp_attention", "expert_parallel", "over_all", "context", "cache_parts",
    "tp_expert", "dense_tp", "cut", "nodes",
)  # fmt: skip
# Settings that a plan has once for all servers.
_SETTINGS = (
    "max_sequences", "token_budget", "max_tokens", "memory_share", "kv_cache", "quantization", "dtype", "two_batch",
    "eplb", "redundant",
)  # fmt: skip
# Effect of a caveat: the engine does not start or takes no request; whether it does is unknown; neither.
Kind = Literal["refused", "unknown", "remark"]
Caveat = tuple[Kind, str]


def check_nodes(servers: Iterable[Server]) -> None:
    """Raise InputError if nodes of one server state different degrees."""
    for server in servers:
        for concept in _DEGREES:
            stated = {_degree_of(command, concept): command for command in reversed(server.commands)}
            if len(stated) > 1:
                name = next(node.flags.written[concept] for node in server.commands if concept in node.flags.written)
                (other, later), (first, command) = list(stated.items())[-2:]
                shown = ["not stated" if degree is None else degree[:40] for degree in (first, other)]
                nodes = [server.commands.index(node) for node in (command, later)]
                raise InputError(
                    f"nodes of one server that differ: {name} is {shown[0]} on node {nodes[0]} and {shown[1]} on node "
                    f"{nodes[1]}; give all of them the same"
                )


def _degree_of(command: Command, concept: str) -> str | None:
    """A degree as written; `None` if it is 1, as where it is not stated."""
    return command.flags.values[concept] if command.flags.on(concept) and command.flags.values[concept] != "1" else None


def differences(servers: Sequence[Server]) -> Iterator[str]:
    """Settings that differ between nodes or between servers, though a plan has one."""
    seen: set[str] = set()
    for commands, parts in (
        *((server.commands, "the nodes of a server") for server in servers),
        (tuple(server.commands[0] for server in servers), "the servers"),
    ):
        for concept in _SETTINGS:
            values = list(dict.fromkeys(command.flags.values.get(concept) for command in commands))
            if len(values) > 1 and concept not in seen:
                seen.add(concept)
                name = next(command.flags.written[concept] for command in commands if concept in command.flags.written)
                shown = ", ".join("not stated" if value is None else value[:40] for value in values[:6])
                yield f"{parts} differ in {name} ({shown}): the plan takes that of the first"


def refusals(launch: Launch, servers: Iterable[Server], architecture: Architecture) -> Iterator[str]:
    """Why the engine does not start what is written."""
    dialect = DIALECTS[launch.engine]
    for server in servers:
        head = server.commands[0]
        yield from dialect.refusals(head.flags, head.process.environment, server.group, architecture.is_moe)
        yield from apart(launch, server.commands)


def gpus_given(servers: Iterable[Server], *, lacking: bool) -> Iterator[str]:
    """Where the text gives commands fewer GPUs than their degrees need (`lacking`), or more."""
    needs: dict[Allotment, int] = {}
    for server in servers:
        part = -(-server.ranks // _spread(server)) * server.commands[0].process.times
        for gpus in _allotments(server):
            needs[gpus] = needs.get(gpus, 0) + part
    for gpus, need in needs.items():
        if lacking and gpus.count < need:
            yield f"its degrees need {need} GPUs, {gpus.words} gives it {gpus.count}: give it {need}, or lower them"
        elif not lacking and gpus.count > need:
            yield f"{gpus.words} gives it {gpus.count} GPUs and the degrees use {need}: the others stay idle"


def _allotments(server: Server) -> Iterable[Allotment]:
    """The GPUs given to each command of a server; nodes that share their words have the same allotment."""
    allotments = [
        allotment
        for command in server.commands
        if not (command.process.is_spread or _is_on_ray(command) or _is_any_rank(command))
        and (allotment := _allotment(command)) is not None
    ]
    head = server.commands[0]
    return dict.fromkeys(allotments) if head.process.nodes or "node_rank" in head.flags.values else allotments


def _allotment(command: Command) -> Allotment | None:
    """The fewest GPUs that the text around a command gives it; `None` if it gives no number."""
    allotments = filter(None, (command.process.gpus, listed(command.process.environment)))
    return min(allotments, key=lambda allotment: allotment.count, default=None)


def _is_on_ray(command: Command) -> bool:
    """Whether Ray places its ranks, on a number of nodes that the text does not state."""
    return command.flags.text("executor") == "ray" and command.process.nodes is None


def _is_any_rank(command: Command) -> bool:
    """Whether it is started for each of several ranks, on a number of nodes that the text does not state."""
    return "rank" in command.flags.values and command.flags.text("rank") is None


def _spread(server: Server) -> int:
    """The number of commands or nodes that the ranks of a server lie on."""
    flags, process = server.commands[0].flags, server.commands[0].process
    local = flags.count("local") or (1 if "rank" in flags.values else None)
    parts = flags.degree("dp") // local if local else 1
    return max(len(server.commands), flags.degree("nodes"), process.nodes or 1, parts)


def lacks_nodes(launch: Launch, servers: Iterable[Server], gpus_per_node: int) -> Iterator[str]:
    """Why the engine does not start more ranks than a node has GPUs, where no flag states the nodes."""
    dialect = DIALECTS[launch.engine]
    release = release_of(launch.version)
    if dialect.joins_nodes_by is None or (release is not None and release < dialect.joins_nodes_since):
        return
    for server in servers:
        head, ranks = server.commands[0], dialect.joined(server.group)
        told_by = dialect.joins_nodes_by if ranks > gpus_per_node else dialect.joins_groups_by
        ranks *= dialect.local_groups(head.flags)
        has_nodes = head.process.is_spread or head.flags.text("executor") == "ray" or _spread(server) > 1
        if ranks > gpus_per_node and not has_nodes:
            yield (
                f"it starts {ranks} ranks on one node, which has {gpus_per_node} GPUs: over several it is told by "
                f"{told_by}"
            )


def unread_files(launch: Launch) -> Iterator[str]:
    """Files of options that commands name and that are absent."""
    for command in launch.commands:
        if command.unread is not None:
            written = command.flags.written["config"]
            yield f"{written} {command.unread[:80]} (not read: give the file behind the command)"


def options_alone(launch: Launch) -> Iterator[str]:
    """The note that options without a command are read as one GPU, if they state no number."""
    flags = launch.commands[0].flags
    if not launch.commands[0].process.words and "tp" not in flags.values:
        yield "the options stand without their command and name no tensor_parallel_size: read as one GPU"


def share_of_free(launch: Launch) -> Iterator[str]:
    """The note that the engine's share is of the free memory, if it is not of all."""
    flags, memory = launch.commands[0].flags, ENGINES[launch.engine].memory_use(None, "", 0.0)
    if memory.of_free and (share := flags.share("memory_share")) is not None:
        yield (
            f"{flags.written['memory_share']} {share:g} is of what weights and runtime leave free, and the room for "
            f"requests is estimated so; rule ME001 allows {share:.0%} of all memory, which is less"
        )


def hardware_remarks(named: NamedHardware | None, used: HardwareBlock) -> Iterator[str]:
    """The note that the hardware is what the text names, or that the text names another."""
    if named is None:
        return
    judged = used.accelerator if isinstance(used.accelerator, str) else used.accelerator.id
    if named.accelerator is None:
        yield f"{named.words}: which accelerator that is is not known here; it was judged on {judged}"
    elif named.accelerator != judged:
        yield f"{named.words}: the text names {named.accelerator}, and it was judged on {judged}"
    else:
        yield (
            f"Hardware by the text ({named.words}): judged on {used.nodes}x{used.gpus_per_node}:{judged}; --hardware "
            "says otherwise"
        )


# Methods that read a checkpoint, by its own (`override_quantization_method` of vLLM's methods, SGLang's table).
_READ_BY: Mapping[str, frozenset[str]] = {
    "awq": frozenset({"awq", "awq_marlin", "marlin", "moe_wna16"}),
    "gptq": frozenset({"gptq", "gptq_marlin", "gptq_bitblas", "marlin", "moe_wna16"}),
    "auto-round": frozenset({"auto-round", "inc"}),
    "fp8": frozenset({"fp8"}),
    "mxfp4": frozenset({"mxfp4", "gpt_oss_mxfp4"}),
    "bitsandbytes": frozenset({"bitsandbytes"}),
    "gguf": frozenset({"gguf"}),
    "compressed-tensors": frozenset({"compressed-tensors", "w8a8_int8", "w8a8_fp8"}),
    "modelopt": frozenset({"modelopt", "modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "petit_nvfp4"}),
}
_METHODS = frozenset[str]().union(*_READ_BY.values())
# Ways of storing any format: the weights' format in a checkpoint's name does not tell them apart.
_CONTAINERS = _READ_BY["compressed-tensors"] | _READ_BY["modelopt"]
# Methods whose weights are quantised beforehand, with data: only a checkpoint can have them.
_OFFLINE = _READ_BY["awq"] | _READ_BY["gptq"] | _READ_BY["gguf"] | {"compressed-tensors"}
# Formats that engines quantise 16-bit weights to when they load them, beside those that exports ask for.
_ONLINE = frozenset({"fp8", "fp8_per_tensor", "fp8_per_block", "experts_int8", "bitsandbytes"})
_NONE = frozenset({"", "none", "auto"})
_MEND = "leave the flag out, or name a checkpoint that has such weights"


class Checkpoint(Struct, frozen=True):
    """A published checkpoint: its name as `written` and as known here, its config and the config's number format."""

    written: str
    name: str
    config: Mapping[str, Any]
    native: DType

    @property
    def method(self) -> str | None:
        """The quantisation method in its config; `None` if the weights are not quantised."""
        quantization = as_mapping(self.config.get("quantization_config"))
        method = as_str(quantization.get("quant_method") or quantization.get("quant_algo"))
        return None if method is None else method.lower().replace("compressed_", "compressed-")


def told_of_method(launch: Launch, checkpoint: Checkpoint) -> Iterator[Caveat]:
    """Why the engine refuses the methods that commands name for a checkpoint, or what is unknown of them."""
    for flags in (command.flags for command in launch.commands):
        method = (flags.text("quantization") or "").lower()
        if method not in _NONE:
            shown = f"{flags.written['quantization']} {method}"
            stated = named_format(checkpoint.written)
            if stated is not None and stated != checkpoint.native:
                yield from _by_name(shown, method, checkpoint.written, stated)
            elif (stored := checkpoint.method) is not None:
                yield from _by_own_method(shown, method, checkpoint.name, stored)
            else:
                online = _ONLINE.union(ENGINES[launch.engine].makes.values())
                yield from _of_unquantised(shown, method, checkpoint, is_made=method in online)


def _by_name(shown: str, method: str, name: str, stated: DType) -> Iterator[Caveat]:
    """Caveats for a checkpoint whose name alone states the format of its weights."""
    dtype = format_of(method)
    if dtype is not None and dtype != stated and not (dtype.endswith("fp4") and stated.endswith("fp4")):
        yield "refused", f"{shown}: {name} has {stated} weights by its name; {_MEND}"


def _by_own_method(shown: str, method: str, name: str, stored: str) -> Iterator[Caveat]:
    """Caveats for a checkpoint whose config states how its weights are quantised."""
    if method in _READ_BY.get(stored, {stored}):
        return
    if stored in _READ_BY and method in _METHODS - _CONTAINERS:
        yield "refused", f"{shown}: {name} has {stored} weights; {_MEND}"
    else:
        yield "unknown", f"{shown} (whether it reads {name}, whose own method is {stored}, is not known here)"


def _of_unquantised(shown: str, method: str, checkpoint: Checkpoint, *, is_made: bool) -> Iterator[Caveat]:
    """Caveats for a checkpoint that is not quantised."""
    name = checkpoint.name
    if method in _OFFLINE:
        why = f"{name} is no quantised checkpoint, and {method} weights are made beforehand"
        yield "refused", f"{shown}: {why}; {_MEND}"
        return
    if not is_made:
        yield "unknown", f"{shown} (whether it makes such weights of {name} is not known here)"
    if format_of(method) is None:
        yield "remark", f"{shown}: judged with {checkpoint.native} weights, for what it makes of them is not known here"
