"""Ranges within which figures of shown candidates were measured; a run at the datasheet's rates bounds each."""

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
    """Yield the candidates, with ranges of those that have figures; of the first ones only if the time is over."""
    settings: dict[PrecisionBlock, Setting] = {}
    for place, plan in enumerate(candidates):
        if plan.output_tokens_per_s is None or (place and leaves_out("the ranges of some strategies beside the best")):
            yield plan
            continue
        settled = request.settled(plan)
        setting = settings.get(settled.precision) or settings.setdefault(settled.precision, base_setting(settled))
        layout = layout_at(settled, setting, plan.strategy, plan.concurrency)
        figures = {name: value for name, value in plan if name in Ranges.model_fields and value is not None}
        ranges = ranges_of(layout, figures | {"dp_scaled_tokens_per_s": plan.output_tokens_per_s})
        yield plan.model_copy(update={"ranges": ranges})
