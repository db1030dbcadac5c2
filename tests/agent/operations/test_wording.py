"""Clients of tools have no shell: texts for them name tools and arguments, and scripts stay as they are."""

from __future__ import annotations

import pytest

from shardwright.agent.mcp.tools import MCP
from shardwright.agent.operations.wording import HTTP, answer_to_client, report_to_client, told_to_client
from shardwright.tools.plan.describe import SAY_APART, SAY_TOGETHER

# Sentences of reports that name the command line, and their wording for clients.
SENTENCES = [
    ("why: shardwright explain TP005", "why: the tool explain TP005"),
    ("name one (`shardwright models` lists them)", "name one (`the tool models` lists them)"),
    ("state yours by --input-tokens, --concurrency", "state yours by input_tokens, concurrency"),
    ("with all of it (--engine vllm --rules engine)", "with all of it (engine: vllm rules: engine)"),
    ("(--relax attention_dp)", "(relaxations: attention_dp)"),
    ("the block says: run with --keep-strategy", "the block says: call fix with keep_strategy"),
    ("not asked for: run without --safe-only and --rule", "not asked for: call fix without safe_only and rules"),
    ("and 3 more\n(--format json\nhas all)", "and 3 more\n(whole: true gives all)"),
    (
        "not in the cache; --online fetches its config.json, or give --model path/to/config.json",
        "not in the cache; a server that may use the network (--online) fetches its config.json, or give the object of "
        "its config.json as model",
    ),
    ("write it as `shardwright schema` says", "write it as the schema of plan documents says"),
    (f"and is simpler ({SAY_TOGETHER}, for it)", "and is simpler (disaggregated: false, for it)"),
    (f"the plan ({SAY_APART},\nfor it)", "the plan (disaggregated: true,\nfor it)"),
]
# Texts that are not ours, or no sentences.
KEPT = [
    "vllm bench serve --model Qwen/Qwen3-8B --max-concurrency 4",
    "Not understood: --max-modle-len (did you mean --max-model-len?)",
    "# For shardwright import: {}",
]


@pytest.mark.parametrize(("said", "told"), SENTENCES, ids=[said[:40] for said, _ in SENTENCES])
def test_a_sentence_of_the_command_line_is_told_of_tools(said: str, told: str) -> None:
    assert told_to_client(said, MCP) == told
    assert told_to_client(told, MCP) == told


@pytest.mark.parametrize("text", KEPT)
def test_options_of_engines_and_scripts_stay(text: str) -> None:
    assert told_to_client(text, MCP) == text
    assert answer_to_client({"a": [f"{text}\n--engine vllm", 1, None]}, MCP) == {
        "a": [f"{text}\n--engine vllm", 1, None]
    }


def test_each_kind_of_client_has_its_own_word_for_an_operation() -> None:
    assert told_to_client("why: shardwright explain TP005", HTTP) == "why: the operation explain TP005"
    assert told_to_client("and 3 more (--format json has all)", HTTP) == "and 3 more (the answer gives all)"


def test_a_report_that_is_a_part_of_the_answer_is_a_document() -> None:
    script = "shardwright plan --engine vllm"
    assert report_to_client(script, {"script": script}, HTTP) == script
    assert report_to_client(script, {"script": ""}, HTTP) == "the operation plan engine: vllm"
