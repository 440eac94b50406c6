"""A servers file: its entries, in their order, and what was left out of account. Looks into no entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Document, Table, read_json
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.configuration.entry import EntryReading
from orchestrator.sessions.configuration.keys import unknown_key
from orchestrator.sessions.configuration.source import ServersSource
from orchestrator.sessions.entries import ConfigWarning, ServerEntry, ServersFile
from orchestrator.sessions.fingerprints import Digests
from orchestrator.sessions.reading import read_configured

__all__ = ["load_servers", "read_servers"]

_LIMITS: Final = OrchestratorLimits()
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")
_ROOTS: Final = ("mcpServers", "servers", "context_servers")
SERVERS_MAX: Final = 200
"""Entries of one file; each is a process."""


def load_servers(path: Path, source: ServersSource) -> ServersFile:
    """Read a servers file. Raises ConfigError if it is missing, or as `read_servers`."""
    content = read_configured(
        path,
        what="the servers file",
        code="E-SERVERS-FILE",
        fix='make it, or name the right one: servers = "….json"',
    )
    return read_servers(read_json(content, str(path)), source)


def read_servers(document: Document, source: ServersSource) -> ServersFile:
    """Read the entries of a servers file.

    An entry that cannot be used stands there with its state; it stops no other. Raises
    ConfigError, with the place, for what is no entry: a wrong type, a bad label, no way to start.
    """
    root = document.table()
    warnings: list[ConfigWarning] = []
    present = [name for name in _ROOTS if name in root]
    if len(present) != 1:
        near = did_you_mean(next(iter(root), ""), _ROOTS)
        raise root.error(
            "both " + " and ".join(present) if present else "the file names no servers",
            present[-1] if present else "",
            fix="keep one of them" if present else near or 'begin with {"mcpServers": {}}',
        )
    warnings += [unknown_key(root, name, _ROOTS) for name in root if name not in present]
    servers = root.table(present[0])
    if len(servers) > SERVERS_MAX:
        raise root.error(f"more than {SERVERS_MAX} servers", present[0])
    entries: list[ServerEntry] = []
    digests = Digests()
    spelt: dict[str, str] = {}
    for name, table in servers.tables():
        _check_label(servers, name)
        other = spelt.setdefault(name.casefold(), name)
        if other != name:
            raise servers.error(
                f"the labels {other!r} and {name!r} differ only in case",
                name,
                why="a rule for one of them would be read as one for the other",
                fix="rename one of them",
            )
        entry, noticed = EntryReading(ServerName(name), table, source, digests).entry()
        entries.append(entry)
        warnings += noticed
    return ServersFile(entries=tuple(entries), warnings=tuple(warnings))


def _check_label(servers: Table, name: str) -> None:
    shown = safe_line(name, reveal=True, chars_max=80)
    if not _LABEL.fullmatch(name):
        raise servers.error(
            f"not a label for a server: {shown!r}",
            name,
            why="tools are named mcp_<server>_<tool>, which providers bound",
            fix="use at most 48 letters, digits, - and _",
        )
    if name.casefold() == BUILTIN_SERVER:
        raise servers.error(
            f"no server can be called {shown!r}: the built-in tools stand there", name
        )
