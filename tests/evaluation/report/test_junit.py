"""JUnit XML has what build servers rely on, and agrees with the run."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from shardwright.agent.evaluation.report.junit import render_junit

from .samples import HEADER, kept_cases, results

# Attributes that the common JUnit schema requires, and the children that it allows, in order.
_REQUIRED = {
    "testsuites": (),
    "testsuite": ("name", "tests", "failures", "errors"),
    "properties": (),
    "property": ("name", "value"),
    "testcase": ("name", "classname", "time"),
    "failure": ("type", "message"),
    "error": ("type", "message"),
}
_CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase"],
    "properties": ["property"],
    "testcase": ["error", "failure"],
}


def document() -> ET.Element:
    return ET.fromstring(render_junit(HEADER, kept_cases()).encode())


def test_it_is_of_the_common_schema() -> None:
    for element in document().iter():
        assert set(_REQUIRED[element.tag]) <= set(element.keys())
        order = [_CHILDREN[element.tag].index(child.tag) for child in element]
        assert order == sorted(order)


def test_counts_are_those_of_the_cases() -> None:
    root = document()
    for place in (root, *root.iter("testsuite")):
        for count, name in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(place.get(count, "-1")) == sum(1 for _ in place.iter(name))
    assert root.get("tests") == str(len(results()))
    assert float(root.get("time", "0")) == 0.25 * len(results())


def test_each_family_is_a_suite_with_what_was_run() -> None:
    suites = list(document().iter("testsuite"))
    assert [suite.get("name") for suite in suites] == list(dict.fromkeys(result.family for result in results()))
    for suite in suites:
        facts = {element.get("name"): element.get("value") for element in suite.iter("property")}
        assert facts["dataset_hash"] == HEADER.dataset_hash
        assert facts["solver"] == "builtin"


def test_failures_are_the_unsolved_and_errors_the_faults() -> None:
    outcomes = {test_case.get("name"): [child.tag for child in test_case] for test_case in document().iter("testcase")}
    for result in results():
        expected = ["error"] if result.fault is not None else [] if result.is_solved else ["failure"]
        assert outcomes[result.id] == expected
    failure = next(document().iter("failure"))
    assert failure.get("type") == "outcome"
    assert "words that it has not" in (failure.get("message") or "")


def test_text_that_xml_cannot_hold_is_replaced() -> None:
    refused = kept_cases()[1]
    odd = refused.result.model_copy(update={"fault": "a\x00b\x1b[31m\ud800 <&>\nsecond line"})
    text = render_junit(HEADER, [refused.model_copy(update={"result": odd})])
    error = next(ET.fromstring(text.encode()).iter("error"))
    assert error.get("message") == "a\ufffdb\ufffd[31m\ufffd <&> second line"


def test_epochs_are_tests_of_their_own() -> None:
    first = kept_cases()[0]
    second = first.model_copy(update={"result": first.result.model_copy(update={"epoch": 2})})
    text = render_junit(HEADER.model_copy(update={"epochs": 2}), [first, second])
    names = [test_case.get("name") for test_case in ET.fromstring(text).iter("testcase")]
    assert names == ["count-of-seven #1", "count-of-seven #2"]
