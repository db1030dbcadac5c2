"""Several equal replicas that share a load: one of them stands for all, two where the load does not divide evenly.

Users stay with their replica and requests are dealt in turn, as a least-load router does with like requests. Nothing is
simulated twice.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .inputs import requests_in
from .load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, ServingTimes, StaticBatch
from .policy import Policy
from .simulate import outcome_of_run
from .step_table import StepTable
from .summary import times_of
from .together import simulate_together


class Share(Struct, frozen=True):
    """The load of one replica, and how many replicas get the same."""

    arrivals: Arrivals
    replicas: int


def shares_of(arrivals: Arrivals, replicas: int) -> tuple[Share, ...]:
    """The load dealt over `replicas`, without those that get nothing.

    Each replica gets the same number of requests of an open loop, so that all see the whole time span.
    """
    requests = requests_in(arrivals)
    if isinstance(arrivals, OpenLoop):
        used = min(replicas, requests)
        per_replica = replace(
            arrivals,
            rate_per_s=arrivals.rate_per_s / used,
            requests=-(-requests // used),
            one_of=arrivals.one_of * used,
            warmup=arrivals.warmup // used,
        )
        return (Share(per_replica, used),)
    whole = arrivals.users if isinstance(arrivals, ClosedLoop) else requests
    least, more = divmod(whole, replicas)
    parts = ((least + 1, more), (least, replicas - more))
    return tuple(Share(_part(arrivals, part, whole), count) for part, count in parts if part and count)


def _part(arrivals: ClosedLoop | Burst | StaticBatch, part: int, whole: int) -> Arrivals:
    match arrivals:
        case ClosedLoop(_, requests):
            return replace(arrivals, users=part, requests=max(1, round(requests * part / whole)))
        case Burst():
            return Burst(part)
        case StaticBatch():
            return StaticBatch(part)


def simulate_replicas(
    table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths, replicas: int
) -> ServingTimes:
    """What the users of `replicas` engines with the same steps see together.

    Means include the start-up burst of a closed loop, as published means do, but not the warm-up of an open one.
    Raises InputError as `outcome_of_run` does.
    """
    if lengths.prefixes is not None:
        return simulate_together(table, policy, arrivals, lengths, replicas)
    return times_of(
        [
            (outcome_of_run(table, policy, share.arrivals, lengths), share.replicas)
            for share in shares_of(arrivals, replicas)
        ]
    )
