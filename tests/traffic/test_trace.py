"""Traces: each public format is read, faulty lines are counted with their first place, no content is repeated."""

from __future__ import annotations

import json
import random
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.benchmarks.traces import azure_lines, burstgpt_lines, mooncake_lines
from shardwright.tools.errors import InputError
from shardwright.tools.traffic.counted import Lengths, Windows
from shardwright.tools.traffic.trace import Trace, read_trace, trace_of_text

CASES = Path(__file__).parents[1] / "cases"
REFUSED, READ = (
    json.loads((CASES / f"traces_{name}.json").read_text(encoding="utf-8")) for name in ("refused", "read")
)
SECRET = "the launch code is 0000"


def lines_of(*objects: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in objects)


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_what_is_no_trace_is_refused_in_a_line_that_says_what_and_where(case: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "requests.txt"
    path.write_text(case["text"], encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_trace(path)
    message = str(refused.value)
    assert case["says"] in message and "\n" not in message
    assert message.startswith(str(path))
    assert "secret" not in message and len(message) < 400


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff\xfe\x00junk\n", "line 1: neither JSON"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n\xff\xff,1,2\n", "or no UTF-8 text (first: line 2)"),
        (b"x" * (9 << 20), "line 1: neither JSON"),
        (b'{"a": "' + b"x" * (5 << 20) + b'"}\n', "line 1: neither JSON"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_a_line(text: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "requests.bin"
    path.write_bytes(text)
    with pytest.raises(InputError) as refused:
        read_trace(path)
    assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_each_format_is_told_by_its_content(case: dict[str, Any]) -> None:
    trace = trace_of_text(case["text"])
    assert trace.kind == case["kind"]
    assert [list(pair) for pair in trace.pairs] == case["pairs"] and trace.requests == len(case["pairs"])
    assert trace.left_out == ()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ends_of_lines_and_marks_change_nothing(mark: str, end: str) -> None:
    text = mark + end.join(("", *islice(azure_lines(), 50), "", ""))
    assert trace_of_text(text) == trace_of_text("\n".join(islice(azure_lines(), 50)))


def test_what_is_malformed_is_counted_and_shown_with_its_first_place() -> None:
    lines = list(islice(mooncake_lines(), 30))
    lines[4], lines[9] = "not a request: " + SECRET, '{"input_length": 3, "output_length": 0}'
    trace = trace_of_text("\n".join(lines))
    assert trace.requests == 28
    assert set(trace.left_out) == {("that are no JSON", 1, "line 5"), ("without an answer", 1, "line 10")}
    described = trace.describe()
    assert "1 that are no JSON (first: line 5), 1 without an answer (first: line 10)" in described
    assert "\n" not in described and SECRET not in described


def test_a_description_has_lengths_rate_bursts_and_shared_prefixes() -> None:
    described = trace_of_text("\n".join(mooncake_lines(4000))).describe()
    for part in ("4,000 requests in", "/s at random", "prompts p50", "p99", "answers p50", "of the prompts' blocks"):
        assert part in described
    assert "blocks had come before, counted on as far as they come again in the sample" in described
    assert "1,000 of them in a row sampled with seed 0" in described


def test_a_sample_is_that_of_its_seed_and_size_and_of_all_requests_alike() -> None:
    text = "\n".join(burstgpt_lines(2000))
    once, again, other = (trace_of_text(text, 300, seed) for seed in (1, 1, 2))
    assert once == again and once.pairs != other.pairs
    assert len(once.pairs) == 300 and once.percentiles == other.percentiles
    whole = trace_of_text(text)
    mean = sum(prompt for prompt, _ in whole.pairs) / len(whole.pairs)
    numbered = "Timestamp,Request tokens,Response tokens\n" + "".join(f"{at},{at + 1},1\n" for at in range(4000))
    places = [prompt for prompt, _ in trace_of_text(numbered).pairs]
    assert sum(places) / len(places) == pytest.approx(2000, rel=0.05)
    assert mean == pytest.approx(600, rel=0.25)
    for size in (0, 1001):
        with pytest.raises(InputError, match="from 1 to 1,000"):
            trace_of_text(text, size)
    with pytest.raises(InputError, match="window 'noon': it is busiest or whole"):
        trace_of_text(text, window="noon")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("unit_s", [0.0, 1.0])
def test_burstiness_is_that_of_the_gaps_however_coarse_the_clock(shape: float, unit_s: float) -> None:
    draw, now, windows = random.Random(3), 0.0, Windows()
    for _ in range(20_000):
        now += draw.gammavariate(shape, 0.5 / shape)
        windows.add(now if unit_s == 0.0 else now // unit_s * unit_s)
    burstiness = windows.burstiness()
    # Over windows of some requests even arrivals look a little less even than they are.
    assert burstiness == pytest.approx(shape, rel=0.12 if shape <= 1.0 else 0.6)


def test_a_day_that_rises_and_falls_is_no_burst() -> None:
    draw, windows = random.Random(4), Windows()
    now = 0.0
    while now < 86_400.0:
        now += draw.expovariate(0.2 if (now // 21_600) % 2 else 1.0)
        windows.add(now)
    assert windows.burstiness() == pytest.approx(1.0, rel=0.15)


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=60))
def test_any_times_are_counted(times: list[float]) -> None:
    windows = Windows()
    for at_s in times:
        windows.add(at_s)
    assert windows.requests == len(times) and windows.span_s >= 0.0
    assert windows.burstiness() is None or len(times) > 100


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=100), st.floats(0.01, 1.0))
def test_percentiles_are_right_to_three_digits(tokens: list[int], share: float) -> None:
    lengths = Lengths()
    for length in tokens:
        lengths.add(length)
    exact = sorted(tokens)[max(0, -int(-share * len(tokens) // 1) - 1)]
    assert lengths.percentile(share) == pytest.approx(exact, rel=0.006)


@given(st.text(max_size=300))
def test_any_text_is_a_trace_or_a_line(text: str) -> None:
    try:
        trace = trace_of_text(text)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(trace, Trace)


@pytest.mark.thorough
def test_a_hundred_thousand_lines_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in burstgpt_lines(100_000))
    tracemalloc.start()
    trace = read_trace(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.requests > 97_000
    assert most < 12 << 20 < 4 * path.stat().st_size


def test_times_out_of_their_order_tell_no_rate() -> None:
    times = [*range(300)]
    random.Random(1).shuffle(times)
    text = lines_of(*({"timestamp": 1e3 * at, "input_length": 5, "output_length": 5} for at in times))
    trace = trace_of_text(text)
    assert trace.rate_per_s is None and "without times that tell a rate" in trace.describe()
