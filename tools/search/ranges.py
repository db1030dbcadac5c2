"""Between what the figures of shown candidates were measured: a run of each at the rates of the datasheet bounds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ..checkpoint import leaves_out
from ..performance.confidence import ranges_of
from ..performance.setting import Setting
from ..plan.document import PrecisionBlock
from ..plan.performance import Ranges
from .candidate import Candidate, SearchRequest
from .search import base_setting
from .simulated import layout_at

C = TypeVar("C", bound=Candidate)


def with_ranges(request: SearchRequest, candidates: Iterable[C]) -> Iterator[C]:
    """The candidates of `request`, those that have figures with their ranges; the first ones where the time is over."""
    settings: dict[PrecisionBlock, Setting] = {}
    for place, one in enumerate(candidates):
        if one.output_tokens_per_s is None or (place and leaves_out("the ranges of some strategies beside the best")):
            yield one
            continue
        settled = request.settled(one)
        setting = settings.get(settled.precision) or settings.setdefault(settled.precision, base_setting(settled))
        layout = layout_at(settled, setting, one.strategy, one.concurrency)
        figures = {name: value for name, value in one if name in Ranges.model_fields and value is not None}
        ranges = ranges_of(layout, figures | {"dp_scaled_tokens_per_s": one.output_tokens_per_s})
        yield one.model_copy(update={"ranges": ranges})
