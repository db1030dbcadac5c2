"""A plan as Chakra execution traces for ASTRA-sim: a folder for a prefill pass, one for a decode step.

Each rank's trace has what the plan's execution DAG runs on it, each kernel with its predicted duration. Times are not
scaled: a microsecond of a trace is one, so bandwidths and latencies are those of the hardware, and cycles nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..performance.collectives import group_of
from ..performance.execution import MAX_NODES, TooManyNodesError, expand_plan
from ..performance.layout import LoadedLayout
from ..performance.request_memory import all_layers, request_bytes
from ..performance.transfer import cache_ends, send_seconds
from ..plan.device_names import devices_text
from ..plan.document import PHASES, Phase
from ..plan.layout import PhaseLayout
from .astra_sim import COMMAND, PREFIX, dimensions, input_files, rank_order
from .result import FolderFile
from .target import CannotExportError
from .trace_format import SCHEMA_VERSION, trace_bytes
from .traces import Traces, spread_pairs

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
    """The files of the folder that has the traces of `layout`; the first says how they are run.

    Raises:
        CannotExportError: a phase has more nodes than are written.
    """
    files: list[FolderFile] = []
    said: list[str] = []
    for phase in PHASES:
        traces, cache_ms, found = _phase_files(layout, phase)
        files += [FolderFile(name=f"{phase}/{name}", data=data) for name, data in found.items()]
        cache = f", then {cache_ms:.3f} ms for the KV cache of one prompt" if cache_ms else ""
        said.append(f"  {phase}: {traces.predicted_ms:.3f} ms for one {_PASSES[phase]}{cache}")
        said.append(f"    ranks in this order: {devices_text(traces.rank_of)}")
    return FolderFile(name=README, data="\n".join((title, _ABOUT, *said, _NOTES)).encode()), *files


def _phase_files(layout: LoadedLayout, phase: Phase) -> tuple[Traces, float, dict[str, bytes]]:
    """The traces of a phase, milliseconds of the KV cache's way where it is sent, and the files by name."""
    hardware, sends_cache = layout.setting.hardware, phase == "prefill" and layout.is_disaggregated
    phases = [one for replica in layout.replicas for one in replica.phases if sends_cache or one.phase == phase]
    order = rank_order((device for one in phases for device in one.devices), hardware)
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
    """Send the cache of one prompt from each prefill replica to a decode replica behind all else; milliseconds."""
    setting, rank_of = layout.setting, traces.rank_of
    size_bytes = request_bytes(setting, all_layers(setting), setting.prompt_tokens)
    longest_s = 0.0
    for number, replica in enumerate(layout.prefill_replicas):
        source, target = replica.prefill, layout.decode_replicas[number % len(layout.decode_replicas)].decode
        assert source is not None and target is not None
        between = group_of((*source.devices, *target.devices), setting.hardware).spans_domains
        senders = [rank_of[device] for device in _cache_devices(source)]
        receivers = [rank_of[device] for device in _cache_devices(target)]
        parts = max(len(senders), len(receivers))
        needs = {rank: traces.ranks[rank].last for rank in senders}
        seconds = send_seconds(setting, parts, between_domains=between)
        pairs = spread_pairs(senders, receivers, parts)
        traces.send(f"r{number}.kv_cache.send", pairs, size_bytes / parts, seconds, needs)
        ends = min(cache_ends(source), cache_ends(target))
        longest_s = max(longest_s, send_seconds(setting, ends, between_domains=between))
    return longest_s * 1e3


def _cache_devices(phase: PhaseLayout) -> Iterator[str]:
    """The devices that have the cache of one request: the first attention group of each stage."""
    for stage in phase.stages:
        yield from stage.attention_devices[: max(1, len(stage.attention_devices) // phase.attention_groups)]
