"""Content dropped or pasted on the page goes where it belongs, and is never run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .browsing import Page

pytestmark = pytest.mark.thorough

COMMAND = "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 1 --max-num-seqs 8"
BRIEF = "# Deployment\n\n- Model: Llama-3.1-8B\n- Hardware: 2 x H100\n- Input: 512 tokens\n- Output: 64 tokens\n"
CONFIG = {
    "model_type": "llama", "_name_or_path": "mine/small", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32000,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def test_a_plan_is_checked_estimated_and_shown(page: Page, plan: dict[str, Any]) -> None:
    page.drop("plan.json", {"plan": plan})
    page.verdict("Valid plan")
    assert "TTFT" in page.tab.inner_text("#head")
    page.picture().locator("#tree .box").first.wait_for()


def test_texts_of_one_brief_are_planned_together(page: Page) -> None:
    page.drop_all(
        {"model.md": "Model: Llama-3.1-8B\n", "load.md": "Hardware: 2 x H100\nInput: 512 tokens\nOutput: 64 tokens\n"}
    )
    page.verdict("TP2 · meta-llama/Llama-3.1-8B · 1 × 2 h100-sxm")


def test_a_brief_is_planned(page: Page) -> None:
    page.drop("brief.md", BRIEF)
    page.verdict("TP2 · meta-llama/Llama-3.1-8B · 1 × 2 h100-sxm")
    page.open("request").get_by_label("Input tokens").fill("256")
    page.tab.keyboard.press("Enter")
    page.tab.locator("#head", has_text="256 tokens in, 64 out").wait_for()


def test_a_config_is_the_model_of_the_next_request(page: Page) -> None:
    page.drop("config.json", CONFIG)
    page.tab.locator("#waiting", has_text="mine/small").wait_for()
    page.say("on 2 H100, 512 in, 64 out, lowest latency")
    page.verdict("mine/small · 1 × 2 h100-sxm")


def test_a_command_is_read_as_a_plan_and_compared_with_the_one_that_is_shown(page: Page) -> None:
    page.planned().drop("start.sh", COMMAND)
    sheet = page.tab.locator("#sheet-compare")
    sheet.locator(".compared", has_text="B: one device").wait_for()
    sheet.get_by_role("button", name="Show the other one instead").click()
    page.verdict("one device")


def test_a_command_alone_is_shown_once_its_hardware_is_said(page: Page) -> None:
    page.drop("start.sh", COMMAND)
    page.tab.locator("#say-error", has_text="hardware").wait_for()
    page.say("1x2:h100-sxm")
    page.verdict("one device · meta-llama/Llama-3.1-8B · 1 × 2 h100-sxm")


def test_a_pasted_plan_does_not_land_in_the_message(page: Page, plan: dict[str, Any]) -> None:
    page.tab.focus("#message")
    page.tab.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          document.getElementById("message").dispatchEvent(
            new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }""",
        json.dumps(plan),
    )
    page.verdict("Valid plan")
    assert page.tab.input_value("#message") == ""


@pytest.mark.parametrize(
    "content", ["{", "[1, 2]", '{"nodes": [], "edges": 3}', "", '{"nodes": [{"id": 3}], "strategy": 5}']
)
def test_what_is_none_of_it_is_one_line(page: Page, content: str) -> None:
    page.drop("odd.json", content)
    page.tab.locator("#say-error:not([hidden]), #head .bad").first.wait_for()


def test_markup_in_names_is_text_everywhere(page: Page, plan: dict[str, Any]) -> None:
    text = json.dumps(plan).replace(plan["model"]["name"], HOSTILE)
    hostile = json.loads(text)
    node = hostile["nodes"][-1]["id"]
    hostile = json.loads(json.dumps(hostile).replace(f'"{node}"', json.dumps(HOSTILE + node)))
    hostile["strategy"]["gpu_count"] = 16
    page.drop(f"{HOSTILE}.json", hostile)
    page.verdict(HOSTILE)
    for sheet in ("picture", "request", "memory", "findings", "export"):
        page.open(sheet)
        page.tab.wait_for_timeout(100)
    page.say(HOSTILE)
    page.tab.locator(".mine", has_text=HOSTILE).wait_for()
    assert page.tab.locator("main img, main script, #head img").count() == 0
    assert page.picture().locator("img").count() == 0
