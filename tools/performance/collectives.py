"""Time and bytes of collectives: alpha + bytes x beta, over the links that the placement gives.

Links that were measured are timed by their tables instead (`calibration/kernel_times.py`).

Bandwidth terms are those of nccl-tests (NVIDIA/nccl-tests, doc/PERFORMANCE.md); a group that spans domains runs in two
levels, each accelerator using its own NIC. The faster of ring and one-shot counts. In-network reduction is not assumed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from ..calibration.forms.elementary import Number, Truth, exceeds, larger, least, pick, smaller
from ..calibration.profile import DATASHEET, Origin
from ..calibration.shapes import Collective, CollectiveOp, ExpertExchange
from ..catalog.hardware import HardwareFacts
from ..plan.view import parse_device

# Share of a link's datasheet rate that large transfers reach: 0.75-0.83 in the NCCL tables of ai-dynamo/aiconfigurator
# (A100, H100, B200 inside a node; 37 of 50 GB/s between two H100 nodes).
LINK_EFFICIENCY = 0.8
# One-shot all-reduce inside a domain: floor of vLLM's custom kernel (same tables: 4.2-7.4 us on A100, H100, B200).
ONE_SHOT_S = 4.5e-6
# NCCL inside a domain: 5.9 us at 2 ranks and 15.4 us at 8 on H100 (same tables): a base and a part per ring step.
RING_BASE_S = 5e-6
RING_STEP_S = 0.8e-6
# A step between domains (same project's `p2p_latency`: 10 us).
INTER_STEP_S = 10e-6
# Dispatch or combine of experts: floor of DeepEP's low-latency kernels (same tables, H100 and H200).
EXPERT_INTRA_S = 12e-6
EXPERT_INTER_S = 25e-6


# What devices send over: fast links, PCIe between the islands of such links in a node, the network between domains.
Path = Literal["link", "host", "network"]
PATHS: tuple[Path, ...] = ("link", "host", "network")


class Group(Struct, frozen=True):
    """Ranks of one collective: how many, over how many domains, and the most of them in one domain.

    `over_host`: those of a domain lie in several islands of fast links, so all send at PCIe's rate.
    """

    ranks: int
    domains: int = 1
    local: int = 1
    over_host: bool = False

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one rank, so nothing is sent."""
        return self.ranks <= 1

    @property
    def spans_domains(self) -> bool:
        """Whether some ranks can only be reached over the network."""
        return self.domains > 1


class Transfer(Struct, frozen=True):
    """What a collective costs each rank: seconds, and bytes sent.

    `spans_domains`: it goes over the network too. `origin`: where the constants of its time come from.
    """

    seconds: Number
    sent_bytes: Number
    spans_domains: bool = False
    origin: Origin = DATASHEET


NO_TRANSFER = Transfer(0.0, 0.0)


def pick_transfer(condition: Truth, first: Transfer, second: Transfer) -> Transfer:
    """For each load, `first` where `condition` holds, else `second`."""
    if isinstance(condition, bool):
        return first if condition else second
    return Transfer(
        pick(condition, first.seconds, second.seconds),
        pick(condition, first.sent_bytes, second.sent_bytes),
        first.spans_domains or second.spans_domains,
        second.origin if first is NO_TRANSFER else first.origin,
    )


def domain_of(device: str, hardware: HardwareFacts) -> object:
    """The interconnect domain of `device`; a device whose name cannot be read counts as its own domain."""
    place = parse_device(device)
    return device if place is None else place[0] // hardware.nodes_per_domain


def domains_of(devices: Iterable[str], hardware: HardwareFacts) -> Counter[object]:
    """The interconnect domains of `devices`, with how many are in each."""
    return Counter(domain_of(device, hardware) for device in devices)


