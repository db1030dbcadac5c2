"""The honest files that entrances read; hostile ones are made out of them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from shardwright.agent.evaluation.solvers.tape import RecordedOptions, RecordingHeader
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.tools.rules.examples import DENSE

from .certificates import proofs
from .seeds import seed_text

ROOT = Path(__file__).parents[2]
# Files that the command itself writes.
WRITTEN = ("baseline", "eval journal", "sweep journal", "session")
COMMAND = (sys.executable, "-c", "import sys; from shardwright.agent.cli import main; sys.exit(main())")
_LOAD: dict[str, Any] = {"name": "a", "input_tokens": 128, "output_tokens": 16}
_SWEEP = {"models": ["llama-3.1-8b"], "hardware": ["1x1:h100"], "workloads": [_LOAD]}
_REQUEST = "Llama-3.1-8B on 2 H100, 1k/128"
_GEMM = {
    "kernel": "gemm", "variant": "bf16", "framework": "torch", "constants": {"compute_share": 0.5}, "rows": 3,
    "source": "s", "licence": "l", "date": "2026-01-01",
}  # fmt: skip
_MANIFEST = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: b
      image: vllm/vllm-openai:v0.10.0
      command: [vllm, serve, meta-llama/Llama-3.1-8B]
      args: ["--tensor-parallel-size", "2"]
      resources: {limits: {nvidia.com/gpu: "2"}}
"""


@cache
def base(name: str) -> str | bytes:
    """The honest content `name`."""
    cases = ROOT / "tests" / "cases"
    folders: dict[str, Path] = {
        "prose": cases / "briefs" / "prose_mla" / "brief.md",
        "measured": cases / "fidelity_rows.csv",
        "transcript": ROOT / "docs" / "demos" / "dense-careless.json",
    }
    if name in folders:
        path = folders[name] if folders[name].exists() else next(folders[name].parent.glob("*.md"))
        return path.read_bytes().decode() if name != "measured" else b"\n".join(path.read_bytes().splitlines()[:4])
    if name in WRITTEN:
        return _written_by_command(name)
    broken = json.loads(seed_text("dense-tp2"))
    broken["nodes"].pop()
    texts: dict[str, Any] = {
        "plan": json.loads(seed_text("dense-tp2")),
        "broken": broken,
        "certificate": json.loads(proofs()[-1]),
        "config": {**DENSE, "architectures": ["LlamaForCausalLM"], "rope_scaling": {"type": "yarn", "factor": 4.0}},
        "brief": {
            "model": "Llama-3.1-8B",
            "hardware": {"accelerator": "h100-sxm", "gpus": 2},
            "workload": _LOAD,
            "notes": "none",
        },
        "mix": {"workloads": [{**_LOAD, "weight": 1}, {**_LOAD, "name": "b", "weight": 2.5}]},
        "calibration": {"name": "x", "kernels": [{"accelerator": "h100-sxm", "entries": [_GEMM]}]},
        "sweep": _SWEEP,
        "dataset": {"request": _REQUEST, "strategy": "TP2", "id": "a", "tags": ["t"]},
        "script": {
            "about": "x",
            "replies": {"*": ["TP2", {"tool": "look_up", "arguments": {"kind": "model", "name": "Qwen3-8B"}}]},
        },
        "recording": json.loads(_recording().model_dump_json()),
        "bench": json.loads((cases / "bench_outputs.json").read_text("utf-8"))["plain"]["vllm"],
    }
    if name in texts:
        return json.dumps(texts[name])
    return {
        "request": _REQUEST,
        "strategy": "TP2",
        "cluster": "1x1:h100-sxm",
        "card": "h100-sxm",
        "rule": "TP005",
        "turns": f"{_REQUEST}\nwhy not TP4?\nnow with 4 GPUs\n/help\n",
        "words": '{"model": "Llama-3.1-8B", "gpus": "2xH100", "parallel": "TP2", "isl": 2048, "osl": 256,}',
        "command": "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-num-seqs 64",
        "manifest": _MANIFEST,
        "trace": "".join(
            json.dumps({"timestamp": 500 * at, "input_length": 512, "output_length": 32, "hash_ids": [at]}) + "\n"
            for at in range(8)
        ),
        "rates": "00:00,1\n08:00,20\n18:00,4\n",
        "settings": '[endpoint]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
        "request_timeout_s = 1\ntransport_attempts = 1\n",
    }[name]


def _recording() -> RecordingHeader:
    options = RecordedOptions.of(AgentOptions())
    return RecordingHeader(model="m", transport_attempts=1, max_answer_bytes=1 << 20, options=options)


def _written_by_command(name: str) -> bytes:
    """A file that the command itself writes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "cases.json").write_text(str(base("dataset")), "utf-8")
        (place / "sweep.json").write_text(str(base("sweep")), "utf-8")
        calls = {
            "baseline": ("eval", "cases.json", "--jobs", "1", "-o", "out"),
            "eval journal": ("eval", "cases.json", "--jobs", "1", "--journal", "out"),
            "sweep journal": ("sweep", "sweep.json", "--jobs", "1", "-o", "out.csv"),
            "session": ("chat", _REQUEST, "--session", "./out"),
        }
        subprocess.run((*COMMAND, *calls[name]), cwd=place, capture_output=True, input=b"", timeout=120, check=False)
        return (place / ("out.csv.journal" if name == "sweep journal" else "out")).read_bytes()
