"""Local servers as people run them: they treat a request as llama.cpp and Ollama do.

Written after `common/json-schema-to-grammar.cpp` and `oaicompat_chat_params_parse` of llama.cpp, and after
`api/types.go` and `openai/openai.go` of Ollama.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from .fault_server import Exchange, answer, delta, refuses, sends, streams

# The model's answer to a request as the server passes it on: text, or the tool calls of a turn.
Says = Callable[[dict[str, Any]], str | list[dict[str, Any]]]
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


def refused_by_grammar(schema: Any, root: Any = None) -> str | None:
    """Why llama.cpp can make no grammar of a schema; `None` if it can."""
    root = schema if root is None else root
    if "$ref" in schema:
        reference = schema["$ref"]
        if not reference.startswith("#/$defs/") or reference[8:] not in root.get("$defs", {}):
            return f"Unsupported ref: {reference}"
        return refused_by_grammar(root["$defs"][reference[8:]], root)
    if "pattern" in schema and not (schema["pattern"].startswith("^") and schema["pattern"].endswith("$")):
        return "Pattern must start with '^' and end with '$'"
    kinds = schema.get("type", [])
    types = {kinds} if isinstance(kinds, str) else set(kinds)
    if types - _TYPES or "not" in schema:
        return f"Unrecognized schema: {json.dumps(schema)}"
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema["items"]] if "items" in schema else []
    return next((words for part in inner if (words := refused_by_grammar(part, root)) is not None), None)


class LlamaCpp(Struct):
    """llama-server. `is_old`: before it had `json_schema` (September 2024), when it refused with status 500."""

    says: Says
    is_old: bool = False
    build: str = "b6123-ab12cd34ef"
    grammars: list[Any] = field(default_factory=list[Any])

    def __call__(self, exchange: Exchange) -> None:
        body = exchange.received.body
        wanted = body.get("response_format", {})
        kind = wanted.get("type", "text")
        if (kind == "json_schema" and self.is_old) or kind not in ("text", "json_object", "json_schema"):
            words = f'response_format type must be one of "text" or "json_object", but got: {kind}'
            return refuses(500 if self.is_old else 400, words)(exchange)
        schemas = [tool["function"]["parameters"] for tool in body.get("tools", [])]
        schemas += [wanted["schema"]] if "schema" in wanted else []
        schemas += [wanted["json_schema"]["schema"]] if "json_schema" in wanted else []
        refused = next((words for schema in schemas if (words := refused_by_grammar(schema)) is not None), None)
        if refused is not None:
            return refuses(400, f"JSON schema conversion failed:\n{refused}")(exchange)
        self.grammars += schemas
        message = self.says(body)
        return sends(_answer(message, system_fingerprint=self.build))(exchange)


class Ollama(Struct):
    """Ollama. `tools` are those of each request as its templates show them, `context` the size it cuts prompts to."""

    says: Says
    context: int = 4096
    tools: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    formats: list[Any] = field(default_factory=list[Any])

    def __call__(self, exchange: Exchange) -> None:
        body = exchange.received.body
        if "tools" in body:
            self.tools.append([_tool(tool["function"]) for tool in body["tools"]])
        wanted = body.get("response_format", {})
        if "json_schema" in wanted:
            refused = refused_by_grammar(wanted["json_schema"]["schema"])
            if refused is not None:
                return refuses(500, "invalid JSON schema in format")(exchange)
            self.formats.append(wanted["json_schema"]["schema"])
        message, signed = self.says(body), {"system_fingerprint": "fp_ollama"}
        read = min(self.context, len(json.dumps(body["messages"])) // 4)
        usage = {"prompt_tokens": read, "completion_tokens": 3}
        if not body.get("stream"):
            return sends({**_answer(message, **signed), "usage": usage})(exchange)
        # Calls are parsed once they are whole, and sent in one piece.
        pieces = (
            [{"content": word} for word in re.findall(r"\S+\s*", message)]
            if isinstance(message, str)
            else [{"tool_calls": message}]
        )
        finish = "stop" if isinstance(message, str) else "tool_calls"
        ends = [{**delta({"content": ""}, finish), **signed}, {"choices": [], "usage": usage, **signed}]
        return streams([*({**delta(piece), **signed} for piece in pieces), *ends])(exchange)


def _answer(said: str | list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    if isinstance(said, str):
        return answer({"content": said}, "stop", **more)
    return answer({"content": "", "tool_calls": said}, "tool_calls", **more)


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    """The fields of a function that Ollama keeps: `ToolFunction` and `ToolProperty`."""
    parameters = function["parameters"]
    shown = {name: parameters[name] for name in ("type", "$defs", "items", "required") if name in parameters}
    shown["properties"] = {name: _property(schema) for name, schema in parameters.get("properties", {}).items()}
    return {"name": function["name"], "description": function["description"], "parameters": shown}


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    shown = {name: schema[name] for name in ("type", "items", "description", "enum", "required") if name in schema}
    if "anyOf" in schema:
        shown["anyOf"] = [_property(branch) for branch in schema["anyOf"]]
    if "properties" in schema:
        shown["properties"] = {name: _property(inner) for name, inner in schema["properties"].items()}
    return shown
