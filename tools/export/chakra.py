"""A plan as Chakra execution traces for ASTRA-sim (a folder for a prefill pass, one for a decode step), with the other
inputs of the simulator.

Each rank's trace has the part of the plan's execution DAG on it, each kernel with its predicted duration. Times are not
scaled: a microsecond of a trace is one, bandwidths and latencies are those of the hardware, and cycles nanoseconds.

The network has a dimension of links inside a domain, and one between domains if the ranks are in several. Its rates are
those that the plan is estimated with: a rank sends `S` bytes in a latency plus `S` over a bandwidth, and all
collectives and transfers of a phase together take as long as predicted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..catalog.hardware import HardwareFacts
from ..performance.collectives import INTER_STEP_S, LINK_EFFICIENCY, RING_STEP_S, domain_of, path_of
from ..performance.execution import MAX_NODES, TooManyNodesError, expand_plan
from ..performance.layout import LoadedLayout
from ..performance.request_memory import all_layers, request_bytes
from ..performance.transfer import cache_ends, send_seconds
from ..plan.devices import devices_text
from ..plan.document import PHASES, Phase
from ..plan.elements import parse_device
from ..plan.layout import PhaseLayout
from .result import FolderFile
from .target import CannotExportError
from .text import as_yaml
from .traces import SCHEMA_VERSION, Exchange, Traces, spread_pairs, trace_bytes

PREFIX = "trace"
# The binary of ASTRA-sim that models no congestion, and its options, which name the files below.
COMMAND = (
    f"AstraSim_Analytical_Congestion_Unaware --workload-configuration={PREFIX} "
    "--comm-group-configuration=groups.json --system-configuration=system.json --network-configuration=network.yml "
    "--remote-memory-configuration=memory.json"
)
_GB = 1 << 30
# So large that memory accesses of a collective take no time: the predicted time includes them.
_NO_LIMIT_GB_S = 1_000_000


class Dimension(Struct, frozen=True):
    """One level of the network: the ranks or domains that it joins, and the rate and latency of its links."""

    size: int
    bandwidth_bytes_s: float
    latency_s: float


class RankOrder(Struct, frozen=True):
    """The ranks of devices: those of a domain follow one another, and each of `domains` has `per_domain` numbers.

    Where a domain has fewer devices than another, its last numbers stay unused.
    """

    rank_of: Mapping[str, int]
    per_domain: int
    domains: int

    @property
    def count(self) -> int:
        """Ranks in all; ASTRA-sim takes no network of one."""
        return max(2, self.per_domain * self.domains)

    def is_between(self, ranks: Iterable[int]) -> bool:
        """Whether some of `ranks` are in different domains."""
        return len({rank // self.per_domain for rank in ranks}) > 1


def rank_order(devices: Iterable[str], hardware: HardwareFacts) -> RankOrder:
    """The ranks of `devices`, ordered by node and GPU."""
    of_domain: dict[object, list[str]] = {}
    for device in sorted(set(devices), key=lambda name: (parse_device(name) or (0, 0), name)):
        of_domain.setdefault(domain_of(device, hardware), []).append(device)
    per_domain = max(map(len, of_domain.values()))
    ranks = {
        device: number * per_domain + place
        for number, members in enumerate(of_domain.values())
        for place, device in enumerate(members)
    }
    return RankOrder(ranks, per_domain, len(of_domain))


def dimensions(exchanges: Sequence[Exchange], order: RankOrder, hardware: HardwareFacts) -> list[Dimension]:
    """The levels of the network, innermost first, at rates at which `exchanges` take as long as predicted."""
    levels: list[Dimension] = []
    if order.per_domain > 1:
        within = [exchange for exchange in exchanges if not order.is_between(exchange.ranks)]
        levels.append(_dimension(order.per_domain, within, hardware.intra_bw_bytes_s, RING_STEP_S))
    if order.domains > 1:
        between = [exchange for exchange in exchanges if order.is_between(exchange.ranks)]
        levels.append(_dimension(order.domains, between, hardware.inter_bw_bytes_s, INTER_STEP_S))
    # One rank alone uses no link.
    return levels or [Dimension(order.count, _GB, 0.0)]


def _dimension(size: int, exchanges: Sequence[Exchange], datasheet_bytes_s: float, step_s: float) -> Dimension:
    """The level that joins `size`: links at the reached rate, and the latency that makes up the predicted time.

    If the prediction is shorter than such links allow (several at once, a measured rate), the latency is 0 and the rate
    follows from the prediction.
    """
    link_bytes_s = datasheet_bytes_s * LINK_EFFICIENCY
    if not exchanges:
        return Dimension(size, link_bytes_s, step_s)
    # Summed over ranks, so that each rank spends the predicted time on links.
    seconds = sum(len(exchange.ranks) * exchange.seconds for exchange in exchanges)
    sent_bytes = sum(len(exchange.ranks) * exchange.sent_bytes for exchange in exchanges)
    rest_s = seconds - sent_bytes / link_bytes_s
    if rest_s < 0.0:
        return Dimension(size, sent_bytes / seconds, 0.0)
    return Dimension(size, link_bytes_s, rest_s / sum(len(exchange.ranks) * exchange.steps for exchange in exchanges))


def input_files(traces: Traces, levels: Sequence[Dimension]) -> dict[str, bytes]:
    """The files of one phase beside its traces, by name."""
    network = {
        "topology": ["FullyConnected"] * len(levels),
        "npus_count": [level.size for level in levels],
        "bandwidth": [round(level.bandwidth_bytes_s / _GB, 3) for level in levels],
        "latency": [round(max(1.0, level.latency_s * 1e9), 3) for level in levels],
    }
    ring, direct = ["ring"] * len(levels), ["direct"] * len(levels)
    system = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 1,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": ring,
        "all-gather-implementation": ring,
        "reduce-scatter-implementation": ring,
        "all-to-all-implementation": direct,
        "collective-optimization": "baseline",
        "local-mem-bw": _NO_LIMIT_GB_S,
        "boost-mode": 0,
        "roofline-enabled": 0,
    }
    groups = {name: list(ranks) for ranks, name in traces.groups.items()}
    return {
        "network.yml": as_yaml(network, flat_leaves=True).encode(),
        "system.json": _json(system),
        "groups.json": _json(groups),
        "memory.json": _json({"memory-type": "NO_MEMORY_EXPANSION"}),
    }


def _json(value: Mapping[str, object]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


README = "README.txt"
_PASSES: Mapping[Phase, str] = {"prefill": "pass over a prompt", "decode": "step of a batch"}
_ABOUT = f"""
Chakra execution traces (schema {SCHEMA_VERSION}), one file a rank, with what ASTRA-sim reads beside them.
The folders prefill and decode are each a run. In one of them:

  {COMMAND}

