"""The official Python SDK's server with all that it can offer, over each of its transports.

Arguments: stdio; or stateful, json, stateless or sse, and a port.
"""
# pyright: basic

from __future__ import annotations

import socket
import sys
from typing import Annotated, Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

server = MCPServer("sdk", title="The SDK", instructions="add numbers", version="1.2.3")


class Sum(BaseModel):
    """A result with a schema."""

    total: int
    parts: list[int]


class Who(BaseModel):
    """A form."""

    name: str
    age: int = Field(default=36, ge=0)


@server.tool(title="Add", annotations=types.ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b, parts=[a, b])


@server.tool()
def fail() -> str:
    """Fail as a tool does."""
    raise ValueError("on purpose")


@server.tool()
def refuse() -> str:
    """Fail as a request does."""
    raise MCPError(code=-32099, message="not today", data={"why": "closed"})


@server.tool()
def blocks() -> types.CallToolResult:
    """Every kind of content."""
    text = types.TextResourceContents(uri="note:///one", text="1", mime_type="text/plain")
    return types.CallToolResult(
        content=[
            types.TextContent(text="é", annotations=types.Annotations(priority=0.5)),
            types.ImageContent(data="AAAA", mime_type="image/png"),
            types.AudioContent(data="AAAA", mime_type="audio/wav"),
            types.ResourceLink(uri="note:///one", name="one"),
            types.EmbeddedResource(resource=text),
        ],
        structured_content={"a": [1, None, "é"]},
        _meta={"example.com/kept": True},
    )


@server.tool()
async def count(ctx: Context) -> str:
    """Report progress, log, then answer."""
    for step in range(1, 4):
        await ctx.report_progress(step, 3, f"step {step}")
    await ctx.info({"counted": 3})
    return "counted"


@server.tool()
async def wait() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return "never"


@server.tool()
async def touch(ctx: Context) -> str:
    """Tell that a note and the lists have changed, in the words of each era."""
    if ctx.protocol_version == "2026-07-28":
        await ctx.notify_resource_updated("note:///one")
        await ctx.notify_tools_changed()
        await ctx.notify_prompts_changed()
        await ctx.notify_resources_changed()
    else:
        await ctx.session.send_resource_updated("note:///one")
    return "touched"


def ask_who(ctx: Context) -> Elicit[Who]:
    return Elicit("Who are you?", Who)


def ask_model(ctx: Context) -> Sample:
    message = types.SamplingMessage(role="user", content=types.TextContent(text="2+2"))
    return Sample([message], max_tokens=10, system_prompt="count")


def ask_roots(ctx: Context) -> ListRoots:
    return ListRoots()


@server.tool()
async def who(person: Annotated[Who, Resolve(ask_who)]) -> str:
    """Ask a person, in the way of each era."""
    return f"{person.name} is {person.age}"


@server.tool()
async def think(turn: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask a model, in the way of each era."""
    return f"{turn.model}: {getattr(turn.content, 'text', '')}"


@server.tool()
async def look(roots: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    """Ask for the roots, in the way of each era."""
    return ", ".join(str(root.uri) for root in roots.roots)


@server.tool()
async def visit(ctx: Context) -> str:
    """Ask to visit an address, and say when that is over. Versions with a handshake only."""
    answer = await ctx.elicit_url("Log in.", "https://canary.invalid/login", "v1")
    await ctx.session.send_elicit_complete("v1", ctx.request_id)
    return answer.action


@server.tool()
async def require_visit() -> str:
    """Refuse until an address was visited."""
    visit = types.ElicitRequestURLParams(
        message="Log in.", url="https://canary.invalid/login", elicitation_id="v2"
    )
    visits = {"elicitations": [visit.model_dump(by_alias=True, exclude_none=True)]}
    raise MCPError(code=-32042, message="log in first", data=visits)


@server.resource("note:///one", mime_type="text/plain")
def one() -> str:
    """A note."""
    return "1"


@server.resource("note:///raw", mime_type="application/octet-stream")
def raw() -> bytes:
    """Bytes."""
    return b"\x00\xff"


@server.resource("note:///{name}/text")
def note(name: str) -> str:
    """A note by its name."""
    return name


@server.prompt(title="Greet")
def greet(who: str, how: str = "kindly") -> str:
    """Greet somebody."""
    return f"Greet {who} {how}."


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    """Complete names."""
    known = dict(context.arguments or {}) if context else {}
    names = [name for name in ("Ada", "Alan", "Bob") if name.startswith(argument.value)]
    return types.Completion(values=[*names, *known.values()], total=3, has_more=False)


async def set_level(_ctx: Any, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def subscribe(_ctx: Any, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def list_tools(_ctx: Any, params: Any) -> types.ListToolsResult:
    """The tools, four to a page."""
    tools = await server.list_tools()
    start = int(params.cursor) if params is not None and params.cursor else 0
    more = str(start + 4) if start + 4 < len(tools) else None
    return types.ListToolsResult(tools=tools[start : start + 4], next_cursor=more)


# what MCPServer has no decorators for
below = server._lowlevel_server
below.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
below.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
below.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
below.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, subscribe)


def main() -> None:
    match sys.argv[1]:
        case "stdio":
            server.run("stdio")
            return
        case "sse":
            app = server.sse_app()
        case mode:
            app = server.streamable_http_app(
                json_response=mode == "json", stateless_http=mode == "stateless"
            )
    listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    runner = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    runner.run(sockets=[listening])


if __name__ == "__main__":
    main()
