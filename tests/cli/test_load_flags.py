"""A rate and percentiles of lengths as options: what they state is planned, searched and estimated for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run

DEPLOYED = ("--model", "llama-3.1-8b", "--hardware", "1x2:h100-sxm")
SPREAD = ("--input-percentiles", "p50=1k,p95=8k")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planned") / "plan.json"
    assert run(["plan", *DEPLOYED, *SPREAD, "--request-rate", "3", "-o", str(path)]) == 0
    return path


def test_a_plan_is_for_the_rate_and_the_spread(planned: Path) -> None:
    workload = json.loads(planned.read_text(encoding="utf-8"))["workload"]
    assert workload["request_rate"] == 3.0
    assert workload["lengths"] == {"input": {"percentiles": [[50.0, 1024], [95.0, 8192]]}}
    assert workload["input_tokens"] > 2 * 1024 and workload["output_tokens"] == 256


def test_a_search_is_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *DEPLOYED, "--request-rate", "2.5", "--output-percentiles", "50=100, p99=1500"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2.5 requests/s at random" in shown and "out p50 100" in shown


@pytest.mark.parametrize(
    ("options", "load"),
    [
        (("--request-rate", "9"), "open loop, 9 requests/s"),
        (("--output-percentiles", "p50=100,p99=2k"), "open loop, 3 requests/s"),
        (("--request-rate", "0.5", "--input-percentiles", "p0=10,p100=20"), "open loop, 0.5 requests/s"),
    ],
)
def test_a_plan_is_estimated_under_another_load(
    planned: Path, options: tuple[str, ...], load: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[dict[str, Any]] = []
    for more in ((), options):
        assert run(["estimate", str(planned), "--format", "json", *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    before, after = found
    assert after["load"]["load"].startswith(load)
    assert after["latency"]["end_to_end_ms"] != before["latency"]["end_to_end_ms"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--input-percentiles", "p50=1k"), "'--input-percentiles'"),
        (("--input-percentiles", "1k"), "percentiles such as p50=1k,p95=8k are expected"),
        (("--input-percentiles", "p50=1.5,p95=3"), "percentiles such as p50=1k,p95=8k are expected"),
        (("--output-percentiles", "p50=9k,p95=1k"), "a higher percentile cannot be shorter"),
        (("--request-rate", "0"), "is not between 1e-06 and 1e+06"),
        ((*SPREAD, "--trace", "requests.csv"), "--trace has its own lengths; leave out --input-percentiles"),
    ],
)
def test_what_is_no_load_is_refused_in_a_line(
    options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("plan", "search"):
        assert run([command, *DEPLOYED, *options]) == 2
        out, err = capsys.readouterr()
        assert out == "" and says in err and err.count("\n") == 1
