"""Resources that a client reads by an address: knowledge, rules, catalogues, schemas, and the plans that are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from urllib.parse import quote, unquote

from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from msgspec import Struct

from ...knowledge.index import knowledge
from ...tools.catalog.hardware import all_accelerators
from ...tools.catalog.models import all_models
from ...tools.errors import InputError
from ...tools.input.files import without_files
from ...tools.plan.schema import compact_schema, plan_schema
from ...tools.rules.registry import all_rules
from ..facts import accelerators_asked_for, models_asked_for, rules_asked_for
from ..operations.operation import WIDTH
from ..report.catalogues import Facts, render_facts
from .shelf import SCHEME, Shelf

PAGE = 100
_ADDRESS = re.compile(rf"{SCHEME}://(\w{{1,20}})/(.{{1,600}})", re.DOTALL)
_JSON, _MARKDOWN, _TEXT = "application/json", "text/markdown", "text/plain"
_SCHEMAS = {
    "plan": ("The JSON Schema of the plan document", plan_schema),
    "compact": ("The JSON Schema of the form that a proposer may write, with repeat and like", compact_schema),
}
_LOOK_UPS: dict[str, Callable[[str], Facts]] = {
    "rules": rules_asked_for, "models": models_asked_for, "hardware": accelerators_asked_for,
}  # fmt: skip
_TEMPLATES = (
    ("plan", "{hash}", "A plan document that this server keeps, by the handle that a call gave.", _JSON),
    ("text", "{hash}", "A text that was too long for the answer of a call, whole.", _TEXT),
    ("knowledge", "{id}", "A section of the knowledge base on splitting models, by its id.", _MARKDOWN),
    ("rules", "{id}", "A hard rule: what it asks for, why, how to mend it, an example that breaks it.", _TEXT),
    ("models", "{+name}", "A model: layers, attention, parameters, KV cache per token.", _TEXT),
    ("hardware", "{name}", "An accelerator: rates, memory, links, price, each with its source.", _TEXT),
    ("schema", "{name}", f"A JSON Schema: {' or '.join(_SCHEMAS)}.", _JSON),
)


def templates() -> ListResourceTemplatesResult:
    """The forms of addresses that can be read."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name=kind, uri_template=f"{SCHEME}://{kind}/{form}", description=description, mime_type=mime_type
            )
            for kind, form, description, mime_type in _TEMPLATES
        ]
    )


class Resources(Struct, frozen=True):
    """The resources of one server. Where several clients share it (`is_shared`), plans are read by whoever has the
    handle, and listed to nobody."""

    shelf: Shelf
    is_shared: bool

    def page(self, cursor: str | None) -> ListResourcesResult:
        """One page of the resources; `cursor` is the place at which it begins.

        Raises:
            InputError: no page begins there.
        """
        if cursor is not None and not re.fullmatch(r"[0-9]{1,9}", cursor):
            raise InputError(f"cursor {cursor[:100]!r}: this server gave none such")
        begin = int(cursor or 0)
        page = list(islice(self._all(), begin, begin + PAGE + 1))
        if cursor is not None and not page:
            raise InputError(f"cursor {cursor!r}: nothing more is listed there")
        return ListResourcesResult(resources=page[:PAGE], next_cursor=str(begin + PAGE) if len(page) > PAGE else None)

    def _all(self) -> Iterator[Resource]:
        for name, (title, _) in _SCHEMAS.items():
            yield _listed("schema", name, title, mime_type=_JSON)
        for accelerator in all_accelerators():
            yield _listed("hardware", accelerator.id, accelerator.names[0])
        for model in all_models():
            yield _listed("models", model.name, model.short_name)
        for rule in all_rules():
            yield _listed("rules", rule.id, rule.name, rule.requirement)
        for section in knowledge().sections:
            yield _listed("knowledge", section.id, section.title, section.citation, mime_type=_MARKDOWN)
        for item in () if self.is_shared else self.shelf.plans():
            name = item.handle.rpartition("/")[2]
            yield Resource(uri=item.handle, name=name, title="A kept plan", mime_type=_JSON, size=item.size_bytes)

    def read(self, address: str) -> ReadResourceResult:
        """The resource at `address`.

        Raises:
            InputError: there is no resource.
        """
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise InputError(f"{address[:100]!r}: no address of this server; see the templates")
        with without_files():
            text, mime_type = self._read(address, parts[1], unquote(parts[2]))
        return ReadResourceResult(contents=[TextResourceContents(uri=address, text=text, mime_type=mime_type)])

    def _read(self, address: str, kind: str, name: str) -> tuple[str, str]:
        if kind in ("plan", "text"):
            return self.shelf.text(address), _JSON if kind == "plan" else _TEXT
        if kind == "knowledge":
            section = knowledge().section(name)
            return f"{section.text}\n\nFrom: {section.citation}\n", _MARKDOWN
        if kind in _LOOK_UPS:
            return render_facts(_LOOK_UPS[kind](name), width=WIDTH), _TEXT
        if kind == "schema" and name in _SCHEMAS:
            return json.dumps(_SCHEMAS[name][1](), ensure_ascii=False), _JSON
        raise InputError(f"{address[:100]!r}: there is nothing at this address; see the templates")


def _listed(kind: str, name: str, title: str, description: str | None = None, mime_type: str = _TEXT) -> Resource:
    uri = f"{SCHEME}://{kind}/{quote(name, safe='/')}"
    return Resource(uri=uri, name=name, title=title, description=description, mime_type=mime_type)
