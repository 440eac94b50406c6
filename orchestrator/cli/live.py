"""Speaks with the session that a command means. What a command asks of it stands in the command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["ask_session", "cells", "run_option"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def run_option(command: _Command) -> _Command:
    """Add `--run`, handed over as `run`."""
    return click.option(
        "--run", "run", default="", metavar="RUN", help="Which session; by default the newest."
    )(command)


def ask_session(
    run: str, operation: str, *, act: bool = False, **arguments: object
) -> dict[str, object]:
    """Return what an operation of the session of a run came to, of the newest where none is named.

    An act needs a name where several sessions are at work. Raises RemitError.
    """
    import os

    import anyio

    from orchestrator.sessions.control.calling import connected, find_live
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    name = find_live(paths, run, alone=act)

    async def asked() -> dict[str, object]:
        async with connected(paths, name) as client:
            return await client.do(operation, **arguments)

    return anyio.run(asked)


def cells(rows: list[tuple[str, ...]]) -> str:
    """Return rows as columns of text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
