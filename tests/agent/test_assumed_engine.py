"""A plan without a named engine starts on the one that it is timed as; on paper every legal plan is considered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.agent.cli.asking import said_of_options
from shardwright.agent.pipeline import plan
from shardwright.agent.planning.proposer import examine
from shardwright.agent.report.plan import render_plan
from shardwright.agent.stated.arguments import said_of_arguments
from shardwright.agent.stated.request import intent_of
from shardwright.tools.engines.names import ENGINES, JUDGED, KNOWN, known_engine
from shardwright.tools.errors import InputError
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import ModelBlock, ServingBlock
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.validate import validate

# On paper the best plan of each breaks a rule of vLLM: sequence ranks, or another FFN or stages, in one phase.
ASKED = (
    "Llama-3.1-70B on 4 H100, 32k in, 256 out, lowest latency",
    "Qwen3-30B-A3B on 4 H100, 16k in, 256 out, 8 users, lowest latency",
    "Llama-3.1-8B on 4 A10G, 16k in, 128 out, 4 users, best throughput",
    "gpt-oss-20b on 3 L40S, 9k in, 128 out, 16 users, best throughput",
)


def refused_by_the_assumed(text: str) -> tuple[SearchRequest, set[str]]:
    """The request, and the rules on vLLM that its candidates would break if they named vLLM."""
    intent = intent_of(text)
    examined = examine(intent)
    assert examined.request is not None and examined.result is not None
    rules: set[str] = set()
    for candidate in examined.result.candidates:
        build = BuildRequest(
            model=ModelBlock(name=intent.model.name, config=intent.model.config),
            hardware=examined.request.hardware,
            workload=examined.request.workload.model_copy(update={"concurrency": candidate.concurrency}),
            precision=candidate.precision or examined.request.precision,
            strategy=candidate.strategy,
            policy=examined.request.policy,
            serving=ServingBlock(engine="vllm"),
        )
        rules |= {fault.rule for fault in validate(build_plan(build)).violations if fault.severity == "error"}
    return examined.request, {rule for rule in rules if rule.startswith("EN")}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", ASKED)
def test_nothing_is_proposed_that_the_assumed_engine_cannot_start(text: str) -> None:
    request, rules = refused_by_the_assumed(text)
    assert (request.assumed_engine, request.serving) == ("vllm", None)
    assert rules == set()


def test_a_legal_strategy_that_the_assumed_engine_does_not_start_is_told_so_where_its_verdict_stands() -> None:
    request = "Llama-3.1-8B on 4 H100, TP4, FFN TP2, 512 in, 16 out"
    verdict = render_plan(plan(request), width=1000).split("\n\n")[0]
    assert (
        "It keeps the rules as it stands, and is not the plan: no strategy on this hardware that vLLM starts" in verdict
    )
    assert "It is valid as it stands." in render_plan(plan(f"{request}, plan on paper"), width=1000).split("\n\n")[0]


@pytest.mark.thorough
def test_a_plan_on_paper_is_free_of_what_engines_start() -> None:
    """Otherwise the test above could pass because the rules never fire."""
    request, rules = refused_by_the_assumed(f"{ASKED[0]}, no engine")
    assert request.space.engine is None
    assert "EN010" in rules


def test_the_assumption_is_listed_and_brings_no_relaxation() -> None:
    intent = intent_of(ASKED[0])
    (assumed,) = (assumption for assumption in intent.assumptions if assumption.field == "engine")
    assert (assumed.value, assumed.reason) == (
        "vllm",
        "no engine was named: timed as vLLM, and only what vLLM starts is proposed",
    )
    assert intent.relaxations == () and intent.serving is None


@pytest.mark.parametrize(
    "words",
    ["no engine", "without an engine", "without any serving engine", "on paper", "engine: none", "不考虑引擎"],
)
def test_a_plan_on_paper_is_asked_for_in_words(words: str) -> None:
    intent = intent_of(f"Llama-3.1-70B on 4 H100, {words}, 2k in, 256 out")
    assert intent.assumed_engine is None and intent.serving is None and intent.relaxations == ()
    assert not [assumption for assumption in intent.assumptions if assumption.field == "engine"]
    assert intent.words["engine"] in words


@pytest.mark.parametrize(
    "words", ["no engine preference", "no engine is chosen yet", "no engine was named", "no overhead", "not on paper"]
)
def test_an_engine_that_is_not_chosen_yet_is_no_plan_on_paper(words: str) -> None:
    assert intent_of(f"Llama-3.1-70B on 4 H100, {words}, 2k in, 256 out").assumed_engine == "vllm"


@pytest.mark.parametrize(
    ("said", "named", "assumed"),
    [
        ("none", (None, None), None),
        ("vllm", ("vllm", None), None),
        ("sglang==0.5.6", ("sglang", "0.5.6"), None),
        *((name, (name, None), "vllm") for name in KNOWN if name not in JUDGED),
    ],
)
def test_an_option_and_an_argument_say_the_same(
    said: str, named: tuple[str | None, str | None], assumed: str | None
) -> None:
    for flags in (said_of_options({"engine": said}), said_of_arguments(None, None, None, {"engine": said})):
        intent = intent_of("Llama-3.1-70B on 4 H100, 2k in, 256 out", flags=flags)
        serving = intent.serving or ServingBlock()
        assert (serving.engine, serving.engine_version) == named
        assert intent.assumed_engine == assumed


def test_an_engine_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match=f"'tgi' is none of {', '.join(KNOWN)}, none"):
        said_of_options({"engine": "tgi"})


def test_a_named_engine_is_never_replaced_by_the_assumed_one() -> None:
    request = examine(intent_of("Llama-3.1-8B on 2 H100, SGLang, 1k in, 64 out")).request
    assert request is not None
    assert request.space.engine == "sglang"
    assert replace(request, assumed_engine="vllm").space.engine == "sglang"


@pytest.mark.parametrize("name", KNOWN)
def test_words_and_the_option_name_the_same_engines(name: str) -> None:
    title = ENGINES[name].title if name in ENGINES else name
    for words in (f"engine: {name}", f"using {title}", f"with {title} 1.2.0"):
        intent = intent_of(f"Llama-3.1-70B on 4 H100, {words}, 2k in, 256 out")
        assert intent.serving is not None and known_engine(intent.serving.engine) == name and not intent.unread


@pytest.mark.parametrize("words", ["with TGI", "engine: TGI", "using llama.cpp", "inference engine: Foo"])
def test_an_engine_that_is_not_known_is_said_to_change_nothing(words: str) -> None:
    (unread,) = intent_of(f"Llama-3.1-70B on 4 H100, {words}, 2k in, 256 out").unread
    assert "not an engine that is known" in unread
    assert not intent_of("Llama-3.1-70B on 4 H100, from TGI to vLLM, 2k in, 256 out").unread
