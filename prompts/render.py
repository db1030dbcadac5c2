"""Prompts are files, one job each. Rendering is strict: a variable without a value, or the reverse, fails.

`$name` is a variable, `$$` a dollar sign; nothing else is interpreted, so that what is put in stays what it is.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from string import Template

from ..tools.errors import InputError


@cache
def source(name: str) -> str:
    """The text of prompt `name` as it stands in its file.

    Raises:
        InputError: there is no such prompt.
    """
    try:
        return files(__name__.rpartition(".")[0]).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise InputError(f"there is no prompt {name!r}") from None


def render(name: str, **values: str) -> str:
    """Prompt `name` with its variables filled in.

    Raises:
        InputError: a variable has no value, or a value no variable.
    """
    template = Template(source(name))
    wanted = set(template.get_identifiers())
    for fault, names in (("has no value for", wanted - values.keys()), ("has no variable", values.keys() - wanted)):
        if names:
            raise InputError(f"prompt {name!r} {fault} {', '.join(sorted(names))}")
    return template.substitute(values)


def prompt_hash(name: str) -> str:
    """The content hash of prompt `name`, which names its version."""
    return hashlib.sha256(source(name).encode()).hexdigest()[:16]
