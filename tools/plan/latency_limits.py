"""The latencies that a workload may limit: their figures, names in reports, and fields in a workload."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LatencyName = Literal["TTFT", "TPOT", "end to end"]
LatencyFigure = Literal["ttft_ms", "tpot_ms", "end_to_end_ms"]


class LimitedLatency(Struct, frozen=True):
    """A latency that a workload may limit: its figure, as estimates and options call it, and its name in reports."""

    figure: LatencyFigure
    name: LatencyName

    @property
    def field(self) -> str:
        """The field of a workload that holds the limit."""
        return f"{self.figure}_max"

    @property
    def statistic(self) -> str:
        """The field of a workload that names the limited statistic of the latency."""
        return f"{self.figure.removesuffix('_ms')}_statistic"


LATENCY_LIMITS = (
    LimitedLatency("ttft_ms", "TTFT"),
    LimitedLatency("tpot_ms", "TPOT"),
    LimitedLatency("end_to_end_ms", "end to end"),
)
LATENCY_FIELDS = tuple(limit.field for limit in LATENCY_LIMITS)
STATISTIC_FIELDS = tuple(limit.statistic for limit in LATENCY_LIMITS)
# Every field of a workload that is a limit.
LIMIT_FIELDS = (*LATENCY_FIELDS, "min_tokens_per_second", "request_rate")
