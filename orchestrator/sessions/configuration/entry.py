"""One entry of a servers file, read: what may be used of it, and why the rest may not.

Connects to nothing and approves nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict

from mcp_client.protocol.eras import Opening
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.urls import fault_of_file_uri
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table, canonical_digest
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.core.nearest import did_you_mean, nearest
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration.keys import (
    KNOWN,
    LOGIN,
    NARROWING,
    REMOTE,
    STARTED,
    TRANSPORTS,
    WIDENING,
    unknown_key,
)
from orchestrator.sessions.configuration.minimum import fault_of_minimum, required_by
from orchestrator.sessions.configuration.source import OUT_VARIABLE, ServersSource
from orchestrator.sessions.entries import (
    ConfigWarning,
    DescriptionTrust,
    EntryState,
    Isolation,
    ServerEntry,
    ServerTransport,
    in_the_clear,
)
from orchestrator.sessions.fingerprints import CommandLine, Digests
from orchestrator.sessions.interpolation import InterpolationError, Variables, variables_in
from orchestrator.sessions.oauth import LOGIN_KEYS, NO_LOGIN, LoginTexts, read_login
from orchestrator.sessions.remote import RemoteTexts, fault_of, read_remote
from orchestrator.sessions.sandbox import Sandbox, read_sandbox, undoes_it

__all__ = ["EntryReading"]

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WORDS_MAX: Final = 1_000
"""Arguments of one command, or variables of one entry; a kernel takes little more in practice."""
ENTRY_CHARS_MAX: Final = 32 * 1024
"""Program, arguments and variables of a project's entry: a person reads all of it."""
ROOTS_MAX: Final = 64
"""Places that one server is told of; a person reads each before approving a project's entry."""
_CLIENT_LIMITS: Final = ClientLimits()
_MILLISECONDS_MAX: Final = 24 * 60 * 60 * 1000
_OPENINGS: Final = {opening.value: opening for opening in Opening}


class _Options(TypedDict):
    timeout_seconds: float | None
    description_trust: DescriptionTrust
    isolate: Isolation
    protocol: Opening
    sandbox: Sandbox | None
    asked_sandbox: Sandbox | None


