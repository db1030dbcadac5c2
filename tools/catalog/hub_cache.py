"""Models of the Hugging Face Hub by their id (`org/name`), from the cache that its tools keep on this machine.

Only files are read here. Code that may use the network opens `fetching` with a function that puts a repository's
config into that cache; a model that is not there is then looked for once more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from ..errors import InputError, UnknownNameError
from ..input.files import read_bounded
from .config_file import parse_config

MAX_HUB_CONFIG_BYTES = 1_000_000
CONFIG = "config.json"
# Files in which older tools store a checkpoint's quantisation beside its config, each with the method it implies.
QUANTISATION_FILES = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq", "quant_config.json": "awq"}
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
REPOSITORY = rf"{_PART}/{_PART}"
_ID = re.compile(REPOSITORY, re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_fetchers: list[Callable[[str], None]] = []


class UnknownRepositoryError(UnknownNameError):
    """An id of the Hub that neither the catalogue nor the local cache has."""

    def __init__(self, repository: str, nearest: tuple[str, ...]) -> None:
        super().__init__("model", repository, nearest)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        self.args = (
            f"{repository} is not in the catalogue nor in the local Hugging Face cache; --online fetches its "
            f"config.json, or give --model path/to/config.json{hint}",
        )


def is_repository(name: str) -> bool:
    """Whether a name has the form of an id of the Hub: `org/name`."""
    return _ID.fullmatch(name) is not None and "--" not in name and ".." not in name and not name.endswith(".json")


def cache_folder() -> Path:
    """The folder of the cache, as the Hub's own tools find it."""
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if named:
        return Path(os.path.expandvars(named)).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{base}/huggingface"
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def snapshot_folder(repository: str, commit: str) -> Path:
    """The folder of a repository's files at a commit."""
    return repository_folder(repository) / "snapshots" / commit


def repository_folder(repository: str) -> Path:
    """The folder of a model's repository in the cache."""
    return cache_folder() / f"models--{repository.replace('/', '--')}"


@contextmanager
def fetching(fetch: Callable[[str], None]) -> Generator[None]:
    """Within this context `fetch` is called with the id of a model that is not cached, and the cache is read again."""
    _fetchers.append(fetch)
    try:
        yield
    finally:
        _fetchers.remove(fetch)


def hub_config(repository: str) -> Mapping[str, Any] | None:
    """The config of a repository, fetched where that is allowed and needed; `None` if absent.

    Raises InputError: it cannot be read, or what was fetched is no config; ServiceError: the Hub could not be asked.
    """
    config = cached_config(repository)
    if config is None and _fetchers:
        _fetchers[-1](repository)
        config = cached_config(repository)
    return config


def is_cached(repository: str) -> bool:
    """Whether the cache has the config of a repository."""
    folder = _snapshot(repository)
    return folder is not None and (folder / CONFIG).is_file()


def cached_config(repository: str) -> Mapping[str, Any] | None:
    """The config of a repository in the cache, with its quantisation; `None` if absent.

    Raises InputError: it is larger than 1 MB, or no config.
    """
    folder = _snapshot(repository)
    config = None if folder is None else _read(folder / CONFIG, repository)
    if folder is None or config is None or config.get("quantization_config"):
        return config
    for file, method in QUANTISATION_FILES.items():
        stated = _read(folder / file, repository)
        if stated is not None:
            return {**config, "quantization_config": _quantised(stated, method)}
    return config


def _quantised(stated: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The content of an older tool's file as a `quantization_config`."""
    inner: Any = stated.get("quantization", stated)
    fields = {"quant_method": method, **(cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {})}
    return {**fields, "group_size": fields["q_group_size"]} if "q_group_size" in fields else fields


def _read(path: Path, repository: str) -> Mapping[str, Any] | None:
    """The JSON object in a file of the cache; `None` if there is no such file."""
    if not path.is_file():
        return None
    name = f"{path.name} of {repository} in the Hugging Face cache"
    return parse_config(read_bounded(path, MAX_HUB_CONFIG_BYTES, name, is_own=True), name)


def _snapshot(repository: str) -> Path | None:
    """The folder with the files of the branch `main`, or of the only commit that was downloaded."""
    snapshots = repository_folder(repository) / "snapshots"
    try:
        reference = repository_folder(repository) / "refs" / "main"
        if reference.is_file():
            commit = read_bounded(reference, 200, str(reference), is_own=True).decode("ascii", "replace").strip()
            return snapshots / commit if _COMMIT.fullmatch(commit) else None
        commits = [entry for entry in snapshots.iterdir() if _COMMIT.fullmatch(entry.name)]
    except (OSError, InputError):
        return None
    return commits[0] if len(commits) == 1 else None
