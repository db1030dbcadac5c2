"""A few small, quick attacks of each kind; `benchmarks/attack.py` makes thousands."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable

import pytest

import shardwright
from shardwright.agent.stated.request import intent_of

from .certificates import certificate_case, check_certificate
from .documents import check_document
from .entrances import check_entrance
from .mutations import document_case, number_bounds, put
from .over_http import check_http, http_case
from .probe import Case, FailedError, Probe, attempt
from .readers import check_reader, reader_case
from .seeds import seed_plan
from .sentences import request_case
from .watched import Bounds, Check, attacked

pytestmark = pytest.mark.thorough

_SEED = 15
_SMALL = ("dense-1", "dense-tp2", "moe-ep2", "disaggregated-tp2", "dense-tp2+full")
_NUMBERS = number_bounds()


def faults_of(check: Check, cases: Iterable[Case]) -> list[str]:
    """Call, cause and case of each fault that `check` finds, as text."""
    bounds = Bounds(workers=1)
    return [
        f"{fault.call}: {fault.cause} ({end.case.about})"
        for end in attacked(check, cases, bounds)
        for fault in end.faults
    ]


def test_hostile_documents_are_judged_and_what_is_valid_is_usable() -> None:
    assert not faults_of(check_document, (document_case(_SEED, number, _SMALL) for number in range(12, 28)))


@pytest.mark.parametrize("part", range(3))
def test_a_plan_whose_numbers_stand_at_their_bounds_is_refused_or_usable(part: int) -> None:
    def cases() -> Iterable[Case]:
        for path, bounds in _NUMBERS[part::15]:
            document = seed_plan("dense-tp2+full")
            put(document, path, min(bounds, default=1) or 1e-35)
            yield Case("documents", json.dumps(document), f"{'/'.join(path)} at its least", "dense-tp2+full")

    assert not faults_of(check_document, cases())


def test_a_request_rate_of_next_to_nothing_ends() -> None:
    document = seed_plan("dense-tp2")
    document["workload"]["request_rate"] = 1e-35
    assert not faults_of(check_document, [Case("documents", json.dumps(document), "request_rate 1e-35", "dense-tp2")])


@pytest.mark.parametrize("accelerator", ["", " ", "\n", "x" * 201, "\ud800"])
def test_a_plan_on_no_accelerator_is_not_valid(accelerator: str) -> None:
    document = seed_plan("dense-1")
    document["hardware"]["accelerator"] = accelerator
    assert not shardwright.validate(json.dumps(document)).valid


def test_fuzzed_requests_are_read_or_refused_in_one_line() -> None:
    def read(case: Case, probe: Probe) -> None:
        probe.call("intent", lambda: intent_of(case.text))

    faults = [fault for number in range(60) for fault in attempt(read, request_case(_SEED, number)).faults]
    assert not faults


def test_no_certificate_is_confirmed_with_one_thing_changed() -> None:
    cases = (certificate_case(_SEED, number) for number in range(40))
    assert not [fault for case in cases for fault in attempt(check_certificate, case).faults]


def test_the_knowledge_base_answers_in_any_thread() -> None:
    expected, answers = shardwright.explain("PP003"), []
    probe = Probe()

    def ask() -> None:
        try:
            answers.append(probe.call("explain", lambda: shardwright.explain("PP003")))
        except FailedError:
            return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not probe.faults
    assert answers == [expected] * 4


@pytest.mark.parametrize(("entrance", "content"), [("fix", "half a letter"), ("models", "300 deep below a new key")])
def test_the_command_refuses_hostile_files_in_one_line(entrance: str, content: str) -> None:
    case = Case("entrances", json.dumps([entrance, content, True, _SEED]), f"{entrance} < {content}")
    assert not attempt(check_entrance, case).faults


def test_a_damaged_file_is_read_or_refused_in_one_line() -> None:
    assert not faults_of(check_reader, (reader_case(_SEED, number) for number in range(60)))


def test_a_damaged_question_to_the_server_is_answered_or_refused_in_one_line() -> None:
    assert not faults_of(check_http, (http_case(_SEED, number) for number in range(120)))


def test_who_hangs_waits_dies_or_fills_the_memory_is_found_and_the_next_attack_is_made() -> None:
    does: dict[str, Callable[[], object]] = {
        "spins": lambda: [None for _ in iter(int, 1)],
        "waits": lambda: time.sleep(60),
        "dies": lambda: os._exit(3),
        "fills": lambda: bytearray(2 << 30),
        "fails": lambda: {}["nothing"],
        "ends": lambda: None,
    }

    def check(case: Case, probe: Probe) -> None:
        probe.call(case.text, does[case.text])

    ends = {end.case.text: end.faults for end in attacked(check, [Case("", name) for name in does], Bounds(0.3))}
    sorts = {name: [fault.sort for fault in faults] for name, faults in ends.items()}
    assert sorts.pop("ends") == []
    assert sorts == {
        "spins": ["slow"], "waits": ["slow"], "dies": ["traceback"], "fills": ["large"], "fails": ["traceback"]
    }  # fmt: skip
