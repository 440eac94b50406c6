"""`remit agents`: the agents of a session that runs now, and an end to one of them. Starts none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.live import ask_session, cells, run_option
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.display import safe_line

__all__ = ["agents", "kill", "list_agents", "show", "tree"]

_HEADS: Final = ("agent", "state", "calls", "denied", "tokens", "USD", "seconds", "now")
_SHOWN_CHARS: Final = 80

_Names = Callable[[Sequence[Mapping[str, Any]]], list[str]]


@click.group(cls=Group, short_help="Look at the agents at work, and stop them.")
def agents() -> None:
    """Look at the agents of a session that runs now, and stop them."""


@agents.command("list", short_help="List the agents of a session.")
@run_option
@json_option
def list_agents(run: str, as_json: bool) -> None:
    """List the agents of a session: how far each is, what it has spent, and what it is at."""
    _show_all(run, as_json=as_json, names=_plain)


@agents.command(short_help="Show who descends from whom.")
@run_option
@json_option
def tree(run: str, as_json: bool) -> None:
    """Show the agents of a session as a tree: who descends from whom."""
    _show_all(run, as_json=as_json, names=_indented)


@agents.command(short_help="Show one agent, with what it may reach.")
@click.argument("agent", metavar="AGENT")
@run_option
@json_option
def show(agent: str, run: str, as_json: bool) -> None:
    """Show one agent: its budget, its lease, and what its snapshot holds."""
    told = ask_session(run, "agent", agent=agent)
    if as_json:
        print_json(told)
        return
    view = cast("dict[str, Any] | None", told.pop("snapshot", None))
    for name, value in told.items():
        print_text(f"{name:<12} {_value(value)}")
    if view is None:
        print_text("snapshot     none: it reaches nothing")
        return
    print_text(f"role         {view['role']}")
    print_text(f"snapshot     {view['digest']}")
    for name in cast("list[str]", view["capabilities"]):
        print_text(f"  {safe_line(name, reveal=True)}")


@agents.command(short_help="Take an agent's authority back, and stop it.")
@click.argument("agent", metavar="AGENT")
@click.option("--hard", is_flag=True, help="End the servers at which its calls had begun as well.")
@run_option
@json_option
def kill(agent: str, hard: bool, run: str, as_json: bool) -> None:
    """Take back the authority of an agent and of all below it, and stop them.

    Nothing of theirs is sent any more when this returns. It says what had been sent before.
    """
    told = ask_session(run, "kill", act=True, agent=agent, hard=hard)
    if as_json:
        print_json(told)
        return
    print_text(f"{agent} and {told['below']} below it are stopped")
    print_text(
        f"  calls stopped: {told['stopped']}; nothing of {told['refused']} had been sent, "
        f"something of {told['maybe_sent']}"
    )


def _show_all(run: str, *, as_json: bool, names: _Names) -> None:
    told = ask_session(run, "agents")
    if as_json:
        print_json(told)
        return
    rows = cast("list[dict[str, Any]]", told["agents"])
    if not rows:
        print_text(f"{told['run']} has made no agent yet", to_stderr=True)
        return
    shown = zip(names(rows), rows, strict=True)
    print_text(cells([_HEADS, *(_row(name, row) for name, row in shown)]))


def _row(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    current = ", ".join(cast("list[str]", row.get("current", [])))
    return (
        safe_line(name, reveal=True),
        str(row["state"]),
        str(row.get("calls", 0)),
        str(row.get("denied", 0)),
        f"{row.get('tokens', 0):,}",
        f"{row.get('usd', 0.0):.4f}",
        f"{row.get('seconds', 0.0):.1f}",
        safe_line(current, reveal=True, chars_max=_SHOWN_CHARS),
    )


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(row["agent"]) for row in rows]


def _indented(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    known = set(_plain(rows))
    return [_below(name, known) for name in _plain(rows)]


def _below(name: str, known: set[str]) -> str:
    """Return a name below that of its parent; the whole path where the parent is not shown."""
    parent, slash, last = name.rpartition("/")
    if not slash or parent not in known:
        return name
    return f"{'  ' * (name.count('/') - 1)}|- {last}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return ", ".join(f"{name} {item}" for name, item in pairs) or "nothing bounds it"
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value))) or "-"
    return "-" if value is None else safe_line(str(value), reveal=True)
