"""`remit top`: a session that runs now, on a terminal; elsewhere its table, again and again until it ends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

import click

from orchestrator.cli.live import run_option
from orchestrator.cli.options import json_option, print_json, print_text

if TYPE_CHECKING:
    from orchestrator.sessions.control.calling import ControlClient

__all__ = ["top"]

_SECONDS: Final = 2.0


@click.command(short_help="Watch a session on a terminal.")
@run_option
@click.option("--plain", is_flag=True, help="A table that is printed anew, in place of a screen.")
@click.option("--once", is_flag=True, help="Print the table once.")
@json_option
def top(run: str, plain: bool, once: bool, as_json: bool) -> None:
    """Watch a session: its agents, the events of one, what it may reach, what is asked.

    Without a terminal, or without the extra `tui`, it is a table that is printed when something has changed.
    """
    import os

    import anyio

    from orchestrator.sessions.control.calling import find_live
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    name = find_live(paths, run)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if plain or once or as_json or not terminal or find_spec("textual") is None:
        anyio.run(_plain, name, once or as_json, as_json)
    else:
        anyio.run(_screen, name)


async def _plain(run: str, once: bool, as_json: bool) -> None:
    """Print the table, and again when something has changed, until the session ends."""
    import os

    import anyio

    from orchestrator.core.errors import RemitError
    from orchestrator.sessions.control.calling import connected
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.top.lines import plain_table

    paths = StatePaths.from_environment(os.environ)
    async with connected(paths, run) as client, connected(paths, run) as following:
        if as_json:
            print_json({**await client.do("agents"), **await client.do("asks")})
            return
        events = None if once else await following.follow()
        while True:
            try:
                agents, asks = await client.do("agents"), await client.do("asks")
            except RemitError:
                break
            rows = cast("list[Mapping[str, Any]]", asks["asks"])
            print_text(plain_table(cast("Mapping[str, Any]", agents), rows))
            if events is None:
                return
            if await anext(events, None) is None:
                break
            await anyio.sleep(_SECONDS)
    print_text(f"the session of {run} has ended", to_stderr=True)


class _Live:
    """A session for the screen: one connection for questions, one for events."""

    def __init__(self, client: ControlClient, following: ControlClient) -> None:
        self.run = client.run
        self.do = client.do
        self._following = following

    async def follow(self) -> AsyncIterator[Mapping[str, object]]:
        """Return its events, until it ends."""
        return await self._following.follow()


async def _screen(run: str) -> None:
    import os

    from orchestrator.sessions.control.calling import connected
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.top.app import TopApp

    paths = StatePaths.from_environment(os.environ)
    async with connected(paths, run) as client, connected(paths, run) as following:
        await client.do("attend")  # as long as somebody looks, asks wait
        await TopApp(_Live(client, following)).run_async()
