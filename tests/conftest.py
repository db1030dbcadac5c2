"""Property tests look for faults, not for seconds: no example fails for being slow on a busy machine.

Tests that try every place of a plan try the first and the last of each kind (`examples.py`); a night tries all.

`HYPOTHESIS_PROFILE=nightly` draws twenty times as many examples as a run without it.

Of a test marked `one_in(n)` a plain run tries one case in n. A plain run of the whole suite tries one case of each, and
all of those marked `one_in(1)`. Which ones follows from their names, and the rest are `thorough`.

No test finds a model in the cache of the machine that it runs on, or asks a network for one.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Generator
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# A plain run draws a twentieth of the examples, the thorough step a quarter, in CI the same each time; a night draws
# all, and others than the night before.
settings.register_profile("push", max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("push"), max_examples=25)
settings.register_profile("nightly", settings.get_profile("push"), max_examples=100, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "push"))
os.environ["HF_HUB_CACHE"] = os.devnull
os.environ.pop("SHARDWRIGHT_ONLINE", None)
# A shell has what it starts in the background ignore interrupts, `nohup` hang-ups, and so would all processes that
# tests interrupt.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look through what was collected again: it lives to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Plans are many small objects and no garbage: looking at every 700th costs 2% of the time of all tests.
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that a plain run leaves out: of each test, those whose names come last by their checksums."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("thorough"):
            tests[item.nodeid.partition("[")[0]].append(item)
    # Who names a file, a folder or a word works on it.
    is_whole = config.args == config.getini("testpaths") and not config.option.keyword
    for cases in tests.values():
        mark = cases[0].get_closest_marker("one_in")
        share = mark.args[0] if mark else len(cases) if is_whole else 1
        tried = 1 if is_whole and share > 1 else max(1, len(cases) // share)
        cases.sort(key=lambda case: crc32(case.nodeid.encode()))
        for case in cases[tried:]:
            case.add_marker(pytest.mark.thorough)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Say why nothing ran, where all that was named is thorough."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        terminalreporter.write_line("no test ran: what is named is thorough, or left out by -k; -m '' tries all")
