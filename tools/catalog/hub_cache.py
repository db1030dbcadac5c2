"""Models of the Hugging Face Hub by their id (`org/name`), from the cache that its tools keep on this machine.

Only files are read here. Who may use the network opens `fetching` with something that puts a repository's config into
that cache; a model that is not there is then looked for once more.
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
from .config_fields import parse_config

MAX_HUB_CONFIG_BYTES = 1_000_000
CONFIG = "config.json"
# Where older tools keep how a checkpoint is quantised, beside a config that does not say it, and whose form it is.
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
    """Where the files of a repository at a commit lie."""
    return repository_folder(repository) / "snapshots" / commit


def repository_folder(repository: str) -> Path:
    """Where the cache keeps a repository of a model."""
    return cache_folder() / f"models--{repository.replace('/', '--')}"


@contextmanager
def fetching(fetch: Callable[[str], None]) -> Generator[None]:
    """Inside, a model that is not in the cache is looked for again after `fetch` was called with its id."""
    _fetchers.append(fetch)
    try:
        yield
    finally:
        _fetchers.remove(fetch)


def hub_config(repository: str) -> Mapping[str, Any] | None:
    """The config of a repository, fetched where that is allowed and needed; `None` where it is not there.

    Raises InputError: it cannot be read, or what was fetched is no config; ServiceError: the Hub could not be asked.
    """
    found = cached_config(repository)
    if found is None and _fetchers:
        _fetchers[-1](repository)
        found = cached_config(repository)
    return found


def is_cached(repository: str) -> bool:
    """Whether the cache has the config of a repository."""
    folder = _snapshot(repository)
    return folder is not None and (folder / CONFIG).is_file()


def cached_config(repository: str) -> Mapping[str, Any] | None:
    """The config of a repository in the cache, with how it is quantised; `None` where it is not there.

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
    """What a file of an older tool states, in the words of a `quantization_config`."""
    inner: Any = stated.get("quantization", stated)
    said = {"quant_method": method, **(cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {})}
    return {**said, "group_size": said["q_group_size"]} if "q_group_size" in said else said


def _read(path: Path, repository: str) -> Mapping[str, Any] | None:
    """The JSON object in a file of the cache; `None` where the file is not there."""
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