class EntryReading:
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
        roots = table.strings("roots", ())
        if len(args) > WORDS_MAX or len(env) > WORDS_MAX:
            raise table.error(f"more than {WORDS_MAX} arguments or variables")
        started = transport is ServerTransport.STDIO
        remote = RemoteTexts(url="", headers={}) if started else read_remote(table)
        texts = (command, *args, *env.values(), cwd)
        # First, since no text that has no canonical form may reach a path or a program.
        raw_digest = self._raw_digest()
        options = self._options()
        confining = _paths_of(options["asked_sandbox"])
        expanded = [self._expand(text) for text in texts]
        reached = remote.expanded([self._expand(text) for text in remote.texts])
        granted = self._roots(roots)
        login = self._login() if not started else LoginTexts()
        known = login.entry([self._expand(text) for text in login.texts])
        folder = self._source.project / expanded[-1]
        command_line = None
        files: tuple[tuple[str, str], ...] = ()
        if not started:
            self._check_remote(remote, reached, login)
        elif self._source.origin is Origin.PROJECT:
            search = env.get("PATH") and expanded[1 + len(args) + list(env).index("PATH")]
            command_line = self._command_line(texts, expanded, folder, search)
            if not self._is_too_long((*env, *texts, *roots, *confining)):
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
            login=known if ready else NO_LOGIN,
            roots=granted if ready else (),
            files=files,
            command_line=command_line if ready else None,
            variables=_wanted((*texts, *roots, *remote.texts, *login.texts, *confining)),
            **options,
        )
        return entry, self._warnings

    def _transport(self) -> ServerTransport:
        table = self._table
        has_url = "url" in table or "httpUrl" in table
        if "type" in table:
            transport = TRANSPORTS[table.choice("type", TRANSPORTS)]
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
            if near is not None and name not in KNOWN:
                return f"{safe_line(name, reveal=True)!r}: did you mean {near!r}?"
        return "add the key " + " or ".join(repr(name) for name in wanted)

    def _look_at_keys(self, transport: ServerTransport) -> None:
        started = transport is ServerTransport.STDIO
        known = KNOWN if started else (KNOWN - STARTED) | REMOTE
        for name in self._table:
            if name in WIDENING:
                self._warn(
                    name,
                    f"{name!r} of server {self._name} is ignored: no file gives consent",
                    "write a permit in a policy",
                )
            elif name in NARROWING:
                if self._table.value[name] not in (False, None, [], {}):
                    self._spoil(
                        f"server {self._name} asks for {name!r}, which is not supported here; "
                        "without it the server could do more",
                        name,
                        fix="remove the key, and forbid in a policy what must not be called",
                    )
            elif name in LOGIN and not started:
                self._warn(
                    name,
                    f"{name!r} of server {self._name} is ignored: it is another client's word",
                    "write it as 'oauth', with clientId and scopes",
                )
            elif name not in known:
                self._warnings.append(unknown_key(self._table, name, known))

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
        asked = self._asked_sandbox()
        opened = self._sandbox(asked)
        fault = fault_of_minimum(self._name, table, self._source, asked, opened)
        self._problem = self._problem or fault
        return _Options(
            timeout_seconds=None if milliseconds is None else milliseconds / 1000,
            description_trust=self._description_trust(),
            isolate=Isolation(
                table.choice("isolate", [item.value for item in Isolation], Isolation.SESSION.value)
            ),
            protocol=_OPENINGS.get(protocol, Opening.LEGACY_FIRST),
            sandbox=required_by(self._source, opened),
            asked_sandbox=required_by(self._source, asked),
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

    def _roots(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the places that it may be told of. What is no file URI spoils the entry."""
        roots = tuple(self._expand(text) for text in texts[:ROOTS_MAX])
        if len(texts) > ROOTS_MAX:
            self._spoil(f"server {self._name} has more than {ROOTS_MAX} roots", "roots")
        for uri in roots:
            fault = fault_of_file_uri(uri, chars_max=_CLIENT_LIMITS.uri_chars_max)
            if fault:
                self._spoil(
                    f"server {self._name}: {fault}",
                    "roots",
                    fix='write it as "file://${workspaceFolder}/docs"',
                )
        return roots

    def _asked_sandbox(self) -> Sandbox | None:
        """Read what it is to be confined to. What is not understood spoils the entry: it narrows."""
        if "command" not in self._table or self._table.value.get("sandbox") in (None, False):
            return None
        try:
            table = self._table.optional("sandbox")
            return None if table is None else read_sandbox(table)
        except ConfigError as error:
            self._spoil(f"server {self._name}: {error.message}", "sandbox", fix=error.fix)
            return None

    def _sandbox(self, asked: Sandbox | None) -> Sandbox | None:
        """Expand it. What would open all that a sandbox closes spoils the entry."""
        if asked is None:
            return None
        folder = str(self._source.project)
        expanded = [self._expand(path) for path in asked.paths]
        opened = [os.path.normpath(os.path.join(folder, path)) for path in expanded]  # noqa: PTH118
        if any(undoes_it(path, str(self._source.home)) for path in opened):
            self._spoil(
                f"the sandbox of server {self._name} opens a folder that holds all of yours",
                "sandbox",
                fix="name the folders in it that the server needs",
            )
        count = len(asked.writes)
        return replace(asked, writes=tuple(opened[:count]), reads=tuple(opened[count:]))

    def _login(self) -> LoginTexts:
        """Read how it is logged in to. What only the person may give up, no project gives up."""
        login = read_login(self._table)
        oauth = self._table.optional("oauth")
        if oauth is not None:
            unknown = [name for name in oauth if name not in LOGIN_KEYS]
            self._warnings += [unknown_key(oauth, name, LOGIN_KEYS) for name in unknown]
        if login.pkce_optional and self._source.origin is Origin.PROJECT:
            self._warn(
                "oauth",
                f"'pkceOptional' of server {self._name} is ignored: a project cannot say that a "
                "login be less safe",
                "move the server to your profile",
            )
            login = replace(login, pkce_optional=False)
        return login

    def _check_remote(self, remote: RemoteTexts, reached: RemoteTexts, login: LoginTexts) -> None:
        if self._source.origin is Origin.PROJECT:
            self._is_too_long((*remote.headers, *remote.texts, *login.texts))
        own = any(name.lower() == "authorization" for name in remote.headers)
        if own and "oauth" in self._table:
            self._warn(
                "oauth",
                f"'oauth' of server {self._name} is ignored: its headers hold credentials already",
                "keep one of them",
            )
        if reached.headers and in_the_clear(reached.url):
            self._warn(
                "headers",
                f"the headers of server {self._name} go out unencrypted: whoever is on the way reads "
                "them",
                "use an https address",
            )
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


def _wanted(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the person's variables that these texts want; the run's own is none of them."""
    found = (name for text in texts for name in variables_in(text) if name != OUT_VARIABLE)
    return tuple(dict.fromkeys(found))


def _paths_of(sandbox: Sandbox | None) -> tuple[str, ...]:
    return () if sandbox is None else sandbox.paths
