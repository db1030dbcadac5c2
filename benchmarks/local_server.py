"""Plans with a language model behind a real server on this machine: a tiny random model that says nothing but noise.

    python benchmarks/local_server.py /path/to/python [--context 32768] [--seconds 60]

The python that is named has `llama-cpp-python[server]` and `gguf`. The model is made in a temporary folder; nothing is
downloaded. Each mode is asked, with the server's usual chat format and with the one that calls tools; then the commands
`plan --proposer llm` and `doctor`. A model that answers noise must end well: a status of the list, a valid plan, in
time. The exit status is 1 where one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.loop.outcome import Status
from shardwright.agent.loop.transcript import read_transcript
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import ModelRequest, Reply, Usage
from shardwright.agent.model.settings import EndpointSettings
from shardwright.tools.validate import validate

REQUEST = "Serve Llama-3.1-8B on 2 H100, 2k in / 256 out, lowest latency"
# What a run may take beyond its limit: planning by the built-in proposer before the clock starts, and one judgement.
SLACK_S = 15.0
FORMATS = {"usual": (), "tools": ("--chat_format", "chatml-function-calling")}
MODES = {"usual": ("auto", "schema", "text", "grammar"), "tools": ("tools", "text")}
_RUN = "from shardwright.agent.cli.app import run; raise SystemExit(run())"


@contextmanager
def server(python: str, model: Path, context: int, options: Sequence[str]) -> Iterator[str]:
    """Start a server of `model` and yield its base URL.

    Raises:
        SystemExit: it does not answer within a minute.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    basics = ["--model", str(model), "--n_ctx", str(context), "--host", "127.0.0.1", "--port", str(port)]
    log = model.with_suffix(f".{port}.log")
    with log.open("wb") as out:
        running = subprocess.Popen(
            [python, "-m", "llama_cpp.server", *basics, "--n_threads", "1", *options], stdout=out, stderr=out
        )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(120):
            time.sleep(0.5)
            if running.poll() is not None or answers(url):
                break
        else:
            running.kill()
        if running.poll() is not None:
            raise SystemExit(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
        yield url
    finally:
        # It reads a prompt to the end before it hears of anything else.
        running.kill()
        running.wait()


def answers(url: str) -> bool:
    """Whether the server lists its models."""
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


class GrammarClient:
    """The server asked in its own dialect: every answer follows a grammar that it makes of the schema.

    An own client of a few lines for this one server; noise that keeps to a schema is what is looked for.
    """

    name = "tiny-random under a grammar"

    def __init__(self, url: str) -> None:
        self._url, self._asked = url, 0

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The server's answer.

        Raises:
            EndpointError: none came in time.
        """
        self._asked += 1
        assert request.answer is not None
        body = {
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "max_tokens": request.max_output_tokens,
            "temperature": 1.0,
            "seed": self._asked,
            "response_format": {"type": "json_object", "schema": request.answer.json_schema},
        }
        data, kind = json.dumps(body).encode(), {"content-type": "application/json"}
        posted = urllib.request.Request(f"{self._url}/chat/completions", data, kind)
        try:
            with urllib.request.urlopen(posted, timeout=max(0.1, deadline.left_s())) as answer:
                reply = json.load(answer)
        except OSError as error:
            raise EndpointError("timeout", str(error), 1) from None
        choice, usage = reply["choices"][0], reply["usage"]
        return Reply(
            text=choice["message"]["content"],
            finish=choice["finish_reason"],
            usage=Usage(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]),
        )


def ask(url: str, mode: str, seconds: float, transcript: Path) -> Iterator[str]:
    """Plan in `mode`, print how it ended, and say what did not end well."""
    client = EndpointClient(EndpointSettings(base_url=url, model="tiny-random"))
    options = AgentOptions(
        limits=Limits(corrections=3, tool_calls=12, seconds=seconds),
        mode="schema" if mode == "grammar" else mode,
        knowledge_tokens=0,
        max_output_tokens=512,
        transcript=transcript,
    )
    started = time.monotonic()
    result = Agent(GrammarClient(url) if mode == "grammar" else client, options=options).run(REQUEST)
    took_s = time.monotonic() - started
    use = result.report.model_use if result.report is not None else None
    assert use is not None
    valid = result.plan is not None and validate(result.plan.model_dump(mode="json")).valid
    print(f"  {mode:7} {use.status:18} plan from {use.plan_from:15} {'valid' if valid else 'NOT VALID':9} "
          f"{use.turns} turns, {use.proposals} proposals, {use.tool_calls} calls, {use.requests} requests, "
          f"{use.input_tokens:,} + {use.output_tokens:,} tokens, {took_s:.1f} s")  # fmt: skip
    for line in seen(transcript):
        print(f"          {line}")
    if use.status not in get_args(Status):
        yield f"{mode}: status {use.status!r}"
    if not valid:
        yield f"{mode}: no valid plan"
    if took_s > seconds + SLACK_S:
        yield f"{mode}: {took_s:.0f} s"


def seen(path: Path) -> Iterator[str]:
    """Counts of what the model's answers were."""
    transcript = read_transcript(path)
    ended: Counter[str] = Counter()
    for step in transcript.steps:
        if step.kind == "reply":
            ended[f"ended by {step.data['finish']}"] += 1
            ended["broke the schema that was asked for"] += bool(step.data.get("schema_faults"))
            ended.update(f"called {call['name'][:40]!r}" for call in step.data.get("tool_calls", ()))
        elif step.kind == "fault":
            ended[f"fault {step.data['kind']}: {step.data['message'][:100]}"] += 1
        elif step.kind == "judgement":
            ended[f"judged {step.data['verdict']} {', '.join(step.data['rules'][:4])}".rstrip()] += 1
    yield from (f"{count} × {what}" for what, count in ended.items() if count)


def command(url: str, *arguments: str) -> int:
    """Run the command against `url`, print the end of what it says, and give its exit status."""
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "SHARDWRIGHT_LLM_MODEL": "tiny"}
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments], env=environment, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip
    print(f"  shardwright {' '.join(arguments)}: exit {done.returncode}, {time.monotonic() - started:.1f} s")
    lines = done.stdout.splitlines()
    start = next((at for at, line in enumerate(lines) if line == "Language model"), 0)
    print("\n".join(f"          {line}" for line in (*lines[start : start + 16], *done.stderr.splitlines()[-3:])))
    return done.returncode


