"""Fetches the config of one repository of the Hugging Face Hub into the cache of the Hub's own tools.

One small file (and how it is quantised, where the config does not say it): bounded in bytes and in time, never tried
again, no token in any message or file of ours. The token that the Hub's tools know is sent to the Hub alone.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...tools.catalog.config_file import parse_config
from ...tools.catalog.hub_cache import (
    CONFIG,
    MAX_HUB_CONFIG_BYTES,
    QUANTISATION_FILES,
    repository_folder,
    snapshot_folder,
)
from ...tools.catalog.names import named_format
from ...tools.errors import InputError, ServiceError
from ...tools.input.files import replace_file

if TYPE_CHECKING:
    import httpx2

MAX_SECONDS = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_config(repository: str) -> None:
    """Put the `config.json` of a repository into the local cache.

    Raises:
        InputError: the Hub has no such repository or no config in it, does not show it, or shows one that is too large;
            or the extra `[hub]` is not installed.
        ServiceError: the Hub could not be reached, did not answer in 10 s, or failed.
    """
    ends = time.monotonic() + MAX_SECONDS
    config = _fetched(repository, CONFIG, ends)
    if config is None:
        raise InputError(f"{repository} on the Hugging Face Hub has no {CONFIG}; give --model path/to/config.json")
    files, commit = {CONFIG: config[0]}, config[1]
    if named_format(repository) is not None and b'"quantization_config"' not in config[0]:
        for name in QUANTISATION_FILES:
            stated = _fetched(repository, name, ends)
            if stated is not None:
                files[name] = stated[0]
                break
    for name, data in files.items():
        parse_config(data, f"{name} of {repository} on the Hugging Face Hub")
    _keep(repository, commit, files)


def _keep(repository: str, commit: str, files: Mapping[str, bytes]) -> None:
    """Write what was fetched where the Hub's tools would have put it."""
    folder, references = snapshot_folder(repository, commit), repository_folder(repository) / "refs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        references.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            replace_file(folder / name, data)
        replace_file(references / "main", commit.encode("ascii"))
    except OSError as error:
        raise InputError(f"the Hugging Face cache {folder}: cannot be written: {error.strerror or error}") from None


def _fetched(repository: str, file: str, ends: float) -> tuple[bytes, str] | None:
    """The bytes of a file of the branch `main` and its commit; `None` where the repository has no such file."""
    try:
        import httpx2
        from huggingface_hub import constants, get_session, get_token, hf_hub_url
        from huggingface_hub.errors import OfflineModeIsEnabled
    except ImportError:
        raise InputError("--online needs the extra [hub]: pip install 'shardwright[hub]'") from None
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or None
    # Not the library's own headers: to make those it asks the Hub for more than was asked for.
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    headers = {"user-agent": "shardwright", "accept-encoding": "identity"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    url = hf_hub_url(repository, file, endpoint=endpoint)
    timeout = max(ends - time.monotonic(), 0.1)
    try:
        with get_session().stream("GET", url, headers=headers, follow_redirects=True, timeout=timeout) as response:
            return _read(response, repository, file, ends)
    except OfflineModeIsEnabled:
        raise InputError(f"{repository} is not fetched: HF_HUB_OFFLINE is set") from None
    except httpx2.TimeoutException:
        raise _late(repository) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServiceError(f"the Hugging Face Hub cannot be reached for {repository}: {type(error).__name__}") from None


def _late(repository: str) -> ServiceError:
    return ServiceError(f"the Hugging Face Hub did not send the config of {repository} within {MAX_SECONDS:g} s")


def _read(response: httpx2.Response, repository: str, file: str, ends: float) -> tuple[bytes, str] | None:
    code = response.headers.get("x-error-code")
    if response.status_code == 404 and code == "EntryNotFound":
        return None
    if response.status_code == 403 or code == "GatedRepo":
        raise InputError(
            f"{repository} is gated on the Hugging Face Hub: accept its terms there and set HF_TOKEN, or give --model "
            "path/to/config.json"
        )
    if response.status_code in (401, 404):
        raise InputError(f"{repository} is not on the Hugging Face Hub, or is private and HF_TOKEN does not open it")
    commit = next(
        (hop.headers["x-repo-commit"] for hop in (response, *response.history) if "x-repo-commit" in hop.headers), ""
    )
    if response.status_code != 200 or not _COMMIT.fullmatch(commit):
        raise ServiceError(f"the Hugging Face Hub answered {response.status_code} for {file} of {repository}")
    data = b""
    for part in response.iter_raw():
        data += part
        if len(data) > MAX_HUB_CONFIG_BYTES:
            raise InputError(f"{file} of {repository} is larger than {MAX_HUB_CONFIG_BYTES // 10**6} MB")
        if time.monotonic() > ends:
            raise _late(repository)
    return data, commit
