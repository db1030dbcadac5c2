"""Words that look like the name of a model, of a request in which no model was found."""

from __future__ import annotations

import re

from ..catalog.models import find_model
from ..errors import ShardwrightError
from .gated import Gated

_SIZED_NAME = re.compile(
    r"(?<![\w/.-])[A-Z][A-Za-z]{2,20}(?:[\s-][A-Z0-9][\w.+]{0,12}){0,3}[\s-]\(?\d{1,4}(?:\.\d)?B(?![a-z])\)?"
)
# An id of the Hub without a size: "BAAI/bge-large-en-v1.5", and not "prefill/decode" or "1500/250".
_REPOSITORY = Gated(
    r"(?<![\w./:-])(?P<name>[A-Za-z][\w.-]{1,60}/(?=[A-Za-z.]{0,60}[-\d])[A-Za-z][\w.-]{0,90}\w)(?![\w/])"
)
_ORDER = Gated(r"^(?:serve|run|host|deploy|plan|use|try|put|size|model|want|need|we|can)\s")


def why_no_model(text: str) -> str:
    """Why nothing is planned for a request that names no known model: which words look like one, if any do."""
    if (repository := _REPOSITORY.search(text)) is not None:
        return _of_repository(repository["name"])
    if (sized := _SIZED_NAME.search(text)) is not None:
        name = _ORDER.sub("", sized.group()).strip()
        return f"unknown model {name!r}; name another, or give its config.json"
    return "the request names no model; name one (`shardwright models` lists them)"


def _of_repository(name: str) -> str:
    try:
        find_model(name)
    except ShardwrightError as error:
        return str(error)
    return f"{name} is known, but not read as the model: name it by --model {name}"
