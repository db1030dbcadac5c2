"""A local Hugging Face Hub that answers the paths that the Hub's tools ask for, as the Hub does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from msgspec import Struct, field

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# The Hub's answer for repositories that it does not show: HTTP status and its own error code.
REFUSALS = {
    "acme/Gated-7B": (403, "GatedRepo"),
    "acme/Terms-7B": (401, "GatedRepo"),
    "acme/Private-7B": (401, "RepoNotFound"),
    "acme/Broken-7B": (503, ""),
}


class Hub(Struct):
    """Files by `org/name/file`, and the requests `asked`: method, path and authorization header."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)

    def put(self, repository: str, file: str, value: Any) -> None:
        """Publish a JSON file."""
        self.files[f"{repository}/{file}"] = json.dumps(value).encode()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("authorization")))
            organisation, name, _, _, file = self.path.strip("/").split("/", 4)
            repository = f"{organisation}/{name}"
            data = hub.files.get(f"{repository}/{file}")
            if repository in REFUSALS:
                return self._send(*REFUSALS[repository])
            if repository == "acme/Moved-7B":
                return self._send(307, "", location=self.path.replace("Moved", "Plain"))
            if data is None:
                known = any(published.startswith(f"{repository}/") for published in hub.files)
                return self._send(404, "EntryNotFound" if known else "RepoNotFound")
            self._send(200, "", length=len(data))
            if with_body and name.startswith("Slow"):
                for byte in data:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.05)
            elif with_body:
                self.wfile.write(data)
            return None

        def _send(self, status: int, code: str, *, length: int = 0, location: str = "") -> None:
            self.send_response(status)
            for header, value in {
                "X-Repo-Commit": COMMIT,
                "ETag": '"abc"',
                "X-Error-Code": code,
                "Location": location,
                "Content-Length": str(length),
            }.items():
                if value:
                    self.send_header(header, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def hub_running() -> Iterator[Hub]:
    """Run a Hub inside the `with`."""
    hub = Hub("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
