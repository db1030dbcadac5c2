"""The file of a model's config that words name by its path: `config.json`, `./models/ours`.

Only the path is read here; whoever completes the request opens it, as any other that is named as the model.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...input.files import is_there
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import MODEL, Page

# A file, or a folder, as a path names it.
_PATH = Gated(r"(?<![\w./~\-])(?:[\w.~\-]*/)+[\w.\-]+|(?<![\w./~\-])[\w.\-]+\.json(?![\w/])", re.ASCII)


def take_model_file(page: Page, folder: Path = Path()) -> str | None:
    """Take the path of a model's config, or of its folder, off the page; returns the file, relative to `folder`.

    Where files may not be used (`without_files`) or none is there, the path is left as words.
    """
    for match in page.search(_PATH):
        words = match[0].rstrip(".")
        path = folder / os.path.expanduser(words)  # noqa: PTH111 - of an unknown user it leaves the words alone
        file = path if words.endswith(".json") else path / "config.json"
        if is_there(file):
            page.take(match.start(), match.start() + len(words), mark=MODEL)
            return str(file)
    return None


def claim_model_file(claims: Claims, file: str | None) -> None:
    """Claim the file that was taken as the model where nothing else names one."""
    if claims.has("model"):
        if file is not None:
            claims.leave_unread(f"{file!r} was not opened: the model is named as {claims.words['model']!r}")
    elif file is not None:
        claims.claim("model", file, file)


def claim_missing_file(page: Page, claims: Claims) -> None:
    """Where nothing names a model, claim a missing file as the model, so that opening it reports the error."""
    missing = (match[0] for match in page.search(_PATH) if match[0].endswith(".json"))
    if not claims.has("model") and (named := next(missing, None)) is not None:
        claims.claim("model", named, named)
