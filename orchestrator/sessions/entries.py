"""Servers as a file describes them, and what of that a person approves. Values only, read elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple, cast

from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.sessions.approvals import Item, ItemKind, Origin

__all__ = [
    "ConfigWarning",
    "DescriptionTrust",
    "EntryState",
    "Isolation",
    "ServerEntry",
    "ServerTransport",
    "ServersFile",
    "refuse_isolation",
    "server_item",
]


class ServerTransport(Enum):
    """How a server is reached."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class EntryState(Enum):
    """Whether an entry can be used. Each but READY says why in `ServerEntry.problem`."""

    READY = "ready"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"
    CONFIG_ERROR = "config_error"


class DescriptionTrust(Enum):
    """What happens when a server's tools are seen for the first time."""

    ASK = "ask"
    """A person is shown them; until then they cannot be called."""
    FIRST_USE = "first-use"
    """They are pinned as they are; only a later change is asked about."""


class Isolation(Enum):
    """Who shares one process of a server."""

    SESSION = "session"
    AGENT = "agent"


class ConfigWarning(NamedTuple):
    """Something that was left out of account, and where it stands."""

    message: str
    where: Where
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One server of a file. What was expanded may be secret and is not in the repr.

    Attributes:
        name: the label, by which policies know the server.
        state: whether it can be used; `problem` says why not.
        command: the program, expanded; empty unless READY.
        args: its arguments, expanded.
        env: variables for it beside the usual few, expanded.
        cwd: its folder; the project's where the entry names none.
        timeout_seconds: for one call; None takes the session's.
        raw: the entry as it stands in the file, unexpanded.
        digest: SHA-256 over the label, `raw` and the files that the command names (project's only).
        files: those files, each with its SHA-256.
        variables: the environment's variables that the entry wants.
    """

    name: ServerName
    transport: ServerTransport
    state: EntryState
    origin: Origin
    where: Where
    digest: str
    raw: Mapping[str, object] = field(repr=False)
    problem: ConfigError | None = None
    command: str = field(default="", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path
    timeout_seconds: float | None = None
    description_trust: DescriptionTrust = DescriptionTrust.ASK
    isolate: Isolation = Isolation.SESSION
    protocol: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersFile:
    """The entries of a file, in its order, and what was left out of account."""

    entries: tuple[ServerEntry, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()


def refuse_isolation(entry: ServerEntry) -> None:
    """Raise ConfigError for an entry that wants one process for each agent.

    Sharing the process would be less than what the file asks for.
    """
    if entry.isolate is Isolation.AGENT:
        raise ConfigError(
            f"server {entry.name!r} asks for a process of its own for each agent, "
            "which this version cannot give",
            code="E-SERVER-ISOLATE",
            fix='remove "isolate", or keep the server to one agent',
            where=entry.where,
        )


def server_item(entry: ServerEntry) -> Item:
    """Return what a person approves: the command as it stands, and all it would be given.

    Values of variables are not shown: a file should not hold secrets, but many do.
    """
    raw_args = cast("list[str]", entry.raw.get("args", []))
    env = cast("Mapping[str, str]", entry.raw.get("env", {}))
    lines = ["runs: " + shlex.join([str(entry.raw.get("command", "")), *raw_args])]
    if "cwd" in entry.raw:
        lines.append(f"in: {entry.raw['cwd']}")
    if env:
        lines.append("sets the variables: " + ", ".join(env))
    if entry.variables:
        lines.append("reads your variables: " + ", ".join(entry.variables))
    lines += [f"file: {path} (SHA-256 {digest[:12]}…)" for path, digest in entry.files]
    lines.append(f"from: {entry.where}")
    return Item(
        name=entry.name,
        kind=ItemKind.SERVER,
        digest=entry.digest,
        origin=entry.origin,
        description_lines=tuple(lines),
    )
