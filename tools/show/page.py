"""The page of a plan: the drawing, the verdict, the estimate and the timelines put together, as one HTML file that
needs no network.

A plan's content is a stranger's: the page holds it as JSON, which its script turns into text and never into markup, and
the page's policy admits no script and no style but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from ..draw.style import COLOURS, LINES, clipped
from ..errors import InputError
from ..performance.estimate import estimate_view
from ..performance.execution_model import devices_of
from ..plan.describe import describe
from ..plan.document import PHASES, Phase
from ..plan.performance import PerformanceEstimate
from ..plan.reader import ReadDocument
from ..plan.view import PlanView
from ..rules.base import Rule, Violation
from ..rules.registry import all_rules
from ..validate import validate_read
from .cluster import racks
from .page_boxes import page_boxes
from .page_model import Figures, FindingData, LaneData, PageData, RuleData, TimelineData
from .timeline import Lane, Timeline, device_key, phase_timeline, title_of

# The most findings that a page lists: nobody reads more.
_MOST_FINDINGS = 500
# The most operators on the lanes of a phase, like lanes counted once: with more, like layers are drawn as one.
_MOST_EVENTS = 40_000
# The timelines of a plan with more nodes stay folded: unfolding them takes long.
_MOST_NODES = 2_000
_TENSOR_HOLDERS = ("AttentionNode", "FFNNode")
_VISITED: Mapping[str, tuple[str, ...]] = {
    "phase": ("PhaseNode",), "stage": ("PipelineStageNode",), "tp_operator": _TENSOR_HOLDERS,
}  # fmt: skip


def page_data(read: ReadDocument, phase: Phase | None = None) -> PageData:
    """What the page of a document shows, of `phase` alone where it is given."""
    report, view = validate_read(read), read.view
    violations = report.violations[:_MOST_FINDINGS]
    figures, why = _figures(read)
    timelines = [] if figures is None else list(_timelines(view, phase))
    devices = sorted(view.devices, key=device_key)
    numbers = {device: number for number, device in enumerate(devices)}
    boxes = page_boxes(view, phase, violations, timelines, numbers)
    rules = all_rules()
    hidden = len(report.violations) - len(violations)
    more = f"; the first {_MOST_FINDINGS:,} findings are shown, {hidden:,} more are not" if hidden else ""
    memory = {} if figures is None else {entry.device: entry for entry in figures.memory.per_device}
    return PageData(
        title=boxes.title,
        strategy="" if read.plan is None else describe(read.plan.strategy),
        note=f"{boxes.note}{more}".removeprefix("; "),
        valid=report.valid,
        boxes=boxes.boxes,
        nodes=boxes.nodes,
        devices=tuple([clipped(device, 40) for device in devices]),
        rules=tuple([RuleData(id=rule.id, requirement=rule.requirement, severity=rule.severity) for rule in rules]),
        judged=_judged(rules),
        findings=tuple(_findings(violations, boxes.found_at)),
        timelines=tuple([_timeline(timeline, numbers) for timeline in timelines]),
        racks=racks(view, devices, memory),
        figures=None if figures is None else _shown(figures),
        no_figures=why,
    )


def _figures(read: ReadDocument) -> tuple[PerformanceEstimate | None, str]:
    if read.plan is None:
        return None, f"no figures: it is not a plan document ({clipped(read.faults[0].message, 300)})"
    try:
        return estimate_view(read.view), ""
    except InputError as error:
        return None, f"no figures: {clipped(str(error), 300)}"


def _shown(estimate: PerformanceEstimate) -> Figures:
    return Figures(
        latency=estimate.latency, throughput=estimate.throughput, load=estimate.load, cost=estimate.cost,
        ranges=estimate.ranges, explanation=estimate.explanation,
    )  # fmt: skip


def _timelines(view: PlanView, phase: Phase | None) -> Iterator[Timeline]:
    for name in (phase,) if phase is not None else PHASES:
        timeline = phase_timeline(view, name, fold=len(view.nodes) > _MOST_NODES)
        if sum(len(lane.places) for lane, _ in _alike(timeline)) > _MOST_EVENTS:
            timeline = phase_timeline(view, name, fold=True)
        yield timeline


def _alike(timeline: Timeline) -> list[tuple[Lane, list[str]]]:
    """Lanes that differ only in their device: the first of each kind, with the devices of all."""
    groups: dict[object, tuple[Lane, list[str]]] = {}
    for lane in timeline.lanes:
        seen = [(title_of(timeline.dag.nodes[place]), timeline.spans_ms[place]) for place in lane.places]
        groups.setdefault((lane.name, tuple(seen)), (lane, []))[1].append(lane.device)
    return list(groups.values())


def _timeline(timeline: Timeline, numbers: Mapping[str, int]) -> TimelineData:
    names: dict[str, int] = {}
    lanes = [
        LaneData(
            name=lane.name,
            devices=tuple([numbers[device] for device in devices]),
            events=tuple(_events(timeline, lane, set(devices), names)),
        )
        for lane, devices in _alike(timeline)
    ]
    dag = timeline.dag
    return TimelineData(phase=dag.phase, ms=timeline.ms, is_folded=dag.folded, names=tuple(names), lanes=tuple(lanes))


def _events(timeline: Timeline, lane: Lane, devices: set[str], names: dict[str, int]) -> Iterator[float]:
    # Where any of the like operators of like lanes is critical, it is lit on the lane that stands for them all.
    critical = {
        (title_of(node), timeline.spans_ms[place])
        for place in timeline.critical
        if devices.intersection(devices_of(node := timeline.dag.nodes[place]))
    }
    for place in lane.places:
        node, span = timeline.dag.nodes[place], timeline.spans_ms[place]
        title = f"{title_of(node)} × {node.repeat}" if node.repeat and node.repeat > 1 else title_of(node)
        yield names.setdefault(title, len(names))
        yield -1 if node.layer is None else node.layer
        yield round(span[0] * 1e3, 2)
        yield round((span[1] - span[0]) * 1e3, 2)
        yield 1 if (title_of(node), span) in critical else 0


def _judged(rules: Sequence[Rule]) -> dict[str, tuple[int, ...]]:
    """The places of the rules that judge nodes of each type; rules on the whole plan are not listed."""
    by_type: dict[str, list[int]] = {}
    for place, rule in enumerate(rules):
        types = rule.visits if isinstance(rule.visits, tuple) else _VISITED.get(rule.visits, ())
        for name in types or (_TENSOR_HOLDERS if rule.limits and rule.decide is None and rule.check is None else ()):
            by_type.setdefault(name, []).append(place)
    return {name: tuple(places) for name, places in by_type.items()}


def _findings(violations: Iterable[Violation], found_at: Iterable[tuple[int, ...]]) -> Iterator[FindingData]:
    for violation, boxes in zip(violations, found_at, strict=True):
        yield FindingData(
            rule=violation.rule, severity=violation.severity, message=clipped(violation.message, 600),
            remedy=clipped(violation.remedy, 400), path=clipped(violation.path, 200), boxes=boxes,
        )  # fmt: skip


# In JSON these stand for themselves, and in HTML they would end the script or begin a comment.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def page(read: ReadDocument, phase: Phase | None = None, labels: Mapping[str, str] | None = None) -> str:
    """The page of a document, of `phase` alone where it is given; broken documents are shown too.

    `labels` replace the English ones, which have `{}` for each number.
    """
    data = page_data(read, phase).model_copy(update={"labels": dict(labels or {})})
    style, script = _style(), _part("page.js")
    # Widths and heights are set on elements by the script, which a policy without styles of elements allows.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_part("page.html")).substitute(
        policy=policy,
        title=escape(data.title),
        style=style,
        script=script,
        data=data.model_dump_json(exclude_defaults=False).translate(_IN_SCRIPT),
    )


def page_hashes() -> tuple[str, str]:
    """Hashes of every page's style and script, for the policy of a page that shows it in a frame."""
    return _hash(_style()), _hash(_part("page.js"))


def _style() -> str:
    return f"{_part('page.css')}{_colours(0)}@media(prefers-color-scheme:dark){{{_colours(1)}}}"


def _colours(place: int) -> str:
    """The colours of boxes and lines on a light page (0) or on a dark one (1), those of all pictures."""
    boxes = "".join(
        f".kind-{kind}{{--fill:{colours[2 * place]};--line:{colours[2 * place + 1]}}}"
        for kind, colours in {**COLOURS, "request": COLOURS["replica"]}.items()
    )
    lines = "".join(
        f".link-{kind}{{stroke:{colours[place]}}}.fill-{kind}{{background:{colours[place]}}}"
        for kind, colours in LINES.items()
    )
    return f"{boxes}{lines}.fill-lit{{background:var(--lit)}}"


def _part(name: str) -> str:
    """A part of the page that ships with the package."""
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8").strip()


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
