"""Time of a collective: a latency, the bytes on the wire, and the ramp of medium sizes.

One level: t = alpha + x + sqrt(ramp x), x = bytes sent by a rank / (share x link); bytes as nccl-tests counts them
(NVIDIA/nccl-tests, doc/PERFORMANCE.md). Over several domains, ranks use the links of their domain and each its own NIC
at the same time: latencies add up (one network latency for each doubling of the domains), transfers overlap. No
in-network reduction between domains is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from ...errors import MissingFieldError
from ..chip import Chip
from ..shapes import Collective, CollectiveOp
from .constant import constant
from .elementary import Number, larger, log2, soft_max

# Transfers inside and between domains run as one pipeline that never fills both sides at once.
_OVERLAP = 2.0


@dataclass(frozen=True, slots=True)
class CollectiveConstants:
    """Constants of an operation over a number of ranks on a kind of link."""

    alpha_us: float = constant(10.0, 0.5, 200.0, "time of an empty message, in microseconds", slack=2.0)
    link_share: float = constant(0.75, 0.02, 1.4, "share of the link; above 1 where the switch reduces", slack=1.0)
    ramp_us: float = constant(20.0, 0.01, 3000.0, "how slowly the rate is reached, in microseconds", slack=3.0)


class CollectiveLevels(Struct, frozen=True):
    """Constants inside a domain, and of a network hop between two."""

    inside: CollectiveConstants
    network: CollectiveConstants


def wire_factor(op: CollectiveOp, ranks: Number) -> Number:
    """Bytes that a rank sends, as a share of the size that `Collective` counts."""
    if op == "send_recv":
        return 1.0
    share = (ranks - 1) / ranks
    return 2.0 * share if op == "all_reduce" else share


def _least_factor(op: CollectiveOp, ranks: Number) -> Number:
    """As `wire_factor`, if the switch does the sums: each rank sends its buffer once."""
    return 1.0 if op == "all_reduce" else wire_factor(op, ranks)


def _transfer_s(constants: CollectiveConstants, sent_bytes: Number, link_bytes_s: float) -> Number:
    wire_s = sent_bytes / (constants.link_share * link_bytes_s)
    return wire_s + (constants.ramp_us * 1e-6 * wire_s) ** 0.5


def one_level_s(constants: CollectiveConstants, link_bytes_s: float, kernel: Collective) -> Number:
    """Seconds inside one domain whose links send `link_bytes_s` one way; at least the bytes over the full rate."""
    sent_bytes = kernel.size_bytes * wire_factor(kernel.op, kernel.ranks)
    seconds = constants.alpha_us * 1e-6 + _transfer_s(constants, sent_bytes, link_bytes_s)
    return larger(seconds, _one_level_floor_s(link_bytes_s, kernel))


def _one_level_floor_s(link_bytes_s: float, kernel: Collective) -> Number:
    return kernel.size_bytes * _least_factor(kernel.op, kernel.ranks) / link_bytes_s


def collective_floor_s(chip: Chip, kernel: Collective) -> Number:
    """Seconds of the bytes that must be sent at the full rate of the links, which no kernel can beat.

    Raises MissingFieldError: the link or the NIC that it needs is not stated.
    """
    if kernel.nodes <= 1:
        return _one_level_floor_s(link_of(chip), kernel)
    local = kernel.ranks / kernel.nodes
    least, least_out = _shares(kernel, _least_factor(kernel.op, local), _least_factor(kernel.op, kernel.nodes))
    outside_s = least_out / nic_of(chip)
    if kernel.op == "send_recv" or local <= 1:
        return outside_s
    return larger(least / link_of(chip), outside_s)


def link_of(chip: Chip) -> float:
    """Send rate of a link inside a domain in bytes/s. Raises MissingFieldError: it is not stated."""
    if chip.link_bytes_s is None:
        raise MissingFieldError("intra_node_bw_gb_s", f"accelerator {chip.name}", "collectives inside a node need it")
    return chip.link_bytes_s


def nic_of(chip: Chip) -> float:
    """Send rate of a NIC in bytes/s. Raises MissingFieldError: it is not stated."""
    if chip.nic_bytes_s is None:
        raise MissingFieldError("inter_node_bw_gb_s", f"accelerator {chip.name}", "traffic between nodes needs it")
    return chip.nic_bytes_s


def _shares(kernel: Collective, factor: Number, network_factor: Number) -> tuple[Number, Number]:
    """Bytes that a rank sends inside its domain and to others. `factor` is for the ranks of one domain."""
    local = kernel.ranks / kernel.nodes
    if kernel.op == "send_recv":
        return 0.0, kernel.size_bytes
    if kernel.op == "all_to_all":
        inside = kernel.size_bytes * (local - 1) / kernel.ranks
        return inside, kernel.size_bytes * (kernel.ranks - local) / kernel.ranks
    return kernel.size_bytes * factor, kernel.size_bytes / local * network_factor


def collective_s(constants: CollectiveLevels, chip: Chip, kernel: Collective) -> Number:
    """Seconds of `kernel`; its ranks are spread evenly over its nodes (domains).

    Raises MissingFieldError: the link or the NIC that it needs is not stated.
    """
    if kernel.nodes <= 1:
        return one_level_s(constants.inside, link_of(chip), kernel)
    local, nic_bytes_s = kernel.ranks / kernel.nodes, nic_of(chip)
    sent, sent_out = _shares(kernel, wire_factor(kernel.op, local), wire_factor(kernel.op, kernel.nodes))
    seconds = constants.network.alpha_us * 1e-6 * log2(kernel.nodes)
    outside_s = _transfer_s(constants.network, sent_out, nic_bytes_s)
    if kernel.op == "send_recv" or local <= 1:
        return larger(seconds + outside_s, sent_out / nic_bytes_s)
    inside_s = _transfer_s(constants.inside, sent, link_of(chip))
    seconds = seconds + constants.inside.alpha_us * 1e-6 + soft_max(inside_s, outside_s, _OVERLAP)
    return larger(seconds, collective_floor_s(chip, kernel))
