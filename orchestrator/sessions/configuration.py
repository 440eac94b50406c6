"""Servers files: what stands in them, what may be used of it, and why the rest may not.

Reads `.mcp.json` as other clients write it. Connects to nothing and approves nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from mcp_client.protocol.eras import Opening
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Document, Table, canonical_digest, read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean, nearest
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.entries import (
    ConfigWarning,
    DescriptionTrust,
    EntryState,
    Isolation,
    ServerEntry,
    ServersFile,
    ServerTransport,
    merge_servers,
    server_item,
)
from orchestrator.sessions.fingerprints import CommandLine, Digests
from orchestrator.sessions.interpolation import InterpolationError, Variables, variables_in
from orchestrator.sessions.reading import TooLargeError, read_regular
from orchestrator.sessions.remote import RemoteTexts, fault_of, read_remote

__all__ = [
    "OUT_VARIABLE",
    "ConfigWarning",
    "DescriptionTrust",
    "EntryState",
    "Isolation",
    "ServerEntry",
    "ServerTransport",
    "ServersFile",
    "ServersSource",
    "load_servers",
    "merge_servers",
    "read_servers",
    "server_item",
]

_LIMITS: Final = OrchestratorLimits()
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OUT_VARIABLE: Final = "REMIT_OUT"
"""The run's output folder, for every servers file: it is remit's own word and no secret."""
SERVERS_MAX: Final = 200
"""Entries of one file; each is a process."""
WORDS_MAX: Final = 1_000
"""Arguments of one command, or variables of one entry; a kernel takes little more in practice."""
ENTRY_CHARS_MAX: Final = 32 * 1024
"""Program, arguments and variables of a project's entry: a person reads all of it."""
_MILLISECONDS_MAX: Final = 24 * 60 * 60 * 1000
_OPENINGS: Final = {opening.value: opening for opening in Opening}
_ROOTS: Final = ("mcpServers", "servers", "context_servers")
_KNOWN: Final = frozenset(
    {
        "args", "command", "cwd", "description_trust", "disabled", "enabled", "env", "isolate",
        "protocol", "timeout", "type",
    }
)  # fmt: skip
_STARTED: Final = frozenset({"args", "command", "cwd", "env"})
_REMOTE: Final = frozenset({"auth", "headers", "headersHelper", "httpUrl", "oauth", "url"})
_LOGIN: Final = ("auth", "oauth")
_WIDENING: Final = frozenset(
    {"alwaysAllow", "autoApprove", "autoApproveTools", "default_tools_approval_mode", "trust"}
)
_NARROWING: Final = frozenset(
    {
        "disabledTools", "disabled_tools", "enabled_tools", "excludeTools", "includeTools",
        "sandbox", "sandboxEnabled",
    }
)  # fmt: skip