def main() -> int:
    """Print how each mode ended; 1 where one did not end well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", help="an interpreter that has llama-cpp-python[server] and gguf")
    parser.add_argument("--context", type=int, default=32_768, help="tokens that the model reads")
    parser.add_argument("--seconds", type=float, default=60.0, help="the limit of a run")
    arguments = parser.parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        maker = Path(__file__).with_name("tiny_model.py")
        subprocess.run([arguments.python, str(maker), str(model), "--context", str(arguments.context)], check=True)
        for name, options in FORMATS.items():
            print(f"chat format: {name}", flush=True)
            with server(arguments.python, model, arguments.context, options) as url:
                for mode in MODES[name]:
                    wrong += ask(url, mode, arguments.seconds, Path(folder) / f"{name}-{mode}.json")
                if command(url, "doctor", "--seconds", str(arguments.seconds)) not in (0, 1):
                    wrong.append(f"{name}: doctor calls a server that answers down")
                plan = ("plan", REQUEST, "--proposer", "llm", "--max-seconds", str(arguments.seconds))
                # 3 where the server refuses the question: the built-in proposer's plan is printed all the same.
                if name == "usual" and command(url, *plan) not in (0, 3):
                    wrong.append(f"{name}: plan --proposer llm gave no plan")
    print("\n".join(wrong) or "all ended well")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
