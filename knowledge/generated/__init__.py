"""The parts of the knowledge base that restate code: one generator a file, written into the text by `./check --write`.

A part stands between `<!-- generated: NAME ARG… -->` and `<!-- end generated -->`. A name that no generator has, or a
part that does not end, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module

from ..reader import KnowledgeError

# Name → module beside this one; each has `generate(*arguments: str) -> str`.
GENERATORS = {
    "accelerators": "accelerators",
    "edge-types": "edge_types",
    "model-table": "model_table",
    "node-types": "node_types",
    "relaxations": "relaxations",
    "rules": "rule_table",
    "schema-summary": "schema_summary",
}
_PART = re.compile(
    r"^(?P<begin><!-- generated: (?P<call>[^>\n]*) -->)\n(?P<text>(?:(?!<!--).*\n)*)(?P<end><!-- end generated -->)$",
    re.MULTILINE,
)
_ANY_PART = re.compile(r"<!--\s*(?:end )?generated")


def generator(name: str) -> Callable[..., str]:
    """The generator of that name.

    Raises:
        KnowledgeError: there is none.
    """
    if name not in GENERATORS:
        raise KnowledgeError(f"nothing generates {name!r}; there are {', '.join(sorted(GENERATORS))}")
    return import_module(f"{__name__}.{GENERATORS[name]}").generate


def regenerated(file: str, source: str) -> str:
    """`source`, the text of `file`, with every generated part as the code gives it today.

    Raises:
        KnowledgeError: a part is not of the form, or its generator refuses its arguments.
    """

    def part(match: re.Match[str]) -> str:
        name, *arguments = match["call"].split()
        try:
            text = generator(name)(*arguments)
        except (TypeError, KnowledgeError) as error:
            raise KnowledgeError(f"{file}: generated: {match['call']}: {error}") from None
        return f"{match['begin']}\n{text}\n{match['end']}"

    if len(_ANY_PART.findall(source)) != 2 * len(_PART.findall(source)):
        raise KnowledgeError(
            f"{file}: a generated part is not of the form <!-- generated: … --> … <!-- end generated -->"
        )
    return _PART.sub(part, source)
