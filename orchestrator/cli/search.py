"""`remit search`: what an agent's own search would find, from the terminal. Calls no tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.live import cells
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.display import safe_line

if TYPE_CHECKING:
    from orchestrator.sessions.discovering import Hit
    from orchestrator.sessions.standing import Notice

__all__ = ["search"]

_ABOUT_CHARS = 100
_COUNT_MAX = 100


@click.command(short_help="Search the tools there are.")
@click.argument("query")
@click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` of the project we stand in.",
)
@click.option(
    "-n", "--count", default=10, show_default=True, type=click.IntRange(1, _COUNT_MAX),
    help="How many.",
)  # fmt: skip
@json_option
def search(query: str, servers: Path | None, count: int, as_json: bool) -> None:
    """Search the tools and skills that the parent's own agent may use, the best first.

    The servers that are approved are started or reached, and asked what they offer. What is not
    approved is left out, and told.
    """
    import anyio

    from mcp_client.transports.stdio import harden_process

    harden_process()
    hits, notices = anyio.run(_found, query, servers, count)
    rows = [_object(hit) for hit in hits]
    if as_json:
        left_out = [{"name": item.name, "state": item.state} for item in notices]
        print_json({"query": query, "found": rows, "left_out": left_out})
        return
    for notice in notices:
        print_text(f"{notice.name} is {notice.state}", to_stderr=True)
        if notice.fix:
            print_text(f"  fix: {notice.fix}", to_stderr=True)
    if rows:
        print_text(cells([("score", "name", "about"), *map(_row, rows)]))
    else:
        print_text("nothing fits; `remit mcp list` shows the servers", to_stderr=True)


async def _found(
    query: str, servers: Path | None, count: int
) -> tuple[tuple[Hit, ...], tuple[Notice, ...]]:
    import os

    from orchestrator.sessions.standing import StandingRequest, open_standing

    request = StandingRequest(servers=servers, leave_out=True)
    async with open_standing(request, environ=os.environ, home=Path.home()) as standing:
        return standing.session.find(query, count=count), standing.notices


def _object(hit: Hit) -> dict[str, Any]:
    score = round(hit.score, 4)
    if hit.capability is not None:
        spec = hit.capability.spec
        name, about = f"{spec.server}/{spec.tool}", spec.description
        kind = "tool"
    else:
        assert hit.skill is not None
        name, about, kind = hit.skill.name, hit.skill.description, "skill"
    shown = safe_line(about, reveal=True, chars_max=_ABOUT_CHARS)
    return {"score": score, "kind": kind, "name": safe_line(name, reveal=True), "about": shown}


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['score']:.2f}", row["name"], row["about"]
