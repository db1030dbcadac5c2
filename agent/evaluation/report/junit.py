"""The report of an evaluation as JUnit XML, which build servers read: a suite for each family, a test for each case.

A case that is not solved is a failure, with what the rungs say; one in which the harness itself broke is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

from ....tools.draw.style import xml_text
from ..results import DECISIVE, CaseResult, Header, Kept


def render_junit(header: Header, kept: Sequence[Kept]) -> str:
    """The XML document, with its declaration. Seconds are those that the cases took."""
    families: dict[str, list[Kept]] = {}
    for one in kept:
        families.setdefault(one.result.family, []).append(one)
    root = ET.Element("testsuites", {"name": _line(f"shardwright eval {header.dataset}"), **_counts(kept)})
    for family, members in families.items():
        suite = ET.SubElement(root, "testsuite", {"name": _line(family), **_counts(members), "skipped": "0"})
        _add_properties(suite, header)
        for one in members:
            _add_case(suite, one, header.epochs)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(kept: Iterable[Kept]) -> dict[str, str]:
    every = list(kept)
    faults = sum(one.result.fault is not None for one in every)
    unsolved = sum(not one.result.is_solved for one in every)
    return {
        "tests": str(len(every)),
        "failures": str(unsolved - faults),
        "errors": str(faults),
        "time": f"{sum(one.seconds for one in every):.3f}",
    }


def _add_properties(suite: ET.Element, header: Header) -> None:
    properties = ET.SubElement(suite, "properties")
    facts = {
        "dataset": header.dataset,
        "dataset_hash": header.dataset_hash,
        "solver": header.solver,
        "shardwright": header.shardwright,
    }
    for name, value in facts.items():
        ET.SubElement(properties, "property", {"name": name, "value": _line(value)})


def _add_case(suite: ET.Element, kept: Kept, epochs: int) -> None:
    result = kept.result
    name = result.id if epochs == 1 else f"{result.id} #{result.epoch}"
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": _line(result.family), "name": _line(name), "time": f"{kept.seconds:.3f}"},
    )
    if result.fault is not None:
        error = ET.SubElement(case, "error", {"type": "harness", "message": _line(result.fault)})
        error.text = xml_text(result.fault)
        return
    lost = _lost(result)
    if lost:
        message = "; ".join(f"{rung}: {why}" if why else rung for rung, why in lost.items())
        failure = ET.SubElement(case, "failure", {"type": ", ".join(lost), "message": _line(message)})
        failure.text = xml_text("\n".join(f"{rung}: {why or 'not passed'}" for rung, why in lost.items()))


def _lost(result: CaseResult) -> Mapping[str, str]:
    """The decisive rungs that the answer did not pass, each with why."""
    final = {**result.stages.get("final", {}), **result.marks}
    return {rung: final[rung].why for rung in DECISIVE if rung in final and not final[rung].passed}


def _line(text: str) -> str:
    """`text` as an attribute: in one line."""
    return " ".join(xml_text(text).split())
