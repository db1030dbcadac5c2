"""Keeps Python's cyclic garbage collector from walking a large document again and again while it is read and checked.

Reading a plan makes millions of objects that all stay alive, and each full collection visits every one of them for
nothing: left alone, the collector takes more time than the work itself. It touches nothing but that one switch.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Generator[None]:
    """No cyclic collection inside; memory that no circle holds is freed at once all the same.

    The switch is the process's: of two threads that pause at once, the one that began first switches it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
