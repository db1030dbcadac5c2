"""Conversation and page share one state of the request, whatever its result.

Skipped where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from .browsing import SMALL_REQUEST, Page
from .served import Server

pytestmark = pytest.mark.thorough

LIMITED = "Serve Llama-3.1-8B on 2 H100, 1k in / 128 out, 8 users, TPOT p95 under 9 ms"


def _set(sheet: Any, label: str, value: str) -> None:
    sheet.get_by_label(label).fill(value)
    sheet.get_by_label(label).press("Enter")


def test_a_field_that_leads_to_no_plan_is_kept_shown_and_can_be_changed_back(page: Page) -> None:
    sheet = page.planned(LIMITED).open("request")
    _set(sheet, "TPOT at most", "0.5")
    page.verdict("No plan")
    assert sheet.get_by_label("TPOT at most").input_value() == "0.5"
    assert "8 at once" in page.tab.inner_text("#head")
    page.say("now 4 GPUs")
    page.tab.locator(".theirs").nth(2).wait_for()
    page.verdict("No plan")
    assert sheet.get_by_label("TPOT at most").input_value() == "0.5"
    _set(sheet, "TPOT at most", "9")
    page.verdict("1 × 4 h100-sxm")
    assert "p95 " in page.tab.inner_text("#head .figures")


def test_a_first_request_without_a_plan_can_be_changed_in_the_form(page: Page) -> None:
    page.say("Serve Llama-3.1-70B on 1 H100, 1k in / 128 out")
    page.verdict("No plan")
    _set(page.open("request"), "GPUs per node", "4")
    page.verdict("Valid plan")


def test_what_is_said_while_a_field_is_worked_on_waits_and_comes_after_it(page: Page) -> None:
    sheet = page.planned(LIMITED).open("request")
    sheet.get_by_label("Requests at once").fill("16")
    sheet.get_by_label("Weights").select_option("fp8")
    assert page.tab.is_disabled("#send")
    page.tab.wait_for_selector("#send:not([disabled])")
    page.say("now 4 GPUs")
    page.verdict("1 × 4 h100-sxm")
    assert "16 at once · for latency · fp8" in page.tab.inner_text("#head")
    assert "TP4" in page.tab.locator(".theirs .lead").last.inner_text()


def test_a_request_after_a_broken_plan_is_what_both_sides_show(page: Page, plan: dict[str, Any]) -> None:
    page.drop("broken.json", {**plan, "strategy": {**plan["strategy"], "gpu_count": 16}})
    page.verdict("Not valid: 1 error")
    # It asks for the same thing, and is no answer for the broken plan.
    page.say("Llama-3.1-8B on 2 H100, 512 in, 64 out")
    page.verdict("Valid plan")
    assert "Valid plan" in page.tab.locator(".theirs .lead").last.inner_text()


def test_a_reload_shows_what_was_said_and_done_and_no_words_of_our_own(page: Page, plan: dict[str, Any]) -> None:
    page.drop("plan.json", plan)
    page.verdict("Valid plan")
    _set(page.open("request"), "Requests at once", "8")
    page.tab.locator("#head", has_text="8 at once").wait_for()
    page.say("fp8 weights")
    page.tab.locator("#head", has_text="fp8").wait_for()
    notes = page.tab.locator("#talk .note").all_inner_texts()
    page.tab.reload()
    page.tab.locator("#head", has_text="8 at once · for latency · fp8").wait_for()
    assert page.tab.locator("#talk .mine").all_inner_texts() == ["fp8 weights"]
    assert page.tab.locator("#talk .note").all_inner_texts() == notes == ["plan.json: a plan.", "Requests at once: 8"]


@pytest.mark.parametrize("how", ["types", "comma"])
def test_a_plan_that_cannot_be_read_is_shown_with_its_findings_and_mended(
    how: str, page: Page, plan: dict[str, Any]
) -> None:
    wrong = {
        **plan,
        "workload": {**plan["workload"], "concurrency": "24"},
        "precision": {**plan["precision"], "weights": "bfloat16"},
    }
    text = json.dumps(plan)
    page.planned("Llama-3.1-8B on 4 H100", "TP4")
    page.drop("odd.json", wrong if how == "types" else text.replace(', "hardware"', ' "hardware"'))
    page.verdict("odd.json")
    assert "Not valid" in page.tab.inner_text("#head .verdict")
    page.tab.locator("#sheet-findings .finding", has_text="ST001").first.wait_for()
    for sheet in ("picture", "request", "memory", "strategies", "compare", "export", "findings"):
        page.open(sheet)
    page.tab.click("#fix")
    page.verdict("Valid plan TP2")
    # The conversation goes on from the plan that is shown.
    page.say("now 1 GPU")
    page.tab.locator("#head .verdict", has_text="1 × 1 h100-sxm").wait_for()


def test_degrees_that_cannot_be_kept_are_told_first(page: Page) -> None:
    page.planned(LIMITED.replace("under 9", "under 6")).say("vllm serve meta-llama/Llama-3.1-8B -tp 1")
    page.tab.locator(".theirs .lead", has_text="one device was asked for and cannot be kept").wait_for()
    page.tab.locator("#head .notice", has_text="one device was asked for and cannot be kept").wait_for()


def test_limits_and_rates_stand_beside_the_figures(page: Page) -> None:
    page.planned("Serve Llama-3.1-8B on 2 H100, 1k in / 128 out, 2 requests/s, TTFT p95 under 90 ms", "Valid plan")
    head = page.tab.inner_text("#head")
    assert "2 requests/s" in head
    assert re.search(r"p95 [\d.]+ ms of 90 ms", head)
    assert page.open("request").get_by_label("TTFT at most (ms) · p95").input_value() == "90"


def test_what_an_engine_would_gain_names_the_field_and_no_option_of_a_command(page: Page) -> None:
    page.planned("Llama-3.1-8B on 4 H100, 3000 in 300 out, 24 concurrent", "TP4")
    why = page.tab.inner_text("#head .why")
    assert "choose vllm in the field Engine" in why and "--engine" not in why
    field = page.open("request").locator(".field", has_text="no engine was named")
    field.get_by_label("Engine").select_option("vllm")
    page.tab.locator("#head .why", has_not_text="choose vllm").wait_for()
    assert page.tab.input_value("#field-engine") == "vllm"


def test_a_comparison_keeps_what_it_is_with(page: Page) -> None:
    sheet = page.planned().open("compare")
    sheet.get_by_label("Compare this plan (A) with").fill("PP2")
    sheet.get_by_role("button", name="Compare").click()
    sheet.locator(".compared").wait_for()
    assert sheet.get_by_label("Compare this plan (A) with").input_value() == "PP2"


def test_a_plan_below_the_front_and_points_that_miss_a_limit_are_explained(page: Page) -> None:
    sheet = page.planned(f"{SMALL_REQUEST}, use PP2", "PP2").open("strategies")
    sheet.get_by_role("button", name="Search all strategies").click()
    sheet.locator(".notice", has_text="lies below the front").wait_for()
    assert "the time from end to end" in sheet.locator(".notice").inner_text()
    assert "misses a limit or breaks a rule" in sheet.inner_text()


def test_in_chinese_the_page_says_what_is_in_english(chromium: Any, served: Server) -> None:
    page = Page(chromium, served.url, locale="zh-CN").planned(verdict="有效方案")
    assert "为何选择此方案（英文）" in page.tab.inner_text("#head")
    for sheet in ("picture", "request"):
        page.open(sheet).get_by_text("以下由工具给出的说明为英文。").wait_for()
    assert page.tab.inner_text("#field-objective").split() == ["延迟", "吞吐", "成本"]
    assert page.noise == []
