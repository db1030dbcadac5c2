"""Makes the demonstrations in docs/demos: runs of a scripted model that plays an engineer, as transcripts.

    python benchmarks/demos.py [--check]

A good engineer, a careless one and a stubborn one each plan a dense model, a mixture of experts, and a deployment on 64
GPUs. What they say is written here; what the tools say of it is not. A transcript that does not replay to the same end
is made anew (or, with --check, makes the exit status 1). A table says what each run took.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.replay import Replay, replay
from shardwright.agent.loop.transcript import Transcript, read_transcript
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.tests.agent.loop.counted import Counted
from shardwright.tools.errors import InputError
from shardwright.tools.plan.describe import describe

FOLDER = Path(__file__).parents[1] / "docs" / "demos"
REQUESTS = {
    "dense": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "moe": "Serve DeepSeek-V3 on 16 H200, 4k in / 1k out, 64 concurrent requests, best throughput",
    "64-gpus": "Serve Llama-3.1-405B on 64 H100, 2k in / 512 out, 256 concurrent requests, best throughput",
}


class Demo(Struct, frozen=True):
    """Who plans what, and all that they say."""

    engineer: str
    request: str
    steps: Sequence[Step]

    @property
    def path(self) -> Path:
        """Where its transcript is."""
        return FOLDER / f"{self.request}-{self.engineer}.json"


def submits(why: str, dp: int, **degrees: int) -> Reply:
    """A strategy with the same degrees in both phases, submitted."""
    strategy = {"dp": dp, "prefill": degrees, "decode": degrees}
    return calls(("submit_dag", {"strategy": strategy, "rationale": why}))


def takes_the_repair(request: ModelRequest) -> Reply:
    """Submits the document that the last answer of a tool offered."""
    answer: dict[str, Any] = json.loads(
        next(message.content for message in reversed(request.messages) if message.role == "tool")
    )
    return calls(("submit_dag", {"handle": answer["repaired_as"], "rationale": "The repaired plan is what I meant."}))


def takes_the_reference(why: str) -> Reply:
    """Submits the built-in plan, which lies on the desk."""
    return calls(("submit_dag", {"handle": "reference", "rationale": why}))


def demos() -> Iterator[Demo]:
    """All demonstrations, in the order of the table."""
    tp8 = submits("TP inside the node reads the weights fastest.", 1, tp=8)
    yield Demo("good", "dense", [tp8])
    yield Demo("careless", "dense", [submits("Six GPUs hold the weights.", 1, tp=6), tp8])
    yield Demo("stubborn", "dense", [submits("Seven ranks leave one GPU for other work.", 1, tp=7)] * 3)
    moe = {"pp": 2, "tp": 8, "ep": 8}
    staged = submits("A stage for each node: experts exchange tokens over NVLink alone.", 1, **moe)
    yield Demo("good", "moe", [staged, takes_the_reference("Eight wide replicas read fewer weights for each token.")])
    built = calls(("submit_dag", {"only_try": True, "strategy": {"dp": 1, "prefill": moe, "decode": moe}}))
    edit = {"op": "remove", "node": "r0.decode.s0.b1.moe.combine"}
    cut = calls(("patch_dag", {"handle": "d1", "edits": [edit]}))
    faulty = calls(("submit_dag", {"handle": "d2"}))
    yield Demo("careless", "moe", [built, cut, faulty, takes_the_reference("What I lost is put back, and is behind.")])
    yield Demo("stubborn", "moe", [says("TP across all GPUs is what everybody does. There is nothing to plan.")] * 5)
    four = submits("Two nodes hold the weights: four replicas fill the cluster.", 4, tp=8, pp=2)
    yield Demo("good", "64-gpus", [four, takes_the_reference("Phases apart keep prompts out of decode steps.")])
    alone = submits("A replica for each node; eight share the load.", 8, tp=8)
    yield Demo("careless", "64-gpus", [alone, takes_the_repair, takes_the_reference("Bubbles cost less than TP16.")])
    yield Demo("stubborn", "64-gpus", [calls(("search_strategies", {"count": 3}))] * 5)


def write_transcript(demo: Demo, path: Path) -> None:
    """Run a demonstration and write its transcript to `path`."""
    model = ScriptedModel(demo.steps, name=f"scripted: the {demo.engineer} engineer")
    options = AgentOptions(mode="tools", transcript=path, reader="rules")
    Agent(Counted(model), options=options).run(REQUESTS[demo.request])
    model.assert_complete()


def replies(transcript: Transcript) -> list[dict[str, Any]]:
    """Every answer of the model, without what it took: tokens of the random boundaries differ."""
    data = [step.data for step in transcript.steps if step.kind == "reply"]
    return [{name: value for name, value in reply.items() if name != "usage"} for reply in data]


def renewed(demo: Demo, *, write: bool) -> tuple[Replay, bool]:
    """The replay of a demonstration as it is today, and whether the shipped transcript differs.

    Boundaries of quoted data are random, so that a transcript is made anew only where it has to be.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        write_transcript(demo, path)
        today = read_transcript(path)
        if demo.path.exists():
            shipped = read_transcript(demo.path)
            replayed = _replayed(shipped)
            if replayed is not None and replayed.same and replies(shipped) == replies(today):
                return replayed, False
        if write:
            shutil.copyfile(path, demo.path)
    return replay(today), True


def _replayed(shipped: Transcript) -> Replay | None:
    """The replay of a transcript; `None` where it was offered tools that no longer exist."""
    try:
        return replay(shipped)
    except InputError:
        return None


def row(demo: Demo, replayed: Replay) -> str:
    """What a run took, on one line."""
    use = replayed.result.report.model_use if replayed.result.report is not None else None
    assert use is not None and replayed.result.plan is not None
    plan = describe(replayed.result.plan.strategy)
    return (
        f"{demo.request:8} {demo.engineer:9} {use.status:22} {use.plan_from:15} {use.proposals:5} {use.turns:6} "
        f"{use.tool_calls:6} {use.input_tokens:9,} {use.output_tokens:7,}  {plan}"
    )


def main() -> int:
    """Renew what is stale and print the table; with --check 1 where anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a transcript is stale")
    check = parser.parse_args().check
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale: list[str] = []
    print(f"{'request':8} {'engineer':9} {'how it ended':22} {'plan from':15} {'prop.':>5} {'turns':>6} {'calls':>6} "
          f"{'tokens in':>9} {'out':>7}  plan")  # fmt: skip
    for demo in demos():
        replayed, is_stale = renewed(demo, write=not check)
        stale += [demo.path.name] if is_stale else []
        print(row(demo, replayed), flush=True)
    if stale:
        print(f"{'stale' if check else 'made anew'}: {', '.join(stale)}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    raise SystemExit(main())
