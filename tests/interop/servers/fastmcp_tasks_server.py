"""A server of FastMCP with its tasks extension, over stdio. It runs in an environment of its own."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import anyio
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = FastMCP("tasks", instructions="call a tool", list_page_size=2)
server.add_extension(TasksExtension())


@server.tool(task=True)
async def add(a: int, b: int) -> int:
    """Add two numbers, later."""
    return a + b


@server.tool(task=True)
async def fail() -> str:
    """Fail, later."""
    raise ValueError("on purpose")


@server.tool(task=True)
async def wait() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return "never"


QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Who are you?",
        requested_schema={
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    )
)


def greeting(ctx: Context) -> str | InputRequiredResult:
    """Greet whoever answered, or ask first."""
    if not ctx.input_responses:
        return InputRequiredResult(input_requests={"who": QUESTION}, request_state="asked é")
    answer = ctx.input_responses["who"]
    return f"{answer.action}: {answer.content} {ctx.request_state}"


@server.tool(task=True)
async def greet(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name, later."""
    return greeting(ctx)


@server.tool
async def greet_now(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name, and then answer at once."""
    return greeting(ctx)


@server.tool
async def count(ctx: Context) -> list[int]:
    """Report progress, then answer at once."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return [1, 2, 3]


@server.resource("note:///one")
def one() -> str:
    """A note."""
    return "1"


@server.resource("note:///{name}/text")
def note(name: str) -> str:
    """A note by its name."""
    return name


@server.prompt
def hello(who: str) -> str:
    """Greet somebody."""
    return f"Greet {who}."


if __name__ == "__main__":
    server.run(show_banner=False)