Each rank prints "sys[N] finished, X cycles". A cycle is a nanosecond, and the largest X is to be near
what is predicted, the longest path of kernels and communication:
"""
_NOTES = """
Times are not scaled: a microsecond of a trace is a microsecond, so that bandwidths, latencies and
cycles read as they are. Durations in a trace are whole: each kernel ends at the whole microsecond
nearest to where it would end. One kernel may be a microsecond off; all of a rank together are, too.

Kernels have their predicted duration (roofline-enabled 0), and FLOPs and bytes for the roofline of
another machine (roofline-enabled 1, peak-perf, local-mem-bw). Collectives and transfers have bytes,
and their predicted duration (replay-only 1).

network.yml has rates that links reach, and latencies with which a rank's communication in the phase
takes in all what was predicted; where the rate alone would take longer, the rate that was predicted.
local-mem-bw is so high that reductions take no time of their own: what was predicted has it in it.

Not in the traces: the host's time between passes, which shardwright estimate adds; and where the
phases are apart, what decode ranks copy of the KV cache among themselves. There prefill has the ranks
of both phases, and each replica sends the cache of one prompt, a stage when it is done with its pass.

ASTRA-sim differs where it runs a collective in its own way: over some of the ranks always as a ring, in
which an all-to-all is passed on from rank to rank; over all ranks of several domains level by level.
Without congestion a rank receives any number of messages at once.
"""


def chakra_folder(layout: LoadedLayout, title: str) -> tuple[FolderFile, ...]:
    """The files of the folder with the traces of `layout`; the first says how to run them.

    Raises CannotExportError: a phase has more nodes than are written.
    """
    files: list[FolderFile] = []
    lines: list[str] = []
    for phase in PHASES:
        traces, cache_ms, contents = _phase_files(layout, phase)
        files += [FolderFile(name=f"{phase}/{name}", data=data) for name, data in contents.items()]
        cache = f", then {cache_ms:.3f} ms for the KV cache of one prompt" if cache_ms else ""
        lines.append(f"  {phase}: {traces.predicted_ms:.3f} ms for one {_PASSES[phase]}{cache}")
        lines.append(f"    ranks in this order: {devices_text(traces.rank_of)}")
    return FolderFile(name=README, data="\n".join((title, _ABOUT, *lines, _NOTES)).encode()), *files


def _phase_files(layout: LoadedLayout, phase: Phase) -> tuple[Traces, float, dict[str, bytes]]:
    """The traces of a phase, milliseconds to send one prompt's KV cache (0 if it stays), and the files by name."""
    hardware, sends_cache = layout.setting.hardware, phase == "prefill" and layout.is_disaggregated
    phases = [part for replica in layout.replicas for part in replica.phases if sends_cache or part.phase == phase]
    order = rank_order((device for part in phases for device in part.devices), hardware)
    traces = Traces(order.rank_of)
    try:
        traces.write(expand_plan(layout, phase))
    except TooManyNodesError:
        raise CannotExportError(
            f"{phase} has more than {MAX_NODES:,} kernels and collectives: export a plan of fewer replicas"
        ) from None
    cache_ms = _send_cache(layout, traces) if sends_cache else 0.0
    files = {f"{PREFIX}.{rank}.et": trace_bytes(traces.ranks[rank].nodes) for rank in range(order.count)}
    return traces, cache_ms, {**files, **input_files(traces, dimensions(traces.exchanges, order, hardware))}


