"""What a day of a plan takes: the steps of its replicas, what they cost, and what other layouts would."""

from __future__ import annotations

from ..frozen import Sparse


class DayStep(Sparse):
    """From `begins_h` to `ends_h` (hours) the rate, the replicas that run, the GPUs, and what users see.

    `replicas` are those that decode; of phases apart `prefill_replicas` stand beside them. Both include the reserve.
    `billed_gpus`: nodes are rented whole, but for a day that takes a part of one alone. Latencies are absent where no
    request comes.
    """

    begins_h: float
    ends_h: float
    requests_per_s: float
    replicas: int
    prefill_replicas: int | None = None
    gpus: int
    billed_gpus: int
    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None


class DayCost(Sparse):
    """GPU-hours of a day, those that are billed, and what they cost between the lowest and the highest price."""

    gpu_hours: float
    billed_gpu_hours: float
    usd: tuple[float, float] | None = None


class LayoutDay(Sparse):
    """What a day takes with one replica layout alone, scaled as the hours need."""

    layout: str
    cost: DayCost


class OverDay(Sparse):
    """Replicas of a plan's layout over a day, and what they save against the peak's all day.

    `layout` is one replica of the plan (of phases apart one of each side), on `gpus_per_replica`: of what is as good at
    the peak what the day takes the least of. One replica for each `target_per_s_each` requests/s, and the reserve, are
    the replicas of each hour or more. `layouts` are all that were sized, the one with the fewest billed GPU-hours
    first; `best_of_each_hour` takes the best of them in each hour.
    """

    curve: str
    layout: str
    gpus_per_replica: int
    reserve_replicas: int
    headroom_share: float
    limits: tuple[str, ...]
    target_per_s_each: float
    steps: tuple[DayStep, ...]
    scaled: DayCost
    at_peak_all_day: DayCost
    price_source: str | None = None
    layouts: tuple[LayoutDay, ...]
    best_of_each_hour: DayCost
    weights_bytes_per_replica: int
    # Those of the hardware, where its number was stated.
    gpus_named: int | None = None

    @property
    def freed_share(self) -> float:
        """Of the GPU-hours of the peak all day, those that scaling sets free."""
        return 1.0 - self.scaled.gpu_hours / self.at_peak_all_day.gpu_hours

    @property
    def saved_share(self) -> float:
        """The same of those that are billed."""
        return 1.0 - self.scaled.billed_gpu_hours / self.at_peak_all_day.billed_gpu_hours
