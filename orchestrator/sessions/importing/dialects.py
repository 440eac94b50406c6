"""How each client writes a server, as rewriting rules. Reads and writes no file.

A rule never widens: what would have narrowed a server in its client, and cannot be said here, turns
the entry off until a person has written it as a policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.importing.clients import Client, ServerTable

__all__ = ["NAME_CHARS_MAX", "ImportedEntry", "rewrite_server", "rewrite_servers"]

NAME_CHARS_MAX: Final = 48
"""A label of a servers file."""

_NOT_A_LABEL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_INPUT: Final = re.compile(r"\$\{input:([^}]+)\}")
_SHELL_FORM: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_KEPT: Final = ("command", "args", "env", "cwd", "url", "headers", "oauth")
_CONSENT: Final = frozenset(
    {
        "alwaysAllow", "alwaysLoad", "autoApprove", "autoApproveTools",
        "default_tools_approval_mode", "trust",
    }
)  # fmt: skip
_NARROWS: Final = frozenset(
    {
        "disabledTools", "disabled_tools", "enabled_tools", "excludeTools", "includeTools",
        "sandbox", "sandboxEnabled", "tools",
    }
)  # fmt: skip
_HARMLESS: Final = frozenset(
    {
        "description", "dev", "gallery", "required", "source", "startup_timeout_ms",
        "startup_timeout_sec", "supports_parallel_tool_calls", "title", "version",
    }
)  # fmt: skip
_HTTP: Final = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})


@dataclass(slots=True, kw_only=True)
class ImportedEntry:
    """One server, rewritten.

    Attributes:
        name: the label it gets.
        source: the label that its client has.
        entry: the entry for a servers file; empty if it cannot be carried over.
        notes: what is different here, for a person. Never a value of the entry.
        variables: what has to be set in the environment for it.
    """

    name: str
    source: str
    entry: dict[str, object] = field(repr=False)
    notes: list[str] = field(default_factory=list[str])
    variables: list[str] = field(default_factory=list[str])


def rewrite_servers(tables: Iterable[ServerTable], client: Client) -> tuple[ImportedEntry, ...]:
    """Rewrite the servers of a client; each has a label of its own.

    A server that stands twice, as Claude Code's own and as its project's, is the later one.
    """
    found: dict[str, ImportedEntry] = {}
    for server in tables:
        entry = rewrite_server(server, client)
        found.pop(entry.source, None)
        entry.name = _unique(entry.name, {other.name.casefold() for other in found.values()})
        if entry.name != entry.source:
            entry.notes.insert(0, f"is called {entry.name} here: labels are plain letters")
        found[entry.source] = entry
    return tuple(found.values())


def rewrite_server(server: ServerTable, client: Client) -> ImportedEntry:
    """Rewrite one server. What is wrong in its own file is told as a note, and it is left out."""
    table = server.table.value
    made = ImportedEntry(name=_label(server.name), source=server.name, entry={})
    try:
        _Rewriting(table, client, made).run()
    except ConfigError as error:
        made.entry.clear()
        made.notes.append(f"is left out: {error.message}")
    return made


class _Rewriting:
    """One server on its way: what was understood is taken out, what is left is told."""

    def __init__(self, table: Mapping[str, object], client: Client, made: ImportedEntry) -> None:
        self._left = dict(table)
        self._client = client
        self._made = made

    def run(self) -> None:
        """Fill the entry and the notes. Raises ConfigError for one that is of no use."""
        _DIALECTS[self._client](self)
        self._transport()
        entry = self._made.entry
        for key in _KEPT:
            if key in self._left:
                entry[key] = self._left.pop(key)
        self._seconds()
        self._flags()
        self._rest()
        self._made.entry = cast("dict[str, object]", self._texts(entry))
        for name in sorted(set(self._made.variables)):
            self._note(f"wants the variable {name}: set it where remit is started")

    # ------------------------------------------------------------------------- every client

    def _transport(self) -> None:
        left, entry = self._left, self._made.entry
        url = left.get("url", left.get("httpUrl"))
        kind = left.pop("type", None)
        if isinstance(left.get("command"), Mapping):  # Zed's older form
            inner = cast("Mapping[str, object]", left.pop("command"))
            left["command"] = inner.get("path", "")
            for key in ("args", "env"):
                if key in inner:
                    left.setdefault(key, inner[key])
        if url is None and not isinstance(left.get("command"), str):
            raise _useless("it has neither a command nor an address")
        if url is not None and "command" in left:
            raise _useless("it has both a command and an address")
        if isinstance(url, str) and not url.startswith(("http:", "https:", "${")):
            raise _useless("its address is neither http nor https")
        if kind == "sse":
            entry["type"] = "sse"
        elif kind in _HTTP:
            entry["type"] = "http"
        elif kind not in (None, "stdio"):
            raise _useless("its transport is not known here")

    def _seconds(self) -> None:
        timeout = self._left.pop("timeout", None)
        if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0:
            self._made.entry["timeout"] = timeout

    def _flags(self) -> None:
        enabled = self._left.pop("enabled", True)
        disabled = self._left.pop("disabled", False)
        if enabled is False or disabled is True:
            self._made.entry["disabled"] = True

    def _rest(self) -> None:
        for key, value in self._left.items():
            shown = safe_line(key, reveal=True, chars_max=80)
            if key in _HARMLESS or value in (None, False, [], {}):
                continue
            if key in _CONSENT:
                self._note(f"{shown!r} is left out: no file gives consent. Write a permit")
            elif key in _NARROWS:
                self._made.entry["disabled"] = True
                self._note(
                    f"is turned off: {shown!r} narrowed it, and cannot be said in a servers file. "
                    "Forbid in a policy what must not be called, then remove 'disabled'"
                )
            else:
                self._note(f"{shown!r} is left out: it is not known here")

    def _texts(self, value: object) -> object:
        """Rewrite `${input:…}` into variables, in every text of an entry."""
        if isinstance(value, str):
            return _INPUT.sub(self._input, value)
        if isinstance(value, list):
            return [self._texts(item) for item in cast("list[object]", value)]
        if isinstance(value, Mapping):
            items = cast("Mapping[str, object]", value).items()
            return {key: self._texts(item) for key, item in items}
        return value

    def _input(self, match: re.Match[str]) -> str:
        name = re.sub(r"[^A-Za-z0-9]+", "_", match.group(1)).strip("_").upper() or "INPUT"
        if name[0].isdigit():
            name = f"INPUT_{name}"
        self._made.variables.append(name)
        return f"${{{name}}}"

    def _note(self, text: str) -> None:
        self._made.notes.append(text)

    # ------------------------------------------------------------------------- one client each

    def same(self) -> None:
        """Take a client whose entries are as ours."""
        if self._left.pop("headersHelper", None):
            raise _useless("its headers come from a program")

    def literal(self) -> None:
        """Take a client that expands nothing: what looks like a variable is told."""
        self.same()
        if "${" in repr([self._left.get(key) for key in _KEPT]):
            self._note("holds `${…}`, which its client took as it stands and remit expands")

    def environment_file(self) -> None:
        """Take an editor's entry: it may keep its variables in a file of their own."""
        self.same()
        if self._left.pop("envFile", None):
            self._note(
                "'envFile' is left out: write its variables as env, with ${VAR} for what is secret"
            )
        auth = self._left.pop("auth", None)
        if isinstance(auth, Mapping):
            self._login(cast("Mapping[str, object]", auth), "CLIENT_ID")

    def gemini(self) -> None:
        """Take Gemini's entry: `url` is HTTP+SSE there, and `$VAR` a variable."""
        if "httpUrl" in self._left:
            self._left["url"] = self._left.pop("httpUrl")
            self._left["type"] = "http"
        elif "url" in self._left:
            self._left.setdefault("type", "sse")
        for key in ("env", "headers"):
            texts = self._left.get(key)
            if isinstance(texts, Mapping):
                self._left[key] = {
                    name: _SHELL_FORM.sub(r"${\1}", value) if isinstance(value, str) else value
                    for name, value in cast("Mapping[str, object]", texts).items()
                }

    def codex(self) -> None:
        """Take Codex's entry: variables by name, seconds, and a token's variable."""
        left = self._left
        env = _table(left.pop("env", None))
        for name in _names(left.pop("env_vars", None)):
            env.setdefault(name, f"${{{name}}}")
        headers = _table(left.pop("http_headers", None))
        for name, variable in _table(left.pop("env_http_headers", None)).items():
            headers[name] = f"${{{variable}}}"
        token = left.pop("bearer_token_env_var", None)
        if isinstance(token, str):
            headers["Authorization"] = f"Bearer ${{{token}}}"
        if env:
            left["env"] = env
        if headers:
            left["headers"] = headers
        seconds = left.pop("tool_timeout_sec", None)
        if isinstance(seconds, int | float) and not isinstance(seconds, bool):
            left["timeout"] = round(seconds * 1000)
        login = _table(left.pop("oauth", None))
        scopes = left.pop("scopes", None)
        left.pop("oauth_resource", None)
        if login or scopes:
            self._login({**login, "scopes": scopes or []}, "client_id")

    def _login(self, login: Mapping[str, object], client_key: str) -> None:
        made: dict[str, object] = {}
        if isinstance(login.get(client_key), str):
            made["clientId"] = login[client_key]
        scopes = login.get("scopes")
        if isinstance(scopes, list) and scopes:
            made["scopes"] = " ".join(map(str, cast("list[object]", scopes)))
        if login.get("CLIENT_SECRET"):
            self._note("the client's secret is left out: `remit mcp login` asks for what it needs")
        if made:
            self._left["oauth"] = made


