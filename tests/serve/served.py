"""Servers for tests, in a thread of the test or as a process started by the command, on a real socket."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from msgspec import Struct
from starlette.applications import Starlette

from shardwright.agent.serve.app import make_app
from shardwright.agent.serve.listening import bound_socket, url_of
from shardwright.agent.serve.parts import Parts
from shardwright.agent.serve.server import server_of
from shardwright.agent.serve.settings import Limits, Settings


class Server(Struct):
    """A server that runs in this process."""

    url: str
    parts: Parts
    log: list[str]

    def client(self, **settings: Any) -> httpx2.Client:
        """A client over plain HTTP, which needs no certificates."""
        return httpx2.Client(base_url=self.url, timeout=60, verify=False, **settings)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of its socket."""
        host, port = self.url.removeprefix("http://").rstrip("/").split(":")
        return host, int(port)


@contextmanager
def in_thread(
    settings: Settings | None = None,
    agent: Any = None,
    mounted: Callable[[Parts], Mapping[str, Starlette]] | None = None,
    **limits: Any,
) -> Iterator[Server]:
    """A server in a thread, with `limits` in place of the usual ones."""
    log: list[str] = []
    parts = Parts(settings or Settings(limits=Limits(**limits)), agent, log.append)
    listener = bound_socket("127.0.0.1", 0)
    url = url_of(listener)
    is_up = threading.Event()
    app = make_app(parts, None if mounted is None else mounted(parts))
    server = server_of(app, parts, is_up.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    assert is_up.wait(30)
    try:
        yield Server(url, parts, log)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


class Process(Struct):
    """A server started by the command; `errors` is the file with its standard error."""

    url: str
    process: subprocess.Popen[bytes]
    errors: Path

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def as_process(folder: Path, *flags: str, **environment: str) -> Iterator[Process]:
    """Run `shardwright serve --port 0` with further flags."""
    errors = folder / "stderr.txt"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "shardwright", "serve", "--port", "0", *flags],
            stderr=file,
            env={**os.environ, **environment},
        )
    try:
        yield Process(_url(process, errors), process, errors)
    finally:
        process.kill()
        process.wait()


def _url(process: subprocess.Popen[bytes], errors: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        match = re.search(r"http://\S+", errors.read_text())
        if match:
            return match[0]
        time.sleep(0.05)
    raise AssertionError(errors.read_text())


def events_of(text: str) -> list[tuple[str, Any]]:
    """The events of a stream, each with its decoded data."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "event" in block]


def raw(address: tuple[str, int], *pieces: bytes, pause_s: float = 0.0, wait_s: float = 10.0) -> bytes:
    """The answer to bytes that no client library would send, with pauses between the pieces."""
    with socket.create_connection(address, timeout=wait_s) as stream:
        answer = b""
        try:
            for piece in pieces:
                stream.sendall(piece)
                time.sleep(pause_s)
            while received := stream.recv(1 << 16):
                answer += received
        except (ConnectionError, TimeoutError):
            pass
        return answer


def until(holds: Any, seconds: float = 10.0) -> bool:
    """Whether `holds()` becomes true in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
