"""The lower part of the page: a table of all cases with their marks, and below each its details."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from ....tools.plan.describe import number
from ..marks import Mark
from ..results import FINAL, CaseResult, Detail, Gain, Kept, Proposed
from ..rungs.ladder import QUESTIONS, RUNG_NAMES
from .markup import Html, element, joined

# A mark's class, sign, meaning, and sort key.
_PASS = ("pass", "✓", "passed", "2")
_LATE = ("late", "↻", "passed at the end, not at once", "1")
_FAIL = ("fail", "✗", "not passed", "0")
_NONE = ("none", "·", "does not apply", "3")


def case_table(records: Sequence[Kept], flipped: Collection[str], pictured: Collection[int]) -> Html:
    """All cases in order; `flipped` are ids, `pictured` the places of cases whose picture is shown."""
    heads = [element("th", name) for name in ("case", "family", "answer", "strategy")]
    heads += [element("th", name, class_="mark", title=QUESTIONS[name]) for name in RUNG_NAMES]
    bodies = [_case(place, run, run.result.id in flipped, place in pictured) for place, run in enumerate(records)]
    table = element("table", element("thead", element("tr", *heads)), *bodies, id="cases", class_="cases")
    legend = ", ".join(f"{sign} {meaning}" for _, sign, meaning, _ in (_PASS, _LATE, _FAIL, _NONE))
    return element(
        "section",
        element("h2", "Cases"),
        _tools(records, flipped),
        element("p", legend, class_="soft"),
        element("div", table),
    )


def _tools(records: Sequence[Kept], flipped: Collection[str]) -> Html:
    """Search and filters; a script shows them."""
    states = ["", "unsolved", "solved", *(["flipped"] if flipped else []), "fault"]
    families = sorted({record.result.family for record in records})
    return element(
        "div",
        element("input", type="search", id="search", placeholder="Search cases", aria_label="Search cases"),
        element("select", *_options(states, "all"), id="which", aria_label="Which cases"),
        element("select", *_options(["", *families], "every family"), id="family", aria_label="Family"),
        element("span", "", id="count", class_="soft"),
        id="tools",
        class_="tools",
        hidden=True,
    )  # fmt: skip


def _options(values: Sequence[str], label_of_all: str) -> Iterator[Html]:
    return (element("option", value or label_of_all, value=value) for value in values)


def _case(place: int, record: Kept, is_flipped: bool, has_picture: bool) -> Html:
    result = record.result
    state = ["solved" if result.is_solved else "unsolved"]
    state += ["flipped"] if is_flipped else []
    state += ["fault"] if result.fault is not None else []
    name = result.id if result.epoch == 1 else f"{result.id} #{result.epoch}"
    row = element(
        "tr",
        element("td", name, class_="id"),
        element("td", result.family, class_="name"),
        element("td", result.answer),
        element("td", result.strategy, class_="name"),
        *(_mark_cell(result, rung) for rung in RUNG_NAMES),
    )
    columns = str(4 + len(RUNG_NAMES))
    inside = element("details", element("summary", _summary(result)), _inside(record, has_picture))
    more = element("tr", element("td", inside, colspan=columns), class_="more")
    return element(
        "tbody", row, more, id=f"case-{place}", data_state=" ".join(state), data_family=result.family
    )  # fmt: skip


def _summary(result: CaseResult) -> str:
    if result.fault is not None:
        return "the harness failed"
    words = [word for word in (result.status, result.plan_from and f"plan from {result.plan_from}") if word]
    words.append(f"{result.proposals} proposal{'s' if result.proposals != 1 else ''}")
    return ", ".join(words)


def _mark_cell(result: CaseResult, rung: str) -> Html:
    passed, why = result.passed(rung), _why(result, rung)
    if result.fault is not None:
        kind = _FAIL
    elif passed is None:
        kind = _NONE
    elif not passed:
        kind = _FAIL
    else:
        kind = _LATE if rung not in result.marks and result.passed(rung, "at_once") is False else _PASS
    name, sign, meaning, key = kind
    label = f"{rung}: {meaning}{f': {why}' if why else ''}"
    return element("td", sign, class_=f"mark {name}", title=label, aria_label=label, data_key=key)


def _why(result: CaseResult, rung: str) -> str:
    mark = result.marks.get(rung) or result.stages.get(FINAL, {}).get(rung)
    return mark.why if mark is not None else ""


def _inside(record: Kept, has_picture: bool) -> Html:
    detail, result = record.detail, record.result
    parts: list[Html] = []
    if result.fault is not None:
        parts += [element("h3", "Fault"), element("p", result.fault)]
    if detail is not None:
        parts += _texts(detail)
    if result.gain is not None:
        parts += [element("h3", "Gain over the built-in plan"), element("p", _gain(result.gain))]
    parts += [element("h3", "Marks"), element("ul", *_marks(result))]
    for place, proposal in enumerate(detail.proposals if detail is not None else (), start=1):
        parts.append(_proposal(place, proposal))
    if detail is not None and detail.picture:
        shown = _picture(detail.picture, result) if has_picture else element(
            "p", "The picture is left out: the page would be too long. A run of this case alone has it.", class_="soft"
        )  # fmt: skip
        parts += [element("h3", "DAG of the answer"), shown]
    return element("div", *parts, class_="inside")


def _texts(detail: Detail) -> Iterator[Html]:
    if detail.request:
        yield joined(element("h3", "Request"), element("div", detail.request, class_="request", dir="auto"))
    for title, words in (("Golden", detail.golden), ("Why", detail.why), ("Answer", detail.explanation)):
        if words:
            yield joined(element("h3", title), *(element("p", line, dir="auto") for line in words.splitlines() if line))


def _gain(gain: Gain) -> str:
    figures = f"{number(gain.own)} against {number(gain.built_in)} {gain.unit}"
    return f"{gain.pct:+.1f}% ({gain.verdict}), for {gain.objective}: {figures}"


def _marks(result: CaseResult) -> Iterator[Html]:
    """Every mark in words: of the plan rungs at each stage, then of the whole answer."""
    for stage, marks in result.stages.items():
        yield element("li", f"{stage.replace('_', ' ')}: {_marks_text(marks)}")
    if result.marks:
        yield element("li", f"answer: {_marks_text(result.marks)}")


def _marks_text(marks: Mapping[str, Mark]) -> str:
    return "; ".join(_mark_text(name, mark) for name, mark in marks.items())


def _mark_text(name: str, mark: Mark) -> str:
    figure = f" ({mark.value:+.1f}%)" if name == "regret" and mark.value is not None else ""
    return f"{name} {'✓' if mark.passed else '✗'}{figure}{f' {mark.why}' if mark.why else ''}"


def _proposal(place: int, proposal: Proposed) -> Html:
    tone = "good" if proposal.verdict in ("valid", "repaired") else "bad"
    heading = element(
        "h3", f"Proposal {place} ", element("span", proposal.verdict, class_=f"tag {tone}"), proposal.strategy or ""
    )
    parts = [heading]
    if proposal.text:
        parts.append(element("details", element("summary", "what was proposed"), element("pre", proposal.text)))
    for title, lines in (("Findings", proposal.findings), ("Repairs", proposal.fixes)):
        if lines:
            parts += [element("p", title, class_="soft"), element("ul", *(element("li", line) for line in lines))]
    if proposal.patch:
        lines = "\n".join(json.dumps(operation, ensure_ascii=False) for operation in proposal.patch)
        parts.append(element("details", element("summary", "JSON Patch of the repair"), element("pre", lines)))
    return joined(*parts)


def _picture(picture: str, result: CaseResult) -> Html:
    """The picture as an image: nothing in it runs, and its style is isolated."""
    data = base64.b64encode(picture.encode("utf-8", errors="replace")).decode()
    alt = f"DAG of the answer to {result.id}: {result.strategy or result.answer}"
    return element(
        "div", element("img", src=Html(f"data:image/svg+xml;base64,{data}"), alt=alt, loading="lazy"), class_="picture"
    )  # fmt: skip
