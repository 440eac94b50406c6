"""One of several programs that share a login: waits for a word, makes its calls, counts the answers.

Arguments: the server's URL, the store's folder, connections, tasks on each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from mcp_client import UNGUARDED, Client, HttpSpec
from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.settings import AuthSettings
from mcp_client.client.authorizing import connect_authorized

SECONDS = 30


async def run(url: str, folder: str, connections: int, tasks: int) -> int:
    """Make the calls, and return how many were answered with what they asked for."""
    answered: list[str] = []

    async def call(client: Client, text: str) -> None:
        result = await client.call_tool("echo", {"text": text})
        if text in str(result):
            answered.append(text)

    async def connect(number: int) -> None:
        async with (
            connect_authorized(
                HttpSpec(name="s", url=url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=FileTokenStore(Path(folder)),
            ) as client,
            anyio.create_task_group() as group,
        ):
            for task in range(tasks):
                group.start_soon(call, client, f"text-{number}-{task}-")

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            for number in range(connections):
                group.start_soon(connect, number)
    return len(answered)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Say that everything is loaded, wait for the word, run, say the count."""
    from mcp_client.auth import shell

    assert shell.Authorizer
    say("ready")
    sys.stdin.readline()
    url, folder, connections, tasks = sys.argv[1:]
    say(str(anyio.run(run, url, folder, int(connections), int(tasks))))


if __name__ == "__main__":
    main()
