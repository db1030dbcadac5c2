"""What a notebook shows of results: a table and a small picture; of a plan, on demand, the interactive page.

Everything that comes out of a plan is escaped; pictures are images and pages are framed, so that neither their styles
nor their script reach the notebook.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tools.displayed import Displayed, displayed_by

if TYPE_CHECKING:
    from ..tools.plan.document import Plan
    from ..tools.plan.performance import PerformanceEstimate
    from ..tools.validate import ValidationReport
    from .results import PlanResult
    from .search_results import SearchAnswer

_FINDINGS, _CANDIDATES = 20, 12
_FRAME_HEIGHT_PX = 800


class PlanPage(Displayed):
    """The interactive page of a plan, framed where a notebook shows it."""

    def __init__(self, plan: Plan) -> None:
        from ..tools.plan.reader import read_document
        from ..tools.show.page import page

        self.text = page(read_document(plan))

    def one_line(self) -> str:
        """Its size, and how to keep it."""
        return f"a page of {len(self.text) // 1000:,} kB; .save('plan.html') writes it"

    def save(self, path: str | Path) -> None:
        """Write the page to the file `path`.

        Raises:
            InputError: the place cannot be written.
        """
        from ..tools.input.files import write_file

        write_file(Path(path), self.text.encode())

    def _repr_html_(self) -> str:
        from .evaluation.report.markup import element

        return element(
            "iframe", srcdoc=self.text, sandbox="allow-scripts", width="100%", height=str(_FRAME_HEIGHT_PX),
            style="border:0", title="The plan",
        )  # fmt: skip


def html_of(thing: Displayed) -> str:
    """What a notebook shows of a result."""
    from ..tools.plan.document import Plan
    from ..tools.plan.performance import PerformanceEstimate
    from ..tools.validate import ValidationReport
    from .results import PlanResult
    from .search_results import SearchAnswer

    match thing:
        case Plan():
            return _headed(thing, _picture(thing))
        case PerformanceEstimate():
            return _headed(thing, _estimate(thing))
        case ValidationReport():
            return _headed(thing, _findings(thing))
        case SearchAnswer():
            return _headed(thing, _candidates(thing))
        case PlanResult():
            return _headed(thing, _result(thing))
        case _:
            return _headed(thing, "")


def _headed(thing: Displayed, body: str) -> str:
    from .evaluation.report.markup import element

    return element("div", element("p", element("b", thing.one_line())), body)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    from .evaluation.report.markup import element, joined

    head = element("thead", element("tr", *(element("th", name) for name in heads)))
    body = joined(*(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("table", head, element("tbody", body))


def _picture(plan: Plan) -> str:
    from ..tools.draw.svg import svg
    from .evaluation.report.markup import element

    drawn = base64.b64encode(svg(plan.model_dump(mode="json")).encode()).decode()
    return element("img", src=f"data:image/svg+xml;base64,{drawn}", alt=plan.one_line(), style="max-width:100%")


def _estimate(found: PerformanceEstimate) -> str:
    from .report.cost import cost_text
    from .report.estimate import rate_text
    from .report.text import bytes_text, ms_text

    latency, percentiles = found.latency, found.latency.percentiles
    rows = [
        ("TTFT", ms_text(latency.ttft_ms), ms_text(percentiles.ttft_ms.p90)),
        ("TPOT", ms_text(latency.tpot_ms), ms_text(percentiles.tpot_ms.p90)),
        ("end to end", ms_text(latency.end_to_end_ms), ms_text(percentiles.end_to_end_ms.p90)),
        ("output", rate_text(found.throughput.dp_scaled_tokens_per_s), ""),
    ]
    devices = found.memory.per_device
    if devices:
        fullest = max(devices, key=lambda one: one.total_bytes / max(1, one.usable_bytes))
        rows.append(("memory", f"{bytes_text(fullest.total_bytes)} of {bytes_text(fullest.usable_bytes)}", ""))
    if found.cost is not None:
        rows.append(("cost", cost_text(found.cost, len(devices)), ""))
    return _table(("", "mean", "p90"), rows)


def _findings(report: ValidationReport) -> str:
    if not report.violations:
        return ""
    rows = [(one.rule, one.severity, one.message, one.remedy) for one in report.violations[:_FINDINGS]]
    left = len(report.violations) - len(rows)
    return _table(("rule", "", "finding", "to mend"), [*rows, *([("", "", f"and {left:,} more", "")] if left else [])])


def _candidates(answer: SearchAnswer) -> str:
    from .report.search_tables import strategy_text
    from .report.text import NONE, figure, ms_text

    def text(value: float | None, written: Any) -> str:
        return NONE if value is None else written(value)

    rows = [
        (
            f"{place}", strategy_text(one), f"{one.gpus}", text(one.ttft_ms, ms_text), text(one.tpot_ms, ms_text),
            text(one.output_tokens_per_s, figure), text(one.output_tokens_per_s_per_gpu, figure),
        )
        for place, one in enumerate(answer.candidates[:_CANDIDATES], 1)
    ]  # fmt: skip
    return _table(("#", "strategy", "GPUs", "TTFT", "TPOT", "tokens/s", "per GPU"), rows)


def _result(found: PlanResult) -> str:
    from .evaluation.report.markup import joined

    parts = [_estimate(found.estimate)] if found.estimate is not None else []
    parts += [_picture(found.plan)] if found.plan is not None else []
    return joined(*parts)


def _page(plan: Displayed) -> PlanPage:
    from ..tools.plan.document import Plan

    assert isinstance(plan, Plan)
    return PlanPage(plan)


displayed_by(html_of, _page)
