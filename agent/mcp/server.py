"""The server of the protocol: which request is answered by what. It speaks no wire by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from ... import __version__
from ...prompts.render import render
from ...tools.errors import ShardwrightError
from ..report.safe import short_line
from ..runs.watching import told_now_and_then
from .prompts import INSTRUCTIONS, prompt, prompt_list
from .resources import Resources, templates
from .tools import TOOLS, Bench, refused
from .work import Run

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
# Lists that change with a new version alone.
_STAYS = CacheHint(ttl_ms=3_600_000, scope="public")
# Words on what is being done that wait for a slow client; more are left out.
_MOST_WORDS = 16


def mcp_server(run: Run, bench: Bench, *, is_shared: bool = False) -> Server[Any]:
    """The server whose calls `run` works off. `is_shared`: clients that do not know of each other ask it."""
    handlers = _Handlers(run, bench, Resources(bench.shelf, is_shared))
    return Server(
        "shardwright",
        version=__version__,
        title="shardwright",
        description="Plans how to split a large language model over GPUs for serving.",
        instructions=render(INSTRUCTIONS),
        cache_hints={"tools/list": _STAYS, "prompts/list": _STAYS, "resources/templates/list": _STAYS},
        get_tool_input_schema=lambda name: TOOLS[name].listed.input_schema if name in TOOLS else None,
        on_list_tools=handlers.tools,
        on_call_tool=handlers.call,
        on_list_resources=handlers.resources,
        on_list_resource_templates=handlers.templates,
        on_read_resource=handlers.read,
        on_list_prompts=handlers.prompts,
        on_get_prompt=handlers.prompt,
    )


class _Handlers:
    """One answer for each method."""

    def __init__(self, run: Run, bench: Bench, resources: Resources) -> None:
        self._run, self._bench, self._resources = run, bench, resources

    async def tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """All tools, on one page."""
        _check_first_page(params)
        return ListToolsResult(tools=[tool.listed for tool in TOOLS.values()])

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """One call of a tool; its client hears what is being done."""
        tool, arguments = TOOLS.get(params.name), params.arguments or {}
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}; there are {', '.join(TOOLS)}")
        loop, words = asyncio.get_running_loop(), asyncio.Queue[str](_MOST_WORDS)

        def show(step: str) -> None:
            loop.call_soon_threadsafe(_put, words, step)

        def work() -> CallToolResult:
            with told_now_and_then(show):
                return tool.call(arguments, self._bench)

        telling = asyncio.ensure_future(_tell(context, words))
        try:
            return await self._run(work, is_long=tool.operation.is_long)
        except ShardwrightError as error:  # the work was not taken on, or took too long
            return refused(str(error))
        finally:
            telling.cancel()

    async def resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """One page of resources."""
        cursor = params.cursor if params is not None else None
        return await self._read(lambda: self._resources.page(cursor))

    async def templates(self, context: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """All forms of addresses."""
        _check_first_page(params)
        return templates()

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """One resource."""
        return await self._read(lambda: self._resources.read(str(params.uri)))

    async def prompts(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        """All prompts."""
        _check_first_page(params)
        return prompt_list()

    async def prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """One prompt, filled in."""
        return await self._read(lambda: prompt(params.name, params.arguments or {}, self._bench.shelf))

    async def _read(self, work: Callable[[], T]) -> T:
        """The result of `work`; what it refuses is an error of the protocol."""
        try:
            return await self._run(work, is_long=False)
        except ShardwrightError as error:
            raise MCPError(INVALID_PARAMS, short_line(str(error))) from None


def _check_first_page(params: PaginatedRequestParams | None) -> None:
    """Check that a list of one page is asked for from its start.

    Raises:
        MCPError: it is not.
    """
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "cursor: all is on one page")


def _put(words: asyncio.Queue[str], step: str) -> None:
    if not words.full():
        words.put_nowait(step)


async def _tell(context: Context, words: asyncio.Queue[str]) -> None:
    """Tell the client each step; the protocol wants a number that grows."""
    step = 0
    while True:
        doing = await words.get()
        step += 1
        await context.session.report_progress(float(step), message=doing)
