"""Settings of all tests. No example of a property test fails for being slow on a busy machine.

Tests that try every place of a plan try the first and the last of each kind (`examples.py`); a night tries all.

`HYPOTHESIS_PROFILE=nightly` draws twenty times as many examples as a run without it.

A plain run tries one in n cases of a test marked `one_in(n)`. A plain run of the whole suite tries one case of each
test, and all of those marked `one_in(1)`. The checksums of names decide which; the others are `thorough`.

No test finds a model in the cache of its machine, or asks a network for one.
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

# A plain run draws a twentieth of the examples, the thorough step a quarter, in CI the same each time; a nightly run
# draws all, different ones each night.
settings.register_profile("push", max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("push"), max_examples=25)
settings.register_profile("nightly", settings.get_profile("push"), max_examples=100, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "push"))
os.environ["HF_HUB_CACHE"] = os.devnull
os.environ.pop("SHARDWRIGHT_ONLINE", None)
# Background jobs of a shell ignore interrupts, those of `nohup` hang-ups, and so would all processes that tests
# interrupt.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, and exempt them from it: they live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Plans are many small objects and no garbage: a look at every 700th costs 2% of the time of all tests.
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that a plain run skips: those of each test whose names have the largest checksums."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("thorough"):
            tests[item.nodeid.partition("[")[0]].append(item)
    # With a named file, folder or word more cases are tried.
    is_whole = config.args == config.getini("testpaths") and not config.option.keyword
    for cases in tests.values():
        mark = cases[0].get_closest_marker("one_in")
        share = mark.args[0] if mark else len(cases) if is_whole else 1
        tried = 1 if is_whole and share > 1 else max(1, len(cases) // share)
        cases.sort(key=lambda case: crc32(case.nodeid.encode()))
        for case in cases[tried:]:
            case.add_marker(pytest.mark.thorough)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Print why nothing ran, if all named tests are thorough."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        terminalreporter.write_line("no test ran: what is named is thorough, or left out by -k; -m '' tries all")
