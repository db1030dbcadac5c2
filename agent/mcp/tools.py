"""A tool of each operation: how it is listed, and what a call of it gives. No operation is known by name."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from msgspec import Struct

from ...tools.errors import InputError, ShardwrightError
from ..operations.all_operations import OPERATIONS
from ..operations.operation import Operation
from ..operations.wording import Client, answer_to_client, report_to_client, told_to_client
from ..report.safe import short_line
from .brief_answer import Brief, brief_answer, is_plan, short_report, whole_answer
from .schemas import WHOLE, input_schema, output_schema
from .shelf import Shelf, is_plan_handle

if TYPE_CHECKING:
    from ..agent import Agent

_LOG = logging.getLogger(__name__)


MCP = Client("tool", f"{WHOLE}: true gives")


class OperationTool(Struct, frozen=True, dict=True):
    """An operation as a tool."""

    operation: Operation[Any, Any]

    @cached_property
    def listed(self) -> Tool:
        """How clients see it."""
        operation = self.operation
        return Tool(
            name=operation.name,
            title=operation.summary.rstrip("."),
            description=operation.description,
            input_schema=input_schema(operation),
            output_schema=output_schema(operation),
            annotations=ToolAnnotations(
                read_only_hint=True, idempotent_hint=True, open_world_hint=operation.ask is not None
            ),
        )

    def call(self, arguments: dict[str, Any], bench: Bench) -> CallToolResult:
        """The answer to a call, or one line on why there is none; runs in the thread that does the work."""
        try:
            return self._answered(dict(arguments), bench)
        except ShardwrightError as error:
            return refused(str(error))
        except Exception:  # noqa: BLE001 - the last place where a fault of ours can be told
            _LOG.exception("%s", self.operation.name)
            return refused(f"{self.operation.name}: a fault of shardwright itself; the log of the server says where")

    def _answered(self, fields: dict[str, Any], bench: Bench) -> CallToolResult:
        whole = fields.pop(WHOLE, False)
        if not isinstance(whole, bool):
            raise InputError(f"{WHOLE}: true or false is expected")
        handles = self._take_off_the_shelf(fields, bench.shelf)
        answer = self.operation.answer(self.operation.question(fields), bench.agent)
        data = answer.model_dump(mode="json")
        text = self.operation.text(answer)
        report = report_to_client(text, data, MCP)
        brief = whole_answer(data, bench.shelf) if whole else brief_answer(data, bench.shelf)
        if not whole:
            brief.answer = answer_to_client(brief.answer, MCP)
        brief.kept.update(handles)
        text = short_report(report, bench.shelf) + _of_kept(brief)
        return CallToolResult(content=[TextContent(text=text)], structured_content=brief.structured())

    def _take_off_the_shelf(self, fields: dict[str, Any], shelf: Shelf) -> dict[str, str]:
        """Replace handles by their documents; returns the handles of documents that were sent, by field.

        Raises:
            InputError: nothing is kept under a handle.
        """
        handles: dict[str, str] = {}
        for name in self.operation.plan_fields:
            value: Any = fields.get(name)
            if isinstance(value, str) and is_plan_handle(value.strip()):
                fields[name] = shelf.text(value.strip())
            elif is_plan(value) and (handle := shelf.keep("plan", value)) is not None:
                handles[name] = handle
        return handles


class Bench(Struct, frozen=True):
    """What tools work with: the shelf of plans, and the agent to ask if a language model is wanted."""

    shelf: Shelf
    agent: Agent | None = None


TOOLS = {operation.name: OperationTool(operation) for operation in OPERATIONS}


def refused(message: str) -> CallToolResult:
    """The answer that says why a call is refused."""
    return CallToolResult(content=[TextContent(text=short_line(told_to_client(message, MCP)))], is_error=True)


def _of_kept(brief: Brief) -> str:
    """The handles for whoever reads only the text."""
    lines = [f"{place} is kept as {handle}" for place, handle in brief.kept.items()]
    return "\n\n" + "\n".join([*lines, "A handle stands for its plan in any call."]) if lines else ""
