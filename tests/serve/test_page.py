"""What a person does on the page of `serve`: ask for a plan, look at it, change it, and take it along.

Skipped where Playwright or a browser (Chromium or Chrome) is not installed.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardwright.agent.serve.settings import Settings

from .browsing import SMALL_REQUEST, Page
from .served import Server, in_thread, until

pytestmark = pytest.mark.thorough


def test_an_example_is_one_click_from_its_plan_with_figures_ranges_and_sources(page: Page) -> None:
    page.tab.click(".examples button >> nth=0")
    page.verdict("TP2 · meta-llama/Llama-3.1-8B")
    figures = page.tab.inner_text("#head .figures")
    assert all(name in figures for name in ("TTFT", "TPOT", "end to end", "tokens/s per GPU", "USD per million", "–"))
    page.tab.click("text=Where these figures come from")
    assert "closed loop" in page.tab.inner_text(".sources")


def test_the_conversation_changes_the_plan_and_answers_questions(page: Page) -> None:
    page.planned().say("now 4 GPUs")
    page.verdict("TP4")
    page.say("why not TP2?")
    page.tab.locator(".theirs").nth(2).locator("pre").wait_for()
    assert "TP2" in page.tab.locator(".theirs").nth(2).inner_text()
    page.say("/undo")
    page.verdict("TP2")


def test_a_box_of_the_picture_tells_of_itself(page: Page) -> None:
    box = page.planned().picture().locator("#tree .kind-attention > .head").first
    box.click()
    page.picture().locator("#details", has_text="AttentionNode").wait_for()
    page.picture().get_by_role("link", name="Timeline").click()
    page.picture().locator("#timelines canvas").first.click()


def test_a_changed_assumption_is_planned_with_and_what_was_stated_stays(page: Page) -> None:
    sheet = page.planned().open("request")
    assert sheet.locator(".assumed", has_text="Requests at once").count() == 1
    sheet.get_by_label("Requests at once").fill("8")
    sheet.get_by_label("Requests at once").press("Enter")
    page.verdict("1 × 2 h100-sxm")
    page.tab.locator("#head", has_text="1,024 tokens in, 128 out · 8 at once").wait_for()
    sheet.get_by_label("Weights").select_option("fp8")
    page.tab.locator("#head", has_text="8 at once · for latency · fp8").wait_for()
    # The conversation goes on from the plan that is shown.
    page.open("memory")
    page.say("now 4 GPUs")
    page.verdict("1 × 4 h100-sxm")
    assert "8 at once · for latency · fp8" in page.tab.inner_text("#head")


def test_a_layout_that_was_asked_for_is_kept_when_a_field_changes(page: Page, plan: dict[str, Any]) -> None:
    page.planned().say("use PP2")
    page.verdict("PP2")
    page.open("request").get_by_label("Requests at once").fill("8")
    page.tab.keyboard.press("Enter")
    page.tab.locator("#head", has_text="8 at once").wait_for()
    page.verdict("PP2")
    page.drop("plan.json", plan)
    page.verdict("TP2")
    page.tab.locator("#sheet-picture iframe").wait_for()
    page.open("request").get_by_label("Objective").select_option("cost")
    page.tab.locator("#head", has_text="for cost").wait_for()
    page.verdict("TP2")


def test_a_limit_is_set_and_taken_back(page: Page) -> None:
    sheet = page.planned(f"{SMALL_REQUEST}, TTFT under 50 ms, use PP2", "PP2").open("request")
    sheet.get_by_label("TTFT at most").fill("")
    sheet.get_by_label("TTFT at most").press("Enter")
    sheet.locator(".field", has_text="TTFT at most").get_by_text("not stated").wait_for()
    page.verdict("PP2")
    sheet.get_by_label("TTFT at most").fill("0.5")
    sheet.get_by_label("TTFT at most").press("Enter")
    page.verdict("No plan")
    page.tab.click("#undo-head")
    page.verdict("PP2")


def test_changes_that_follow_each_other_are_all_kept_and_the_keyboard_stays_where_it_is(page: Page) -> None:
    sheet = page.planned().open("request")
    sheet.get_by_label("Requests at once").fill("4")
    sheet.get_by_label("Share of memory").fill("0.8")
    sheet.get_by_label("Input tokens").fill("2048")
    # A form redrawn while a field is being written may send it at once, so only the final lengths are checked.
    page.tab.locator("#head", has_text="128 out · 4 at once").wait_for()
    page.tab.keyboard.press("Enter")
    page.tab.locator("#head", has_text="2,048 tokens in, 128 out · 4 at once").wait_for()
    assert sheet.get_by_label("Share of memory").input_value() == "0.8"
    assert page.tab.evaluate("document.activeElement.name") == "input_tokens"


def test_a_reload_finds_the_conversation_again_and_a_lost_one_begins_anew(page: Page, served: Server) -> None:
    page.planned().tab.reload()
    page.verdict("TP2")
    assert SMALL_REQUEST in page.tab.inner_text("#talk")
    name = page.tab.evaluate("sessionStorage.getItem('shardwright-session')")
    served.parts.sessions.delete(name)
    page.say("now 4 GPUs")
    page.verdict("TP4")
    assert len(page.noise) == 1 and "404" in page.noise.pop()


def test_what_is_said_before_the_page_knows_all_names_stays_in_the_conversation(page: Page) -> None:
    names: list[Any] = []
    turns: list[Any] = []
    page.tab.route("**/api/v1/models*", lambda route: names.append(route))
    page.tab.route("**/api/v1/sessions/*/turns*", lambda route: turns.append(route))
    page.tab.reload(wait_until="domcontentloaded")
    page.say(SMALL_REQUEST)
    page.tab.wait_for_function("sessionStorage.getItem('shardwright-session')")
    names.pop().continue_()
    page.tab.wait_for_selector("body[data-ready]")
    turns.pop().continue_()
    page.verdict("TP2")
    assert SMALL_REQUEST in page.tab.inner_text("#talk")


def test_an_impossible_field_is_one_line_and_the_plan_stays(page: Page) -> None:
    sheet = page.planned().open("request")
    sheet.get_by_label("Accelerator").fill("h1000")
    sheet.get_by_label("Accelerator").press("Enter")
    page.tab.locator("#plan-work .error", has_text="h1000").wait_for()
    page.verdict("TP2")


def test_memory_is_a_bar_for_each_kind_of_gpu(page: Page) -> None:
    bar = page.planned().open("memory").locator(".bar")
    assert bar.count() == 1
    assert all(name in bar.get_attribute("aria-label") for name in ("weights", "KV cache", "activations", "GB"))


def test_a_point_of_the_chart_shows_its_figures_and_becomes_the_plan(page: Page) -> None:
    sheet = page.planned().open("strategies")
    sheet.get_by_role("button", name="Search all strategies").click()
    point = sheet.get_by_role("radio", name="one device: TPOT", exact=False).first
    tpot = re.search(r"TPOT ([\d.]+ ms)", point.get_attribute("aria-label") or point.inner_text())
    point.click()
    assert tpot is not None and tpot[1] in sheet.locator(".card").inner_text()
    sheet.get_by_role("button", name="Plan this one").click()
    page.verdict("one device · meta-llama/Llama-3.1-8B · 1 × 2")
    page.tab.click("#undo-head")
    page.verdict("TP2")


def test_a_rule_is_explained_and_a_broken_plan_is_fixed_and_unfixed(page: Page, plan: dict[str, Any]) -> None:
    page.drop("broken.json", {**plan, "strategy": {**plan["strategy"], "gpu_count": 16}})
    page.verdict("Not valid: 1 error")
    page.tab.get_by_role("button", name="Explain rule GP001").click()
    page.tab.locator("#rule[open]", has_text="number of distinct devices").wait_for()
    page.tab.keyboard.press("Escape")
    page.tab.click("#fix")
    page.verdict("Valid plan")
    page.tab.locator("#sheet-findings .changes", has_text="sets strategy.gpu_count to 2").wait_for()
    page.tab.click("#undo")
    page.verdict("Not valid: 1 error")


def test_a_plan_is_exported_and_copied(page: Page, served: Server) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url.rstrip("/"))
    sheet = page.planned().open("export")
    sheet.get_by_role("button", name="Export").click()
    sheet.locator(".copy").click()
    sheet.get_by_text("Copied").wait_for()
    assert "--tensor-parallel-size 2" in page.tab.evaluate("navigator.clipboard.readText()")
    with page.tab.expect_download() as saved:
        sheet.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "vllm.sh"
    sheet.get_by_label("For").select_option("kubernetes")
    sheet.locator("pre", has_text="apiVersion").wait_for()


def test_two_plans_are_compared(page: Page) -> None:
    page.planned().say("now 4 GPUs")
    page.verdict("TP4")
    sheet = page.open("compare")
    sheet.get_by_label("An earlier plan").select_option("TP2")
    sheet.locator(".compared", has_text="GPUs used").wait_for()
    sheet.get_by_label("Compare this plan (A) with").fill("PP4")
    sheet.get_by_role("button", name="Compare").click()
    sheet.locator(".verdict", has_text="A is better for latency: TP4").wait_for()


def test_stop_ends_the_work_and_the_next_message_is_answered(page: Page, served: Server) -> None:
    page.say("DeepSeek-V3 on 512 H100, 4096 in, 512 out, 512 users, highest throughput")
    assert until(lambda: served.parts.gates.long.running == 1)
    page.tab.click("#stop")
    page.tab.locator("#say-error", has_text="Stopped.").wait_for()
    assert until(lambda: served.parts.gates.long.running == 0)
    page.planned()


def test_sessions_are_listed_gone_to_and_deleted(page: Page) -> None:
    page.planned().tab.keyboard.press("Tab")
    page.tab.click("#sessions-open")
    page.tab.click("#session-new")
    page.tab.locator(".examples").wait_for()
    page.planned("Llama-3.1-8B on 4 H100", "TP4")
    page.tab.click("#sessions-open")
    page.tab.locator("#session-list button", has_text=SMALL_REQUEST).first.click()
    page.verdict("TP2")
    assert SMALL_REQUEST in page.tab.inner_text("#talk")
    page.tab.click("#sessions-open")
    page.tab.locator("#session-list [aria-current] ~ button").click()
    page.tab.locator(".examples").wait_for()


def test_a_token_comes_in_the_fragment_or_is_asked_for(chromium: Any) -> None:
    with in_thread(Settings(token="a-token-of-a-test-server")) as server:
        shown = Page(chromium, f"{server.url}#token=a-token-of-a-test-server")
        shown.planned()
        assert "token" not in shown.tab.url and shown.noise == []
        opened = Page(chromium, server.url)
        opened.tab.fill("#token-field", "a-token-of-a-test-server")
        opened.tab.press("#token-field", "Enter")
        opened.planned()