_DIALECTS: Final[Mapping[Client, Callable[[_Rewriting], None]]] = {
    Client.CLAUDE_DESKTOP: _Rewriting.literal,
    Client.CLAUDE_CODE: _Rewriting.same,
    Client.VSCODE: _Rewriting.environment_file,
    Client.CURSOR: _Rewriting.environment_file,
    Client.GEMINI: _Rewriting.gemini,
    Client.CODEX: _Rewriting.codex,
    Client.ZED: _Rewriting.literal,
}


def _useless(message: str) -> ConfigError:
    return ConfigError(message, code="E-IMPORT-ENTRY")


def _table(value: object) -> dict[str, object]:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str]:
    """Return the variables of Codex's list: names, or tables with a name."""
    names: list[str] = []
    for item in cast("list[object]", value) if isinstance(value, list) else []:
        name = cast("Mapping[str, object]", item).get("name") if isinstance(item, Mapping) else item
        if isinstance(name, str):
            names.append(name)
    return names


def _label(name: str) -> str:
    """Return the nearest label that a servers file takes."""
    label = _NOT_A_LABEL.sub("-", name).strip("-")[:NAME_CHARS_MAX] or "server"
    return "remit-server" if label.casefold() == "remit" else label


def _unique(label: str, taken: Collection[str]) -> str:
    number, made = 1, label
    while made.casefold() in taken:
        number += 1
        tail = f"-{number}"
        made = label[: NAME_CHARS_MAX - len(tail)] + tail
    return made