def _send_cache(layout: LoadedLayout, traces: Traces) -> float:
    """Append sending one prompt's cache from each prefill replica to a decode replica; returns milliseconds."""
    setting, rank_of = layout.setting, traces.rank_of
    size_bytes = request_bytes(setting, all_layers(setting), setting.prompt_tokens)
    longest_s = 0.0
    for number, replica in enumerate(layout.prefill_replicas):
        source, target = replica.prefill, layout.decode_replicas[number % len(layout.decode_replicas)].decode
        assert source is not None and target is not None
        path = path_of((*source.devices, *target.devices), setting.hardware)
        senders = [rank_of[device] for device in _cache_devices(source)]
        receivers = [rank_of[device] for device in _cache_devices(target)]
        parts = max(len(senders), len(receivers))
        needs = {rank: traces.ranks[rank].last for rank in senders}
        seconds = send_seconds(setting, parts, path)
        pairs = spread_pairs(senders, receivers, parts)
        traces.send(f"r{number}.kv_cache.send", pairs, size_bytes / parts, seconds, needs)
        ends = min(cache_ends(source), cache_ends(target))
        longest_s = max(longest_s, send_seconds(setting, ends, path))
    return longest_s * 1e3


def _cache_devices(phase: PhaseLayout) -> Iterator[str]:
    """The devices that hold the cache of one request: the first attention group of each stage."""
    for stage in phase.stages:
        yield from stage.attention_devices[: max(1, len(stage.attention_devices) // phase.attention_groups)]
