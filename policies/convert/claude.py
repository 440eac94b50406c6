"""Claude Code's permission rules, read into a policy. Knows the settings' form, and no file.

Source of the form: Claude Code's documentation of permissions. Rules are `Tool` or `Tool(specifier)`
in the lists `deny`, `ask` and `allow` of `permissions`; deny wins over ask, and ask over allow. Only
rules for MCP tools, `mcp__server` and `mcp__server__tool`, have something here to be about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from policies.convert.result import (
    Converted,
    Loss,
    Widens,
    members,
    policy_text,
    target_text,
)
from policies.parsing import quoted

__all__ = ["read_claude"]

_LISTS: Final = (("deny", "forbid"), ("ask", "ask"), ("allow", "permit"))
_RULE: Final = re.compile(r"(?P<tool>[^()]+)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_ENTRIES_MAX: Final = 10_000
"""Entries of one list: more than that is no list that a person keeps."""


def read_claude(settings: Mapping[str, object], *, name: str = "from_claude") -> Converted:
    """Return the policy that the rules of a settings file are.

    `settings` is the decoded file. What it says of Claude Code's own tools is listed, not carried.
    """
    lists = members(settings.get("permissions"))
    rules: list[str] = []
    losses: list[Loss] = []
    for key, word in _LISTS:
        entries = lists.get(key)
        found = cast("Sequence[object]", entries) if isinstance(entries, list) else ()
        for at, entry in enumerate(found):
            where = f"permissions.{key}[{at}]"
            if at >= _ENTRIES_MAX or not isinstance(entry, str):
                losses.append(Loss(where=where, what=str(entry)[:80], why="this is no rule"))
                continue
            targets, lost = _read(entry, word)
            losses += (
                Loss(where=where, what=entry, why=why, effect=effect) for why, effect in lost
            )
            for target in targets:
                rules.append(f"{word} {quoted(f'{key} {len(rules) + 1}')} call on {target}")
    losses += _modes(lists)
    return Converted(policy_text(name, rules), tuple(losses))


_Lost = tuple[str, Widens]


def _read(entry: str, word: str) -> tuple[list[str], list[_Lost]]:
    """Return the targets of a rule, and what of it was lost."""
    match = _RULE.fullmatch(entry.strip())
    tool = match["tool"].strip() if match else entry
    permit = word == "permit"
    if not match or not tool.startswith("mcp__"):
        why = "this is about a tool of Claude Code's own, which no MCP server has"
        return [], [(why, Widens.SAME)]
    if match["specifier"] is not None and permit:
        return [], [
            ("Claude Code skips MCP rules with parentheses, so this allows nothing", Widens.SAME)
        ]
    pieces = tool.removeprefix("mcp__").split("__")
    lost: list[_Lost] = []
    if match["specifier"] is not None:
        lost.append(
            ("what stands in parentheses is left out: it is about every call", Widens.NARROWER)
        )
    if "*" in pieces[0]:
        if permit:
            return [], [("a star for servers allows nothing in Claude Code", Widens.SAME)]
        if tool != "mcp__*":
            lost.append(("a star within a server's name: it is about any server", Widens.NARROWER))
        return [target_text(None, "*")], lost
    if not all(pieces):
        return [], [("this names no server", Widens.SAME if permit else Widens.NARROWER)]
    readings = list(_readings(pieces))
    if len(readings) > 1 and permit:
        return [], [("it is unclear where the server's name ends", Widens.NARROWER)]
    if len(readings) > 1:
        lost.append(
            ("it is unclear where the server's name ends: each reading is meant", Widens.NARROWER)
        )
    return [target_text(server, name) for server, name in readings], lost


def _readings(pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each way to cut a joined name into server and tool."""
    if len(pieces) == 1:
        yield pieces[0], "*"
    for cut in range(1, len(pieces)):
        yield "__".join(pieces[:cut]), "__".join(pieces[cut:])


def _modes(lists: Mapping[str, object]) -> Iterator[Loss]:
    mode = lists.get("defaultMode")
    yield Loss(
        where="permissions.defaultMode",
        what=str(mode or "default")[:80],
        why="what no rule allows is denied here, in every mode",
    )
    if "additionalDirectories" in lists:
        yield Loss(
            where="permissions.additionalDirectories",
            what="",
            why="folders are for Claude Code's own tools",
            effect=Widens.SAME,
        )
