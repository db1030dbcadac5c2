"""What a plan needs of a trace: a sample of its lengths, how its requests arrive, and a line that describes it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from ..checkpoint import checkpoint
from ..errors import InputError
from ..input.arguments import checks_arguments
from ..input.bounds import REQUESTS_PER_S
from ..input.files import opened, shown_path
from ..plan.document import WorkloadBlock
from ..plan.lengths import MOST_PAIRS, Arrivals, RequestLengths
from ..plan.load import arrival_words, with_lengths
from ..plan.peak import Peak
from ..plan.prefixes import SharedPrefixes
from .counted import Lengths, Reservoir, Stretch, Windows
from .formats import Reader
from .rows import Fault, Prefixes, Row
from .unlike import NO_FORMAT

# The longest text of a trace that is accepted.
MOST_TEXT_CHARACTERS = 4_000_000
# The most kinds of faults in a description, each with its first place.
_MOST_SHOWN = 5
# If a larger share of requests is out of order, the trace is not sorted by time.
_MOST_EARLY = 0.05
_BETWEEN_CHECKPOINTS = 1024
# A time this many seconds after 1970 (in 2001) is a date, not one since a start.
_FIRST_DATE_S = 1e9
TraceWindow = Literal["busiest", "whole"]


class Trace(Struct, frozen=True):
    """What is kept of a trace. `pairs`: a sample of its lengths; rates and a burstiness only where it has times.

    `rate_per_s` is that of the whole trace, `peak` its busiest stretch where it has one, and `planned_rate_per_s` with
    `planned_burstiness` what a plan is for: the one or the other by the `window`. `hours_per_s`: rates of the 24 hours
    of a day (of several days the highest of each), by the clock where times are dates, else from the start.
    `is_of_peak`: the sample is of that stretch alone. `longest`: prompt and answer of the longest request. `replay`:
    what the requests of the sample, then successive ones, share (`SharedPrefixes`). `left_out`: lines that are no
    requests, by what is wrong: how many, and where the first is.
    """

    kind: str
    requests: int
    span_s: float | None
    percentiles: tuple[tuple[int, int, int], tuple[int, int, int]]
    rate_per_s: float | None
    burstiness: float | None
    shared_share: float | None
    pairs: tuple[tuple[int, int], ...]
    longest: tuple[int, int]
    seed: int
    peak: Peak | None = None
    hours_per_s: tuple[float, ...] | None = None
    window: TraceWindow = "busiest"
    is_of_peak: bool = False
    replay: tuple[tuple[int, int], ...] | None = None
    left_out: tuple[tuple[str, int, str], ...] = ()
    planned_burstiness: float | None = None

    @property
    def planned_rate_per_s(self) -> float | None:
        """Requests per second that a plan is for."""
        return self.rate_per_s if self.peak is None or self.window == "whole" else self.peak.rate_per_s

    @property
    def lengths(self) -> RequestLengths:
        """The sample as lengths of a workload."""
        is_in = sum(self.longest) <= max(map(sum, self.pairs))
        return RequestLengths(pairs=self.pairs, longest=None if is_in else self.longest)

    @property
    def prefixes(self) -> SharedPrefixes | None:
        """What the prompts of the sample share, where that is known."""
        return None if self.replay is None else SharedPrefixes(replay=self.replay)

    @property
    def arrivals(self) -> Arrivals | None:
        """How its requests come, where that is known."""
        planned = self.planned_burstiness
        return None if planned is None else Arrivals(burstiness=round(planned, 3))

    def describe(self) -> str:
        """The trace in a line, without anything of its content but numbers."""
        (half_in, high_in, most_in), (half_out, high_out, most_out) = self.percentiles
        parts = [
            f"{self.requests:,} requests{self._when()}",
            f"prompts p50 {half_in:,}, p95 {high_in:,}, p99 {most_in:,} tokens",
            f"answers p50 {half_out:,}, p95 {high_out:,}, p99 {most_out:,}",
        ]
        if self.shared_share is not None:
            use = "not counted on" if self.replay is None else "counted on as far as they come again in the sample"
            parts.append(f"{self.shared_share:.0%} of the prompts' blocks had come before, {use}")
        if len(self.pairs) < self.requests:
            of = f"those of the busiest {self.peak.stretch}" if self.peak is not None and self.is_of_peak else "them"
            row = "" if self.replay is None else " in a row"
            parts.append(f"{len(self.pairs):,} of {of}{row} sampled with seed {self.seed}")
        shown = [f"{count:,} {reason} (first: {place})" for reason, count, place in self.left_out[:_MOST_SHOWN]]
        if shown:
            parts.append(f"left out: {', '.join(shown)}")
        return f"Trace ({self.kind}): {'; '.join(parts)}"

    def _when(self) -> str:
        if self.span_s is None or self.rate_per_s is None:
            return ", without times that tell a rate"
        bursts = "" if self.burstiness is None else f" {arrival_words(self.burstiness)}"
        peak = "" if self.peak is None else f"; {self.peak}"
        return f" in {_span(self.span_s)} ({self.rate_per_s:.3g}/s{bursts}{peak})"


def _span(seconds: float) -> str:
    for unit, name in ((172_800.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= unit:
            return f"{seconds / min(unit, 86_400.0):.3g} {name}"
    return f"{seconds:.3g} s"


def _peak(stretch: Stretch, origin_s: float, mean_per_s: float) -> Peak:
    """The busiest stretch in words, with its start as a date if times are dates, else as time after the start."""
    begins_s = origin_s + stretch.start_s
    if begins_s >= _FIRST_DATE_S:
        begins = f"{datetime.fromtimestamp(begins_s, UTC):%Y-%m-%d %H:%M} UTC"
    else:
        begins = f"{_span(stretch.start_s)} after the start"
    name = _span(stretch.width_s)
    return Peak(
        stretch="hour" if stretch.width_s > 3000 else name,
        begins=begins,
        rate_per_s=stretch.rate_per_s,
        mean_per_s=mean_per_s,
    )


@checks_arguments
def read_trace(path: str | Path, sample: int = MOST_PAIRS, seed: int = 0, window: TraceWindow = "busiest") -> Trace:
    """The trace in the file at `path`, read as it comes.

    Args:
        path: A file of Mooncake, Azure, BurstGPT, a load generator's results, or a log with token counts.
        sample: Requests whose lengths are kept, drawn with `seed`.
        seed: Of the draw; the same one keeps the same requests.
        window: Which requests a plan is for: those of the busiest hour (of a short trace a shorter stretch), or all.

    Returns:
        How many requests, their span, lengths, rates and burstiness, and what could not be read.

    Raises:
        InputError: it cannot be read, is of no known format, or most of it is no request.

    Example:
        >>> import pathlib, tempfile, shardwright
        >>> lines = '{"timestamp": 0, "input_length": 512, "output_length": 32, "hash_ids": [1]}\\n' * 3
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "trace.jsonl")
        ...     _ = path.write_text(lines)
        ...     shardwright.read_trace(path).requests
        3
    """
    name = shown_path(Path(path))
    with opened(Path(path), name) as stream:
        return _trace_of(stream, name, _Tally(int(sample), int(seed), window))


def trace_of_text(text: str, sample: int = MOST_PAIRS, seed: int = 0, window: TraceWindow = "busiest") -> Trace:
    """The trace in `text`. Raises InputError: as `read_trace`, or it is too long."""
    if len(text) > MOST_TEXT_CHARACTERS:
        raise InputError(f"trace: at most {MOST_TEXT_CHARACTERS:,} characters are read; send a part of it")
    return _trace_of(BytesIO(text.encode("utf-8", "surrogatepass")), "trace", _Tally(sample, seed, window))


def sampling(sample: int | None, seed: int | None, window: TraceWindow | None) -> dict[str, Any]:
    """The stated sampling options as keyword arguments."""
    stated = ("sample", sample), ("seed", seed), ("window", window)
    return {name: value for name, value in stated if value is not None}


def under_trace(workload: WorkloadBlock, trace: Trace) -> WorkloadBlock:
    """`workload` with the load of `trace`; of a trace without times, only its lengths.

    Limits stay, and so do requests in flight, which size the memory.
    """
    workload = with_lengths(workload, trace.lengths)
    stated_rate = workload.prefix_cache_hit_rate
    workload = workload.model_copy(update={"prefixes": trace.prefixes if stated_rate is None else None})
    if trace.planned_rate_per_s is None:
        return workload
    return workload.model_copy(update={"request_rate": trace.planned_rate_per_s, "arrivals": trace.arrivals})


class _Tally:
    """Counts a trace while it is read."""

    def __init__(self, sample: int, seed: int, window: TraceWindow) -> None:
        if not 1 <= sample <= MOST_PAIRS:
            raise InputError(f"a sample of {sample:,} requests; it must be from 1 to {MOST_PAIRS:,}")
        if window not in get_args(TraceWindow):
            raise InputError(f"window {str(window)[:60]!r}: it is {' or '.join(get_args(TraceWindow))}")
        self.requests, self.seed, self.size = 0, seed, sample
        self.window: TraceWindow = window
        self.sides, self.longest = (Lengths(), Lengths()), (0, 0)
        self.windows, self.prefixes, self.reservoir = Windows(), Prefixes(), Reservoir(seed)
        self.faults: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def add(self, row: Row) -> None:
        """Count a request."""
        pair = row.input_tokens, row.output_tokens
        for side, tokens in zip(self.sides, pair, strict=True):
            side.add(tokens)
        self.longest = max(self.longest, pair, key=sum)
        if row.at_s is not None:
            self.windows.add(row.at_s)
        self.prefixes.add(row.input_tokens, row.blocks)
        self.requests += 1
        self.reservoir.add(row)

    def refuse(self, fault: Fault) -> None:
        """Count an entry that is not a request."""
        self.faults[fault.reason] += 1
        self.first.setdefault(fault.reason, fault.place)

    def trace(self, kind: str) -> Trace:
        """The trace from all that was read."""
        windows = self.windows
        # If some requests have no time, or too many are out of order, rates are not known.
        is_timed = windows.requests == self.requests > 1 and windows.early <= _MOST_EARLY * self.requests
        rate = (self.requests - 1) / windows.span_s if is_timed and windows.span_s > 0.0 else None
        if rate is not None and not REQUESTS_PER_S.hold(rate):
            rate = None
        busiest = None if rate is None else windows.busiest()
        if busiest is not None and not REQUESTS_PER_S.hold(busiest.rate_per_s):
            busiest = None
        places = self.reservoir.places
        if busiest is not None and self.window == "busiest":
            places = self.reservoir.within(busiest, windows.origin_s)
        pairs, replay = self._sample(places)
        burstiness = windows.burstiness() if rate is not None else None
        inside = windows.burstiness(busiest) if busiest is not None and self.window == "busiest" else None
        first, second = ((side.percentile(0.5), side.percentile(0.95), side.percentile(0.99)) for side in self.sides)
        return Trace(
            kind=kind,
            requests=self.requests,
            span_s=windows.span_s if is_timed else None,
            percentiles=(first, second),
            rate_per_s=rate,
            burstiness=burstiness,
            planned_burstiness=burstiness if inside is None else inside,
            shared_share=self.prefixes.share(),
            pairs=pairs,
            replay=replay,
            longest=self.longest,
            seed=self.seed,
            peak=None if busiest is None or rate is None else _peak(busiest, windows.origin_s, rate),
            hours_per_s=None if rate is None else windows.hours(windows.origin_s >= _FIRST_DATE_S),
            window=self.window,
            is_of_peak=places != self.reservoir.places,
            left_out=tuple((reason, count, self.first[reason]) for reason, count in self.faults.most_common()),
        )

    def _sample(
        self, places: range | list[int]
    ) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...] | None]:
        """Lengths of a sample: of successive requests with what they share, if known; else of any, with `None`."""
        if self.reservoir.is_whole and self.prefixes.share():
            row = self.reservoir.stretch(self.size, places)
            pairs = self.reservoir.pairs(row)
            replay = self.prefixes.replay(row, [tokens for tokens, _ in pairs])
            if replay is not None:
                return pairs, replay
        return self.reservoir.sample(self.size, places), None


def _trace_of(stream: BufferedIOBase, name: str, tally: _Tally) -> Trace:
    reader = Reader(stream)
    try:
        for place, entry in enumerate(reader.read()):
            if place % _BETWEEN_CHECKPOINTS == 0:
                checkpoint()
            if isinstance(entry, Row):
                tally.add(entry)
            else:
                tally.refuse(entry)
    except InputError as error:
        raise InputError(f"{name}: no trace that can be read: {error}") from None
    wrong = tally.faults.total()
    if wrong >= max(1, tally.requests):
        reason, count = tally.faults.most_common(1)[0]
        where = tally.first[reason]
        share = f"{wrong:,} of {wrong + tally.requests:,} entries are no requests"
        unlike = reader.unlike if reason == NO_FORMAT else ""
        raise InputError(f"{name}: {share}: {count:,} {reason} (first: {where}){unlike}")
    if tally.requests == 0:
        raise InputError(f"{name}: no request is in it")
    return tally.trace(reader.kind)
