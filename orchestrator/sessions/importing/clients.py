"""Which clients there are, and where each keeps its servers. Reads their files, judges no entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from orchestrator.core.documents import Document, Table, read_json, read_toml
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.jsonc import blank_comments
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.reading import read_configured

__all__ = ["FILE_BYTES_MAX", "Client", "Places", "ServerTable", "client_of", "read_client"]

FILE_BYTES_MAX: Final = 32 * 1024 * 1024
"""One file of a client: Claude Code keeps its history of projects beside the servers."""


class Client(Enum):
    """A program whose servers can be taken over, as `--from` names it."""

    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_CODE = "claude-code"
    VSCODE = "vscode"
    CURSOR = "cursor"
    GEMINI = "gemini"
    CODEX = "codex"
    ZED = "zed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a person's files may be. `config` is where Linux programs keep their settings."""

    home: Path
    project: Path
    config: Path
    codex: Path
    mac: bool = False

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str], *, home: Path, project: Path, platform: str
    ) -> Places:
        """Return the places of this person. Looks at nothing."""
        return cls(
            home=home,
            project=project,
            config=Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
            codex=Path(environ.get("CODEX_HOME") or home / ".codex"),
            mac=platform == "darwin",
        )

    def own(self, client: Client) -> tuple[Path, ...]:
        """Return the files that are the person's own: what stands there, they wrote."""
        applications = self.home / "Library" / "Application Support"
        settings = applications if self.mac else self.config
        match client:
            case Client.CLAUDE_DESKTOP:
                return (settings / "Claude" / "claude_desktop_config.json",)
            case Client.CLAUDE_CODE:
                return (self.home / ".claude.json",)
            case Client.VSCODE:
                return (settings / "Code" / "User" / "mcp.json",)
            case Client.CURSOR:
                return (self.home / ".cursor" / "mcp.json",)
            case Client.GEMINI:
                return (self.home / ".gemini" / "settings.json",)
            case Client.CODEX:
                return (self.codex / "config.toml",)
            case Client.ZED:
                return (self.config / "zed" / "settings.json",)

    def of_project(self, client: Client) -> tuple[Path, ...]:
        """Return the files that come along with the project: anybody may have written them."""
        match client:
            case Client.CLAUDE_DESKTOP | Client.CLAUDE_CODE:
                return ()  # `.mcp.json` is read as it is
            case Client.VSCODE:
                return (self.project / ".vscode" / "mcp.json",)
            case Client.CURSOR:
                return (self.project / ".cursor" / "mcp.json",)
            case Client.GEMINI:
                return (self.project / ".gemini" / "settings.json",)
            case Client.CODEX:
                return (self.project / ".codex" / "config.toml",)
            case Client.ZED:
                return (self.project / ".zed" / "settings.json",)


_ROOTS: Final[Mapping[Client, tuple[str, ...]]] = {
    Client.CLAUDE_DESKTOP: ("mcpServers",),
    Client.CLAUDE_CODE: ("mcpServers",),
    Client.VSCODE: ("servers", "mcpServers"),
    Client.CURSOR: ("mcpServers",),
    Client.GEMINI: ("mcpServers",),
    Client.CODEX: ("mcp_servers",),
    Client.ZED: ("context_servers",),
}
"""Under which key each keeps its servers; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class ServerTable:
    """One server as its client's file has it."""

    name: str
    table: Table


def client_of(word: str) -> Client:
    """Return the client of that name. Raises ConfigError with the nearest."""
    known = {client.value: client for client in Client}
    if word not in known:
        raise ConfigError(
            f"servers cannot be taken over from {word!r}",
            code="E-IMPORT-CLIENT",
            fix=did_you_mean(word, known) or "use one of " + ", ".join(known),
        )
    return known[word]


def read_client(path: Path, client: Client, *, project: Path) -> tuple[ServerTable, ...]:
    """Read the servers of one file; of Claude Code's, the person's and those of `project`.

    Raises ConfigError for a file that cannot be read, or holds no servers where they should be.
    """
    document = _document(path, client)
    root = document.table()
    tables = [found for key in _ROOTS[client] if (found := root.optional(key)) is not None][:1]
    if client is Client.CLAUDE_CODE:
        tables += _of_claude_project(root, project)
    if not tables:
        wanted = " or ".join(repr(key) for key in _ROOTS[client])
        raise ConfigError(
            f"there are no servers in {path}",
            code="E-IMPORT-EMPTY",
            why=f"{client.value} keeps them under {wanted}",
            fix="name another file, or another client with --from",
            where=Where(str(path)),
        )
    return tuple(ServerTable(name, table) for found in tables for name, table in found.tables())


def _of_claude_project(root: Table, project: Path) -> Iterator[Table]:
    projects = root.optional("projects")
    if projects is None or str(project) not in projects:
        return
    found = projects.table(str(project)).optional("mcpServers")
    if found is not None:
        yield found


def _document(path: Path, client: Client) -> Document:
    content = read_configured(
        path,
        what="",
        code="E-IMPORT-FILE",
        fix="name the file that the client reads",
        bytes_max=FILE_BYTES_MAX,
    )
    if client is Client.CODEX:
        return read_toml(content, str(path), bytes_max=FILE_BYTES_MAX)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            "the file is not UTF-8",
            code="E-CONFIG-ENCODING",
            where=Where(str(path), content.count(b"\n", 0, error.start) + 1),
        ) from None
    return read_json(blank_comments(text), str(path), bytes_max=FILE_BYTES_MAX)