def islands_of(devices: Iterable[str], hardware: HardwareFacts) -> Counter[object]:
    """How many of `devices` lie in each island of fast links; islands are domains where nothing is smaller."""
    size = hardware.island_gpus
    if size is None:
        return domains_of(devices, hardware)
    places = ((device, parse_device(device)) for device in devices)
    return Counter(device if place is None else (place[0], place[1] // size) for device, place in places)


def spread_of(devices: Sequence[str], hardware: HardwareFacts) -> tuple[tuple[int, ...], ...]:
    """How `devices` lie over domains and islands: two stages with equal spreads are timed alike."""
    return tuple(domains_of(devices, hardware).values()), tuple(islands_of(devices, hardware).values())


def group_of(devices: Sequence[str], hardware: HardwareFacts) -> Group:
    """The group that `devices` form."""
    if len(devices) == 1:
        return Group(1)
    domains, islands = domains_of(devices, hardware), islands_of(devices, hardware)
    return Group(len(devices), len(domains), max(domains.values(), default=1), len(islands) > len(domains))


def path_of(devices: Sequence[str], hardware: HardwareFacts) -> Path:
    """The slowest path between any two of `devices`."""
    group = group_of(devices, hardware)
    return "network" if group.spans_domains else "host" if group.over_host else "link"


class CollectiveTime(Struct, frozen=True):
    """Seconds of a collective, and where their constants come from."""

    seconds: Number
    origin: Origin


class CollectiveClock(Protocol):
    """A source of measured times of collectives."""

    def collective(self, kernel: Collective | ExpertExchange) -> CollectiveTime | None:
        """Time of `kernel`; `None` if no table covers the links."""
        ...


class Links(Struct, frozen=True):
    """The links of one accelerator, one way: times measured by `clock`, else alpha + bytes x beta."""

    hardware: HardwareFacts
    clock: CollectiveClock | None = None

    def _known(self, op: CollectiveOp, size: Number, group: Group, otherwise_s: Number) -> CollectiveTime:
        """The measured time if there is one, else `otherwise_s`, that of the datasheet's rates."""
        measured = None
        if self.clock is not None and exceeds(size, 0.0):
            measured = self.clock.collective(Collective(op, size, group.ranks, group.domains, group.over_host))
        return measured or CollectiveTime(otherwise_s, DATASHEET)

    def _intra(self, group: Group) -> float:
        hardware = self.hardware.over_host() if group.over_host else self.hardware
        return hardware.intra_bw_bytes_s * LINK_EFFICIENCY

    def _inter(self) -> float:
        return self.hardware.inter_bw_bytes_s * LINK_EFFICIENCY

    def _half(self, size: Number, group: Group) -> Number:
        """Bandwidth seconds of a reduce-scatter or an all-gather of `size` bytes over `group`."""
        seconds: Number = 0.0
        if group.domains > 1:
            seconds = size * (group.domains - 1) / group.domains / group.local / self._inter()
        if group.local > 1:
            seconds = seconds + size * (group.local - 1) / group.local / self._intra(group)
        return seconds

    @staticmethod
    def _steps(group: Group) -> float:
        return (group.local - 1) * RING_STEP_S + (group.domains - 1) * INTER_STEP_S

    def all_reduce(self, size: Number, group: Group) -> Transfer:
        """Sum of a tensor of `size` bytes over `group`: two-level ring, or one-shot inside a domain."""
        if group.is_trivial:
            return NO_TRANSFER
        seconds = RING_BASE_S + 2 * self._steps(group) + 2 * self._half(size, group)
        if group.domains == 1:
            seconds = smaller(seconds, ONE_SHOT_S + (group.ranks - 1) * size / self._intra(group))
        time = self._known("all_reduce", size, group, seconds)
        return Transfer(time.seconds, 2 * (group.ranks - 1) / group.ranks * size, group.spans_domains, time.origin)

    def all_gather(self, size: Number, group: Group) -> Transfer:
        """Gather (or reduce-scatter) over `group` of a tensor of `size` bytes in total."""
        if group.is_trivial:
            return NO_TRANSFER
        seconds = RING_BASE_S + self._steps(group) + self._half(size, group)
        time = self._known("all_gather", size, group, seconds)
        return Transfer(time.seconds, (group.ranks - 1) / group.ranks * size, group.spans_domains, time.origin)

    def broadcast(self, size: Number, group: Group) -> Transfer:
        """`size` bytes sent from part of the group to all of it."""
        if group.is_trivial:
            return NO_TRANSFER
        link = self._inter() if group.domains > 1 else self._intra(group)
        return Transfer(RING_BASE_S + self._steps(group) + size / link, size, group.spans_domains)

    def all_to_all(self, size: Number, group: Group) -> Transfer:
        """Each rank spreads its `size` bytes evenly; links inside and between domains work at the same time."""
        if group.is_trivial:
            return NO_TRANSFER
        inside = size * (group.local - 1) / group.ranks / self._intra(group) if group.local > 1 else 0.0
        outside = size * (group.ranks - group.local) / group.ranks / self._inter() if group.domains > 1 else 0.0
        seconds = RING_BASE_S + self._steps(group) + larger(inside, outside)
        time = self._known("all_to_all", size, group, seconds)
        return Transfer(time.seconds, (group.ranks - 1) / group.ranks * size, group.spans_domains, time.origin)

    def send(self, size: Number, path: Path) -> Transfer:
        """`size` bytes from one device to another."""
        group = Group(2, 2 if path == "network" else 1, over_host=path == "host")
        between = group.spans_domains
        seconds = INTER_STEP_S + size / self._inter() if between else RING_BASE_S + size / self._intra(group)
        time = self._known("send_recv", size, group, seconds)
        return Transfer(time.seconds, size, between, time.origin)

    def expert_exchange(
        self, phase: Literal["dispatch", "combine"], tokens: Number, copy_bytes: float, routes: ExpertRoutes
    ) -> Transfer:
        """Dispatch or combine of the `tokens` that one rank owns, `copy_bytes` for each copy of a token.

        A copy goes once to each domain that it is wanted in, and there to each rank (DeepEP's forwarding).
        """
        group = routes.group
        if group.is_trivial:
            return NO_TRANSFER
        inside = tokens * copy_bytes * routes.remote_ranks
        outside = tokens * copy_bytes * routes.remote_domains
        seconds = inside / self._intra(group) if group.local > 1 else 0.0
        if group.domains > 1:
            seconds = larger(seconds, outside / self._inter())
        floor = EXPERT_INTER_S if group.domains > 1 else EXPERT_INTRA_S
        sent = inside if group.domains == 1 else larger(inside, outside)
        if self.clock is not None and exceeds(tokens, 0.0):
            quick, normal = (
                self.clock.collective(
                    ExpertExchange(
                        phase, tokens, copy_bytes, routes.top_k, group.ranks, group.domains, low_latency,
                        routes.most_domains, group.over_host,
                    )
                )
                for low_latency in (True, False)
            )  # fmt: skip
            # Engines use the low-latency kernels where they are faster: for small batches.
            known = [time for time in (quick, normal) if time is not None]
            if known:
                seconds = least([time.seconds for time in known])
                return Transfer(seconds, sent, group.spans_domains, known[0].origin)
        return Transfer(floor + seconds, sent, group.spans_domains)


class ExpertRoutes(Struct, frozen=True):
    """Where the copies of a token go: `top_k` experts on `group`, in at most `most_domains` domains (0: any)."""

    group: Group
    top_k: int
    most_domains: int = 0

    @property
    def remote_ranks(self) -> float:
        """Expected other ranks that a token is sent to: p (1 - (1 - 1/p)^k), less the share that stays."""
        return distinct_destinations(self.group.ranks, self.top_k) * (self.group.ranks - 1) / self.group.ranks

    @property
    def remote_domains(self) -> float:
        """Expected other domains, capped by node-limited routing."""
        domains = self.group.domains
        reached = distinct_destinations(domains, self.top_k)
        if self.most_domains:
            reached = min(reached, float(self.most_domains))
        return reached * (domains - 1) / domains


def distinct_destinations(places: int, top_k: int) -> float:
    """Expected distinct places among `top_k` uniform choices."""
    return places * -math.expm1(top_k * math.log1p(-1.0 / places)) if places > 1 else 1.0
