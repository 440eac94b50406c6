"""What a session says, as lines for a terminal: safe, bounded, one way for the screen and for plain output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.core.display import safe_line, whole_line, whole_text

__all__ = [
    "HEADS",
    "agent_cells",
    "ask_line",
    "event_line",
    "inspected",
    "keep_words",
    "name_in_tree",
    "plain_table",
    "whole_ask",
]

HEADS: Final = ("agent", "state", "calls", "denied", "tokens", "USD", "s", "now")
"""Over the columns of agents."""
_NAME_CHARS: Final = 28
_NOW_CHARS: Final = 60
_SHOWN: Final = ("server", "tool", "outcome", "reason", "rule", "status", "model", "number", "open")


def name_in_tree(agent: str, known: set[str]) -> str:
    """Return an agent's name below that of its parent; the whole path where that is not shown."""
    parent, slash, last = agent.rpartition("/")
    shown = f"{'  ' * (agent.count('/') - 1)}|- {last}" if slash and parent in known else agent
    return safe_line(shown, reveal=True, chars_max=_NAME_CHARS)


def agent_cells(row: Mapping[str, Any], known: set[str]) -> tuple[str, ...]:
    """Return the cells of one agent, in the order of the heads."""
    current = ", ".join(map(str, row.get("current", [])))
    return (
        name_in_tree(str(row["agent"]), known),
        safe_line(str(row["state"])),
        str(row.get("calls", 0)),
        str(row.get("denied", 0)),
        f"{row.get('tokens', 0):,}",
        f"{row.get('usd', 0.0):.4f}",
        f"{row.get('seconds', 0.0):.1f}",
        safe_line(current, reveal=True, chars_max=_NOW_CHARS),
    )


def ask_line(row: Mapping[str, Any]) -> str:
    """Return one ask: its number, who asks, what for, by which rule, and the seconds left."""
    wants = f"{row.get('server', '')}/{row['tool']}" if "tool" in row else str(row["kind"])
    who = str(row["agent"]).replace("/", " > ")
    text = f"{row['ask']}  {who} wants {wants}  rule {row['rule'] or '-'}  {row['left']:.0f} s"
    return safe_line(text, reveal=True, chars_max=200)


def event_line(event: Mapping[str, Any], since: float) -> str:
    """Return one event on a line, with the seconds since `since`, a time of the session's own clock."""
    facts = [f"{name}={event[name]}" for name in _SHOWN if event.get(name) not in (None, "", [])]
    text = f"{event.get('at', since) - since:>9.1f}  {event.get('event', '')}  {' '.join(facts)}"
    return safe_line(text, reveal=True, chars_max=200).replace("  ", " ", 1)


def inspected(told: Mapping[str, Any]) -> str:
    """Return what an agent has left and may reach."""
    left = ", ".join(
        f"{name} {value:,.2f}".removesuffix(".00")
        for name, value in dict(told.get("left", {})).items()
    )
    lease = told.get("lease")
    view = told.get("snapshot")
    lines = [
        str(told["agent"]),
        f"state       {told['state']}",
        f"model       {told.get('model', '') or '-'}",
        f"left        {left or 'nothing bounds it'}",
        f"lease       {'none' if lease is None else f'{lease} s'}",
        f"incarnation {told.get('incarnation', '-')}, generation {told.get('generation', '-')}",
    ]
    lines += [f"for itself  {row['name']}: {row['state']}" for row in told.get("servers", ())]
    if view is None:
        lines.append("snapshot    none: it reaches nothing")
    else:
        lines += [f"role        {view['role']}", f"snapshot    {str(view['digest'])[:16]}…"]
        lines += [f"  {name}" for name in view["capabilities"]]
    return whole_text("\n".join(lines))


def whole_ask(told: Mapping[str, Any]) -> str:
    """Return all of one ask, with hidden characters written out and none of it cut."""
    named = ("kind", "agent", "server", "tool", "rule", "definition", "digest")
    lines = [
        f"{name:<11} {whole_line(str(told[name]))}"
        for name in named
        if told.get(name) not in (None, "")
    ]
    if "arguments" in told:
        shown = json.dumps(told["arguments"], indent=2, ensure_ascii=False)
        return "\n".join([*lines, "", "arguments", *_indented(shown)])
    for name in ("mode", "host", "address", "fields"):
        if told.get(name):
            shown = json.dumps(told[name], ensure_ascii=False)
            lines.append(f"{name:<11} {whole_line(shown)}")
    whose = "the server's" if "server" in told else "the agent's"
    words = f"in {whose} own words (untrusted)"
    if told.get("kind") == "gate":
        words = "its gate, and what it would be handed (untrusted)"
    return "\n".join([*lines, "", words, *_indented(str(told.get("question", "")))])


def keep_words(told: Mapping[str, Any]) -> str:
    """Return what stands over a permit that an ask would keep: who wants what, and where it is kept."""
    who = str(told["agent"]).replace("/", " > ")
    wants = f"{told['server']}/{told['tool']}"
    return (
        f"{whole_line(who)} wants {whole_line(wants)}.\n"
        "Exactly this call would be let through from now on, in this project. The permit goes to\n"
        f"{whole_line(str(told['always_place']))}\n"
        "and `remit policy always revoke` takes it back:"
    )


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in whole_text(text).split("\n")]


def plain_table(told: Mapping[str, Any], asks: Sequence[Mapping[str, Any]]) -> str:
    """Return a session as a table and the asks below it: what there is without a screen."""
    agents: Sequence[Mapping[str, Any]] = told["agents"]
    known = {str(row["agent"]) for row in agents}
    rows = [HEADS, *(agent_cells(row, known) for row in agents)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *(f"asks: {ask_line(ask)}" for ask in asks)])
