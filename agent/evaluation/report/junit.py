"""The report of an evaluation as JUnit XML for build servers: a suite for each family, a test for each case.

An unsolved case is a failure, with the rungs' reasons; a case in which the harness broke is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

from ....tools.draw.style import xml_text
from ..results import DECISIVE, CaseResult, Header, Kept


def render_junit(header: Header, records: Sequence[Kept]) -> str:
    """The XML document, with its declaration; times are in seconds."""
    families: dict[str, list[Kept]] = {}
    for record in records:
        families.setdefault(record.result.family, []).append(record)
    root = ET.Element("testsuites", {"name": _line(f"shardwright eval {header.dataset}"), **_counts(records)})
    for family, members in families.items():
        suite = ET.SubElement(root, "testsuite", {"name": _line(family), **_counts(members), "skipped": "0"})
        _add_properties(suite, header)
        for record in members:
            _add_case(suite, record, header.epochs)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(finished: Iterable[Kept]) -> dict[str, str]:
    records = list(finished)
    faults = sum(record.result.fault is not None for record in records)
    unsolved = sum(not record.result.is_solved for record in records)
    return {
        "tests": str(len(records)),
        "failures": str(unsolved - faults),
        "errors": str(faults),
        "time": f"{sum(record.seconds for record in records):.3f}",
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


def _add_case(suite: ET.Element, record: Kept, epochs: int) -> None:
    result = record.result
    name = result.id if epochs == 1 else f"{result.id} #{result.epoch}"
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": _line(result.family), "name": _line(name), "time": f"{record.seconds:.3f}"},
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
    """The decisive rungs that the answer did not pass, each with the reason."""
    final = {**result.stages.get("final", {}), **result.marks}
    return {rung: final[rung].why for rung in DECISIVE if rung in final and not final[rung].passed}


def _line(text: str) -> str:
    """`text` as an attribute, on one line."""
    return " ".join(xml_text(text).split())