_TRANSPORTS: Final = {
    "stdio": ServerTransport.STDIO,
    "http": ServerTransport.HTTP,
    "streamable-http": ServerTransport.HTTP,
    "streamable_http": ServerTransport.HTTP,
    "streamableHttp": ServerTransport.HTTP,
    "sse": ServerTransport.SSE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersSource:
    """Whose file it is, and what it may be expanded with.

    `project` is the folder that `${workspaceFolder}` stands for. `allow_variables` are the
    variables that a project's file may see; the others may see all of them. `out` is the run's
    output folder, which `${REMIT_OUT}` stands for; empty where there is no run.
    """

    origin: Origin
    project: Path
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    allow_variables: frozenset[str] = frozenset()
    out: str = ""

    @property
    def variables(self) -> Variables:
        """What `${…}` may stand for."""
        return Variables(
            environ={**self.environ, OUT_VARIABLE: self.out},
            workspace=str(self.project),
            home=str(self.home),
            allowed=self.allow_variables | {OUT_VARIABLE}
            if self.origin is Origin.PROJECT
            else None,
        )


def load_servers(path: Path, source: ServersSource) -> ServersFile:
    """Read a servers file. Raises ConfigError if it is missing, or as `read_servers`."""
    try:
        content = read_regular(path, bytes_max=_LIMITS.document_bytes_max)
    except TooLargeError:
        raise ConfigError(
            f"the servers file {path} has more than {_LIMITS.document_bytes_max} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=Where(str(path)),
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the servers file {path}: {error.strerror}",
            code="E-SERVERS-FILE",
            fix='make it, or name the right one: servers = "….json"',
            where=Where(str(path)),
        ) from error
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
    warnings += [_unknown(root, name, _ROOTS) for name in root if name not in present]
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
        entry, noticed = _Reading(ServerName(name), table, source, digests).entry()
        entries.append(entry)
        warnings += noticed
    return ServersFile(entries=tuple(entries), warnings=tuple(warnings))


class _Options(TypedDict):
    timeout_seconds: float | None
    description_trust: DescriptionTrust
    isolate: Isolation
    protocol: Opening


class _Reading:
    """One entry, being read. Wrong types are raised; what makes it unusable is kept."""

    def __init__(
        self, name: ServerName, table: Table, source: ServersSource, digests: Digests
    ) -> None:
        self._name = name
        self._digests = digests
        self._table = table
        self._source = source
        self._warnings: list[ConfigWarning] = []
        self._problem: ConfigError | None = None

    def entry(self) -> tuple[ServerEntry, list[ConfigWarning]]:
        """Return the entry and what was noticed on the way."""
        table = self._table
        transport = self._transport()
        self._look_at_keys(transport)
        command = table.text("command", "")
        args = table.strings("args", ())
        env = self._env()
        cwd = table.text("cwd", "")
        if len(args) > WORDS_MAX or len(env) > WORDS_MAX:
            raise table.error(f"more than {WORDS_MAX} arguments or variables")
        options = self._options()
        started = transport is ServerTransport.STDIO
        remote = RemoteTexts(url="", headers={}) if started else read_remote(table)
        texts = (command, *args, *env.values(), cwd)
        # First, since no text that has no canonical form may reach a path or a program.
        raw_digest = self._raw_digest()
        expanded = [self._expand(text) for text in texts]
        reached = remote.expanded([self._expand(text) for text in remote.texts])
        folder = self._source.project / expanded[-1]
        command_line = None
        files: tuple[tuple[str, str], ...] = ()
        if not started:
            self._check_remote(remote, reached)
        elif self._source.origin is Origin.PROJECT:
            search = env.get("PATH") and expanded[1 + len(args) + list(env).index("PATH")]
            command_line = self._command_line(texts, expanded, folder, search)
            if not self._is_too_long((*env, *texts)):
                files = self._files(command_line)
        state = self._state(transport)
        ready = state is EntryState.READY
        entry = ServerEntry(
            name=self._name,
            transport=transport,
            state=state,
            problem=None if ready else self._problem or self._state_error(state),
            origin=self._source.origin,
            where=table.where(),
            raw=table.value,
            digest=canonical_digest(
                {"name": self._name, "entry": raw_digest, "files": dict(files)}
            ),
            command=expanded[0] if ready else "",
            args=tuple(expanded[1 : 1 + len(args)]) if ready else (),
            env=dict(zip(env, expanded[1 + len(args) : -1], strict=True)) if ready else {},
            cwd=folder,
            url=reached.url if ready else "",
            headers=reached.headers if ready else {},
            files=files,
            command_line=command_line if ready else None,
            variables=tuple(
                dict.fromkeys(
                    name
                    for text in (*texts, *remote.texts)
                    for name in variables_in(text)
                    if name != OUT_VARIABLE  # the run's, not the person's
                )
            ),
            **options,
        )
        return entry, self._warnings

    def _transport(self) -> ServerTransport:
        table = self._table
        has_url = "url" in table or "httpUrl" in table
        if "type" in table:
            transport = _TRANSPORTS[table.choice("type", _TRANSPORTS)]
        else:
            transport = ServerTransport.HTTP if has_url else ServerTransport.STDIO
        if "command" in table and (has_url or transport is not ServerTransport.STDIO):
            raise table.error(
                f"server {self._name} has a command and an address",
                "command",
                fix="keep one of them",
            )
        if transport is ServerTransport.STDIO and not table.text("command", ""):
            raise table.error(
                f"server {self._name} has nothing to start or to connect to",
                fix=self._near("command", "url"),
            )
        if transport is not ServerTransport.STDIO and not has_url:
            raise table.error(f"server {self._name} has no url", fix=self._near("url"))
        return transport

    def _near(self, *wanted: str) -> str:
        for name in self._table:
            near = nearest(name, wanted)
            if near is not None and name not in _KNOWN:
                return f"{safe_line(name, reveal=True)!r}: did you mean {near!r}?"
        return "add the key " + " or ".join(repr(name) for name in wanted)

    def _look_at_keys(self, transport: ServerTransport) -> None:
        started = transport is ServerTransport.STDIO
        known = _KNOWN if started else (_KNOWN - _STARTED) | _REMOTE
        for name in self._table:
            if name in _WIDENING:
                self._warn(
                    name,
                    f"{name!r} of server {self._name} is ignored: no file gives consent",
                    "write a permit in a policy",
                )
            elif name in _NARROWING:
                if self._table.value[name] not in (False, None, [], {}):
                    self._spoil(
                        f"server {self._name} asks for {name!r}, which is not supported here; "
                        "without it the server could do more",
                        name,
                        fix="remove the key, and forbid in a policy what must not be called",
                    )
            elif name in _LOGIN and not started:
                self._warn(
                    name,
                    f"{name!r} of server {self._name} is ignored: this version logs in nowhere",
                    "send what the server wants in a header",
                )
            elif name not in known:
                self._warnings.append(_unknown(self._table, name, known))

    def _env(self) -> dict[str, str]:
        table = self._table.optional("env")
        if table is None:
            return {}
        found: dict[str, str] = {}
        for name in table:
            if not _VARIABLE_NAME.fullmatch(name):
                shown = safe_line(name, reveal=True, chars_max=80)
                raise table.error(f"not the name of a variable: {shown!r}", name)
            found[name] = table.text(name)
        return found

    def _options(self) -> _Options:
        table = self._table
        milliseconds = table.number("timeout", None)
        if milliseconds is not None and not 0 < milliseconds <= _MILLISECONDS_MAX:
            raise table.error(
                "a timeout is in milliseconds, more than 0 and at most a day", "timeout"
            )
        protocol = table.text("protocol", Opening.LEGACY_FIRST.value)
        if protocol not in _OPENINGS:
            self._spoil(
                f"server {self._name} wants a protocol that cannot be asked for",
                "protocol",
                fix=did_you_mean(protocol, _OPENINGS) or "use one of " + ", ".join(_OPENINGS),
            )
        return _Options(
            timeout_seconds=None if milliseconds is None else milliseconds / 1000,
            description_trust=self._description_trust(),
            isolate=Isolation(
                table.choice("isolate", [item.value for item in Isolation], Isolation.SESSION.value)
            ),
            protocol=_OPENINGS.get(protocol, Opening.LEGACY_FIRST),
        )

    def _description_trust(self) -> DescriptionTrust:
        origin = self._source.origin
        default = DescriptionTrust.FIRST_USE if origin is Origin.BUILTIN else DescriptionTrust.ASK
        allowed = [item.value for item in DescriptionTrust]
        wanted = DescriptionTrust(self._table.choice("description_trust", allowed, default.value))
        if wanted is DescriptionTrust.FIRST_USE and origin is Origin.PROJECT:
            self._warn(
                "description_trust",
                f"'description_trust' of server {self._name} is ignored: a project cannot say that "
                "its own servers be trusted",
                "move the server to your profile",
            )
            return DescriptionTrust.ASK
        return wanted

    def _raw_digest(self) -> str:
        try:
            return canonical_digest(self._table.value)
        except ValueError as error:
            raise self._table.error(
                f"server {self._name} holds a value that has no digest",
                why=safe_line(str(error)),
                fix="use numbers below 2**53 and whole Unicode characters",
            ) from None

    def _expand(self, text: str) -> str:
        try:
            expanded = self._source.variables.expand(text)
        except InterpolationError as error:
            self._spoil(f"server {self._name}: {error}", fix=error.fix)
            return ""
        if "\x00" in expanded:
            self._spoil(f"server {self._name}: no program can be given a NUL character")
            return ""
        return expanded

    def _check_remote(self, remote: RemoteTexts, reached: RemoteTexts) -> None:
        if self._source.origin is Origin.PROJECT:
            self._is_too_long((*remote.headers, *remote.texts))
        fault = "" if self._problem is not None else fault_of(self._name, reached)
        if fault:
            self._spoil(f"server {self._name}: {fault}")

    def _is_too_long(self, texts: Sequence[str]) -> bool:
        if sum(map(len, texts)) <= ENTRY_CHARS_MAX:
            return False
        self._spoil(
            f"server {self._name} has more than {ENTRY_CHARS_MAX} characters of command, "
            "arguments, variables and headers, more than anybody reads before approving it",
            fix="put it into a script of the project",
        )
        return True

    def _command_line(
        self, texts: Sequence[str], expanded: Sequence[str], folder: Path, search: str | None
    ) -> CommandLine:
        """Return what decides which files are run: the words as they stand, and as they become."""
        source = self._source
        folders_only = Variables(
            environ={},
            workspace=str(source.project),
            home=str(source.home),
            allowed=frozenset(),
        )
        words: list[str] = []
        for text in texts[:-1]:  # the last one is the folder
            try:
                words.append(folders_only.expand(text))
            except InterpolationError:
                words.append(text)
        return CommandLine(
            words=tuple(dict.fromkeys((*words, *expanded[:-1]))),
            program=expanded[0],
            search=source.environ.get("PATH", os.defpath) if search is None else search,
            project=source.project,
            folder=folder,
        )

    def _files(self, command_line: CommandLine) -> tuple[tuple[str, str], ...]:
        """Return the digests of the files that the entry names."""
        try:
            return command_line.files(self._digests)
        except ConfigError as error:
            self._spoil(f"server {self._name}: {error.message}", fix=error.fix)
            return ()

    def _state(self, transport: ServerTransport) -> EntryState:
        table = self._table
        if table.flag("disabled", default=False) or not table.flag("enabled", default=True):
            self._problem = None
            return EntryState.DISABLED
        if transport is not ServerTransport.STDIO and "headersHelper" in table:
            self._problem = None
            return EntryState.UNSUPPORTED
        return EntryState.READY if self._problem is None else EntryState.CONFIG_ERROR

    def _state_error(self, state: EntryState) -> ConfigError:
        disabled = state is EntryState.DISABLED
        return ConfigError(
            f"server {self._name} is disabled"
            if disabled
            else f"server {self._name} has its headers from a program, which this version cannot do",
            code="E-SERVER-DISABLED" if disabled else "E-SERVER-UNSUPPORTED",
            fix="remove 'disabled'"
            if disabled
            else "write them as 'headers', with ${…} for secrets",
            where=self._table.where(),
        )

    def _spoil(self, message: str, name: str = "", *, fix: str = "") -> None:
        """Make the entry unusable; the first reason is the one that is told."""
        if self._problem is None:
            self._problem = ConfigError(
                message, code="E-SERVER-CONFIG", fix=fix, where=self._table.where(name)
            )

    def _warn(self, name: str, message: str, fix: str) -> None:
        self._warnings.append(ConfigWarning(message, self._table.where(name), fix))


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


def _unknown(table: Table, name: str, known: Collection[str]) -> ConfigWarning:
    shown = safe_line(name, reveal=True, chars_max=80)
    return ConfigWarning(
        f"unknown key {shown!r} is ignored", table.where(name), did_you_mean(name, known)
    )
