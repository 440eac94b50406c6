"""Servers as a file describes them, and what of that a person approves. The file is read elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

from mcp_client.protocol.eras import Opening
from mcp_client.protocol.limits import ClientLimits
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.fingerprints import CommandLine
from orchestrator.sessions.oauth import NO_LOGIN, LoginEntry
from orchestrator.sessions.sandbox import Sandbox, sandbox_lines
from orchestrator.sessions.words import loads_code

__all__ = [
    "FETCH_SECONDS_MAX",
    "ConfigWarning",
    "DescriptionTrust",
    "EntryState",
    "Isolation",
    "ServerEntry",
    "ServerTransport",
    "ServersFile",
    "in_the_clear",
    "merge_servers",
    "refuse_changed",
    "server_item",
]


FETCH_SECONDS_MAX: Final = 180.0
"""From a start to the answer to `initialize` where a package is fetched first. A fetch that is cut off
may leave half a package behind, that no later start gets by."""
_PACKAGE_RUNNERS: Final = frozenset({"npx", "uvx", "bunx", "pipx", "pnpx"})
_IMAGE_RUNNERS: Final = frozenset({"docker", "podman"})
_NAMES_SHOWN_MAX: Final = 10


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
        url: where it is, expanded; empty if it is started.
        headers: what is sent to it with every request, expanded.
        login: how it is logged in to; of use where `wants_login`.
        timeout_seconds: for one call; None takes the session's.
        raw: the entry as it stands in the file, unexpanded.
        digest: SHA-256 over the label, `raw` and the files that the command names (project's only).
        roots: the file URIs that it may be told of, expanded, if a policy lets it.
        files: those files, each with its SHA-256.
        variables: the environment's variables that the entry wants.
        command_line: what decides which files are run (project's only, and only if READY).
        sandbox: what it is confined to, expanded; None for nothing.
        asked_sandbox: the same as it stands in the file.
        unconfined: it has a sandbox, which could not be had and is not required.
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
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    login: LoginEntry = field(default=NO_LOGIN, repr=False)
    timeout_seconds: float | None = None
    description_trust: DescriptionTrust = DescriptionTrust.ASK
    isolate: Isolation = Isolation.SESSION
    roots: tuple[str, ...] = ()
    protocol: Opening = Opening.LEGACY_FIRST
    files: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()
    command_line: CommandLine | None = field(default=None, repr=False)
    sandbox: Sandbox | None = None
    asked_sandbox: Sandbox | None = None
    unconfined: bool = False

    @property
    def is_unpinned(self) -> bool:
        """Whether its program fetches the newest version of a package at each start."""
        return self._runner in _PACKAGE_RUNNERS and not any(map(_names_version, self.args))

    @property
    def start_seconds(self) -> float:
        """How long it may take to be there: a first start may have to download all of it."""
        fetches = self._runner in _PACKAGE_RUNNERS or self._runner in _IMAGE_RUNNERS
        return FETCH_SECONDS_MAX if fetches else ClientLimits().initialize_seconds_max

    @property
    def _runner(self) -> str:
        return self.command.rpartition("/")[2]

    @property
    def wants_login(self) -> bool:
        """Whether it can be logged in to: at a URL, encrypted, and without credentials of its own."""
        return (
            self.transport is not ServerTransport.STDIO
            and not in_the_clear(self.url)
            and not any(name.lower() == "authorization" for name in self.headers)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersFile:
    """The entries of a file, in its order, and what was left out of account."""

    entries: tuple[ServerEntry, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()


def merge_servers(
    profile: ServersFile, project: ServersFile, *, owner: str = "profile"
) -> ServersFile:
    """Return the entries of both. A project never shadows a label of the profile, and it is said.

    `owner` says whose the first ones are.
    Labels that differ only in case are one to a person, so they are one here.
    """
    taken = {entry.name.casefold(): entry for entry in profile.entries}
    kept: list[ServerEntry] = []
    shadowed: list[ConfigWarning] = []
    for entry in project.entries:
        other = taken.get(entry.name.casefold())
        if other is None:
            kept.append(entry)
            continue
        shadowed.append(
            ConfigWarning(
                f"the project's server {entry.name} is left out: the {owner} has that name",
                entry.where,
                f"rename it here, or remove {other.where}",
            )
        )
    return ServersFile(
        entries=(*profile.entries, *kept),
        warnings=(*profile.warnings, *project.warnings, *shadowed),
    )


def refuse_changed(entry: ServerEntry) -> None:
    """Raise ConfigError if the files that would be run are not those that the digest is over.

    Call it right before the process starts: a person may have looked at them for a while. Blocks.
    """
    if entry.command_line is None:
        return
    now = dict(entry.command_line.files())
    known = dict(entry.files)
    changed = sorted(name for name in now | known if now.get(name) != known.get(name))
    if changed:
        raise ConfigError(
            f"server {entry.name!r} was not started: not what was approved any more: "
            + ", ".join(safe_line(name, reveal=True) for name in changed[:_NAMES_SHOWN_MAX]),
            code="E-SERVER-CHANGED",
            why="these files changed after they were read, and before they were run",
            fix="look at them, and start again",
            where=entry.where,
        )


def server_item(entry: ServerEntry) -> Item:
    """Return what a person approves: all that stands in the file, and what it would run or reach.

    Values of variables are shown as the file has them: who can read the prompt can read the file,
    and a value may decide what is run. What `${…}` stands for is not shown: that is the person's.
    """
    lines = _started(entry) if entry.transport is ServerTransport.STDIO else _reached(entry)
    raw_roots = cast("list[str]", entry.raw.get("roots", []))
    if entry.isolate is Isolation.AGENT:
        lines.append("once more for each agent that calls it: none shares its process, or session")
    lines += sandbox_lines(entry.asked_sandbox)
    lines += [f"is told of this place of yours, if a policy lets it: {uri}" for uri in raw_roots]
    if entry.variables:
        lines.append("reads your variables: " + ", ".join(entry.variables))
    for path, digest in entry.files:
        lines += [f"file: {path}", f"  SHA-256 {digest}"]
    if entry.command_line is not None:
        lines.append("not looked at: what these load in their turn, such as imports and packages")
    lines.append(f"from: {entry.where}")
    return Item(
        name=entry.name,
        kind=ItemKind.SERVER,
        digest=entry.digest,
        origin=entry.origin,
        description_lines=tuple(lines),
    )


def _started(entry: ServerEntry) -> list[str]:
    raw_args = cast("list[str]", entry.raw.get("args", []))
    env = cast("Mapping[str, str]", entry.raw.get("env", {}))
    lines = ["runs: " + shlex.join([str(entry.raw.get("command", "")), *raw_args])]
    if entry.is_unpinned:
        lines.append("NO VERSION IS NAMED: whatever its package is at each start is what runs")
    if entry.command_line is not None:
        program = entry.command_line.resolve()
        lines.append(f"program: {program or 'not found in the PATH that it would be started with'}")
    if "cwd" in entry.raw:
        lines.append(f"in: {entry.raw['cwd']}")
    for name, value in env.items():
        mark = " (MAY DECIDE WHICH CODE IS RUN)" if loads_code(name) else ""
        lines.append(f"sets{mark}: {name}={shlex.quote(value)}")
    return lines


def _names_version(word: str) -> bool:
    """Return whether an argument names one version of a package."""
    name, at, version = word.rpartition("@")
    return "==" in word or (bool(at) and bool(name) and version[:1].isdigit())


def in_the_clear(url: str) -> bool:
    """Return whether what is sent to an address leaves this machine without encryption."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False  # it cannot be reached either
    if parts.scheme.lower() != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def _reached(entry: ServerEntry) -> list[str]:
    url = str(entry.raw.get("httpUrl", entry.raw.get("url", "")))
    headers = cast("Mapping[str, str]", entry.raw.get("headers", {}))
    lines = [f"connects to: {url}"]
    if not url.isascii() or "xn--" in url.lower():
        lines.append("NOT ALL OF THIS ADDRESS IS PLAIN LETTERS: it may look like another")
    if headers and in_the_clear(entry.url or url):
        lines.append("NOT ENCRYPTED: whoever is on the way reads what is sent, its headers too")
    lines += [f"sends with every request: {name}: {value}" for name, value in headers.items()]
    oauth = cast("Mapping[str, object]", entry.raw.get("oauth", {}))
    return lines + [f"logs in with {name}: {value}" for name, value in oauth.items()]
