"""Chinese is answered in Chinese, with the figures, rules and names of the English answer."""

from __future__ import annotations

import ast
import json
import re
import string
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from shardwright.agent.chat.chat import Chat
from shardwright.agent.languages.of_text import HAN, language_of
from shardwright.agent.languages.say import say, speaking

ROOT = Path(__file__).parents[3]
TABLE: dict[str, str] = json.loads(files("shardwright.agent.languages").joinpath("chinese.json").read_text("utf-8"))
FIRST = "在 2 张 H100 上部署 Llama-3.1-8B，输入 2k，输出 256，TTFT 小于 500 ms"
# What the person says, the kind of the answer, and words in it.
DIALOGUE = (
    ("为什么", "refused", "没有说明模型"),
    ("/why", "refused", "还没有提出要求"),
    ("vllm 的启动命令", "explain", "还没有方案"),
    ("随便部署点什么", "refused", "没有说明模型"),
    (FIRST, "plan", "方案有效"),
    ("换成 4 张 GPU", "plan", "布局"),
    ("换成 4 张 GPU", "ask", "已经是这样了"),
    ("为什么", "why", "为什么选它"),
    ("为什么不用 TP16", "why", "TP16 在这里不合法：需要 16 张 GPU，只有 4 张（GP004）"),
    ("TP16?", "why", "不合法"),
    ("为什么不用 PP", "why", "当前方案是 TP4"),
    ("为什么不用专家并行", "why", "没有专家"),
    ("如果输入是 32k 呢", "what_if", "当前方案不变"),
    ("用这个", "plan", "现在的当前方案"),
    ("有风险吗", "why", "剩余显存"),
    ("什么情况下会改变选择", "why", "换一个目标来规划"),
    ("和 TP2 比较", "compare", "当前方案"),
    ("解释 PP003", "explain", "知识库"),
    ("估算一下", "estimate", "估算"),
    ("检查一下", "validate", "规则检查"),
    ("翻译成法语", "unknown", "没有理解"),
    ("改回 12", "ask", "之前没有任何量是 12"),
    ("撤销", "moved", "重新成为当前方案"),
    ("/redo", "moved", "重新成为当前方案"),
    ("/undo 9", "refused", "退回第一个"),
    ("/foo", "refused", "没有命令"),
    ("/request", "show", "现在的要求"),
    ("/history", "show", "第一个要求"),
    ("/cost", "show", "没有费用"),
    ("/help", "show", "当前方案的完整报告"),
    ("/plan", "show", "英文"),
    ("/diff", "compare", "要求"),
    ("只用 1 张 RTX 4090 跑 Llama-3.1-405B", "plan", "没有可行的方案"),
    ("再见", "quit", "会话已保存"),
)


@cache
def spoken() -> tuple[tuple[str, str, str], ...]:
    """Each text of the dialogue, the kind of its answer and the answer."""
    with Chat() as chat:
        return tuple((said, (answer := chat.say(said)).kind, answer.text) for said, _, _ in DIALOGUE)


@pytest.mark.thorough
@pytest.mark.parametrize("place", range(len(DIALOGUE)), ids=[said for said, _, _ in DIALOGUE])
def test_every_answer_begins_in_chinese(place: int) -> None:
    said, kind, text = spoken()[place]
    _, wanted, words = DIALOGUE[place]
    assert (kind, words in text) == (wanted, True), text[:400]
    assert HAN.search(text.strip().partition("\n")[0]), said


def test_figures_rules_and_names_are_those_of_the_english_answer() -> None:
    pairs = (
        (FIRST, "Llama-3.1-8B on 2 H100, 2k in, 256 out, TTFT under 500 ms"),
        ("为什么不用 TP16", "why not TP16?"),
        ("有风险吗", "is this risky?"),
    )
    with Chat() as chinese, Chat() as english:
        for text, other in pairs:
            first, second = chinese.say(text).text, english.say(other).text
            for pattern in (r"(?<![\w.])\d+\.\d+", r"\b(?:[A-Z]{2}\d{3}|TP\d+)\b"):
                assert sorted(set(re.findall(pattern, first))) == sorted(set(re.findall(pattern, second)))
            assert not HAN.search(second)


def test_a_chat_that_is_taken_up_again_goes_on_in_its_language(tmp_path: Path) -> None:
    with Chat(tmp_path / "session") as chat:
        chat.say(FIRST)
    with Chat(tmp_path / "session") as chat:
        assert "会话已保存" in chat.say("/quit").text


LANGUAGES = {
    "用 8 张 H100 部署": "zh",
    "把 batch size 改成 64": "zh",
    "换成 H200": "zh",
    "what is 流水线气泡?": "en",
    "why not TP16?": "en",
    "now with 16 GPUs": "en",
    "TP16?": None,
    "/undo 2": None,
    "/whatif 输入 32k": "zh",
    "64": None,
    "": None,
}


@pytest.mark.parametrize(("text", "language"), LANGUAGES.items(), ids=[*LANGUAGES])
def test_the_language_is_that_of_the_sentence_else_of_what_was_said_before(text: str, language: str | None) -> None:
    assert language_of(text) == (language or "en")
    assert language_of(text, ["部署一个模型", "TP8"]) == (language or "zh")
    assert language_of(text, ["部署一个模型", "now use fp8"]) == (language or "en")


def test_what_is_said_does_not_outlast_its_turn() -> None:
    with speaking("zh"):
        assert say("Valid plan") == "方案有效"
        assert say("what no table has: {x}", x="{y}") == "what no table has: {y}"
    assert say("Valid plan") == "Valid plan"


def test_every_sentence_has_its_translation_and_every_translation_its_sentence() -> None:
    sentences: set[str] = set()
    every: set[str] = set()  # all texts of the code
    for folder in ("agent", "tools/comparison"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    every.add(node.value)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                    sentences.update(str(part.value) for part in node.args[:1] if isinstance(part, ast.Constant))
    assert sentences and sorted(sentences - TABLE.keys()) == []
    assert sorted(TABLE.keys() - every) == []


def test_a_translation_has_the_places_of_its_sentence() -> None:
    def places(text: str) -> set[tuple[str, str | None, str | None]]:
        return {(name, form, how) for _, name, form, how in string.Formatter().parse(text) if name is not None}

    assert [sentence for sentence, translation in TABLE.items() if places(translation) != places(sentence)] == []
