"""An export as data: the script and its commands, or why the engine cannot run the plan, and the nearest it can."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer

from ..frozen import Frozen, Sparse
from ..plan.performance import Benchmark

EngineTarget = Literal["vllm", "sglang", "trtllm"]
TargetName = Literal[
    "vllm", "sglang", "trtllm", "kubernetes", "docker-compose", "slurm", "dynamo", "ray", "llm-d", "chakra"
]
Role = Literal["both", "prefill", "decode"]


class Launch(Frozen):
    """One process to start on one node; `$NAME` in environment and arguments are variables of the script."""

    node: str
    server: int
    role: Role
    environment: dict[str, str]
    arguments: tuple[str, ...]


class ConfigFile(Frozen):
    """A file that the commands read; `$NAME` in it are variables of the script."""

    name: str
    text: str


class FolderFile(Frozen):
    """A file of a folder, `name` being its path in it; in JSON its bytes are in base64."""

    name: str
    data: Annotated[bytes, PlainSerializer(lambda data: b64encode(data).decode(), when_used="json")]


class Export(Sparse):
    """What runs a plan on an engine of one tested version; `refused` says why it cannot, and then nothing is to run.

    `text` is the whole script or manifest. Of `chakra`, no engine but a format, `folder` has the files instead.
    `by_itself` is what the engine decides without being told, and `remarks` what a person has to see to. `benchmark` is
    the check: the command to run against the servers, and what it should print. `nearest` is the nearest plan that the
    engine can run, where there is one.
    """

    target: TargetName
    engine: str
    engine_version: str
    content_hash: str
    strategy: str
    refused: tuple[str, ...] = ()
    nearest: str | None = None
    nearest_plan: dict[str, Any] | None = None
    text: str | None = None
    folder: tuple[FolderFile, ...] = ()
    launches: tuple[Launch, ...] = ()
    files: tuple[ConfigFile, ...] = ()
    by_itself: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    benchmark: Benchmark | None = None

    @property
    def exit_status(self) -> int:
        """0 where there is something to run, 1 where the engine cannot run the plan."""
        return 1 if self.refused else 0
