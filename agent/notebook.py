"""Shows results in a notebook: a table and a small picture; for a plan, on demand, the interactive page.

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


def html_of(result: Displayed) -> str:
    """The HTML that a notebook shows for a result."""
    from ..tools.plan.document import Plan
    from ..tools.plan.performance import PerformanceEstimate
    from ..tools.validate import ValidationReport
    from .results import PlanResult
    from .search_results import SearchAnswer

    match result:
        case Plan():
            return _headed(result, _picture(result))
        case PerformanceEstimate():
            return _headed(result, _estimate(result))
        case ValidationReport():
            return _headed(result, _findings(result))
        case SearchAnswer():
            return _headed(result, _candidates(result))
        case PlanResult():
            return _headed(result, _result(result))
        case _:
            return _headed(result, "")


def _headed(result: Displayed, body: str) -> str:
    from .evaluation.report.markup import element

    return element("div", element("p", element("b", result.one_line())), body)


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


def _estimate(estimate: PerformanceEstimate) -> str:
    from .report.cost import cost_text
    from .report.estimate import rate_text
    from .report.text import bytes_text, ms_text

    latency, percentiles = estimate.latency, estimate.latency.percentiles
    rows = [
        ("TTFT", ms_text(latency.ttft_ms), ms_text(percentiles.ttft_ms.p90)),
        ("TPOT", ms_text(latency.tpot_ms), ms_text(percentiles.tpot_ms.p90)),
        ("end to end", ms_text(latency.end_to_end_ms), ms_text(percentiles.end_to_end_ms.p90)),
        ("output", rate_text(estimate.throughput.dp_scaled_tokens_per_s), ""),
    ]
    devices = estimate.memory.per_device
    if devices:
        fullest = max(devices, key=lambda device: device.total_bytes / max(1, device.usable_bytes))
        rows.append(("memory", f"{bytes_text(fullest.total_bytes)} of {bytes_text(fullest.usable_bytes)}", ""))
    if estimate.cost is not None:
        rows.append(("cost", cost_text(estimate.cost, len(devices)), ""))
    return _table(("", "mean", "p90"), rows)


def _findings(report: ValidationReport) -> str:
    if not report.violations:
        return ""
    rows = [(fault.rule, fault.severity, fault.message, fault.remedy) for fault in report.violations[:_FINDINGS]]
    more = len(report.violations) - len(rows)
    return _table(("rule", "", "finding", "to mend"), [*rows, *([("", "", f"and {more:,} more", "")] if more else [])])


def _candidates(answer: SearchAnswer) -> str:
    from .report.search_tables import strategy_text
    from .report.text import NONE, figure, ms_text

    def text(value: float | None, written: Any) -> str:
        return NONE if value is None else written(value)

    rows = [
        (
            f"{place}", strategy_text(row), f"{row.gpus}", text(row.ttft_ms, ms_text), text(row.tpot_ms, ms_text),
            text(row.output_tokens_per_s, figure), text(row.output_tokens_per_s_per_gpu, figure),
        )
        for place, row in enumerate(answer.candidates[:_CANDIDATES], 1)
    ]  # fmt: skip
    return _table(("#", "strategy", "GPUs", "TTFT", "TPOT", "tokens/s", "per GPU"), rows)


def _result(result: PlanResult) -> str:
    from .evaluation.report.markup import joined

    parts = [_estimate(result.estimate)] if result.estimate is not None else []
    parts += [_picture(result.plan)] if result.plan is not None else []
    return joined(*parts)


def _page(plan: Displayed) -> PlanPage:
    from ..tools.plan.document import Plan

    assert isinstance(plan, Plan)
    return PlanPage(plan)


displayed_by(html_of, _page)
