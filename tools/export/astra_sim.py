"""What the ASTRA-sim simulator reads beside traces: the network, the system, the communicators, the remote memory.

The network has a dimension of links inside a domain and one of links between domains, as far as the ranks are in
several. Its rates are those by which a plan is estimated: a rank sends `S` bytes in a latency and `S` over a bandwidth,
and all collectives and transfers of a phase take together what they were predicted to take.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..catalog.hardware import HardwareFacts
from ..performance.collectives import INTER_STEP_S, LINK_EFFICIENCY, RING_STEP_S, domain_of
from ..plan.elements import parse_device
from .traces import Exchange, Traces
from .yaml_form import as_yaml

PREFIX = "trace"
# The binary of ASTRA-sim that models no congestion, and its options, which name the files below.
COMMAND = (
    f"AstraSim_Analytical_Congestion_Unaware --workload-configuration={PREFIX} "
    "--comm-group-configuration=groups.json --system-configuration=system.json --network-configuration=network.yml "
    "--remote-memory-configuration=memory.json"
)
_GB = 1 << 30
# So much that what a collective reads and writes in memory takes no time: the predicted time has it in it.
_NO_LIMIT_GB_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Dimension:
    """One level of the network: how many ranks or domains it joins, by links of which rate and latency."""

    size: int
    bandwidth_bytes_s: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class RankOrder:
    """The ranks of devices: those of a domain follow one another, and each of `domains` has `per_domain` numbers.

    Where a domain has fewer devices than another, the last of its numbers are of nobody.
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
    """The ranks of `devices`, by node and GPU."""
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
    """The levels of the network, the innermost first, at rates at which `exchanges` take as long as predicted."""
    found: list[Dimension] = []
    if order.per_domain > 1:
        within = [one for one in exchanges if not order.is_between(one.ranks)]
        found.append(_dimension(order.per_domain, within, hardware.intra_bw_bytes_s, RING_STEP_S))
    if order.domains > 1:
        between = [one for one in exchanges if order.is_between(one.ranks)]
        found.append(_dimension(order.domains, between, hardware.inter_bw_bytes_s, INTER_STEP_S))
    # One rank alone uses no link.
    return found or [Dimension(order.count, _GB, 0.0)]


def _dimension(size: int, exchanges: Sequence[Exchange], datasheet_bytes_s: float, step_s: float) -> Dimension:
    """The level that joins `size`: links of the rate that is reached, and the latency that makes up what was predicted.

    Where less was predicted than such links take (several at once, a measured rate), they have no latency and the rate
    that was predicted.
    """
    link_bytes_s = datasheet_bytes_s * LINK_EFFICIENCY
    if not exchanges:
        return Dimension(size, link_bytes_s, step_s)
    # Of all ranks together, so that a rank spends on links what it was predicted to.
    seconds = sum(len(one.ranks) * one.seconds for one in exchanges)
    sent_bytes = sum(len(one.ranks) * one.sent_bytes for one in exchanges)
    left_s = seconds - sent_bytes / link_bytes_s
    if left_s < 0.0:
        return Dimension(size, sent_bytes / seconds, 0.0)
    return Dimension(size, link_bytes_s, left_s / sum(len(one.ranks) * one.steps for one in exchanges))


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
