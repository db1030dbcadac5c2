"""Clients of tools have no shell: what they are told names tools and arguments, and scripts stay as they are."""

from __future__ import annotations

import re

import pytest

from shardwright.agent.mcp.wording import answer_to_client, told_to_client

from .talk import Talk, text_of

# What reports say of the command line, and what clients are told.
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
]
# What is not ours, or no sentence.
KEPT = [
    "vllm bench serve --model Qwen/Qwen3-8B --max-concurrency 4",
    "Not understood: --max-modle-len (did you mean --max-model-len?)",
    "# For shardwright import: {}",
]


@pytest.mark.parametrize(("said", "told"), SENTENCES, ids=[said[:40] for said, _ in SENTENCES])
def test_a_sentence_of_the_command_line_is_told_of_tools(said: str, told: str) -> None:
    assert told_to_client(said) == told
    assert told_to_client(told) == told


@pytest.mark.parametrize("text", KEPT)
def test_options_of_engines_and_scripts_stay(text: str) -> None:
    assert told_to_client(text) == text
    assert answer_to_client({"a": [f"{text}\n--engine vllm", 1, None]}) == {"a": [f"{text}\n--engine vllm", 1, None]}


def test_no_answer_sends_a_client_to_a_shell(talk: Talk) -> None:
    command = "vllm serve Qwen/Qwen3-8B -tp 3"
    found = talk.call("import", source=command, hardware="1x4:l40s")
    plan = found.structured_content["kept"]["answer.plan"]
    texts = [
        text_of(found),
        talk.refused("import", source=command),
        text_of(talk.call("validate", plan=plan)),
        text_of(talk.call("fix", proposal=plan)),
        talk.refused("plan", request="Serve foo/bar-7b on 2 L4"),
    ]
    for text in texts:
        assert not re.search(r"shardwright [a-z]|(?<![\w-])--(?:input|output|hardware|engine|format|rule|relax)", text)
