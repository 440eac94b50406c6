"""The servers that commands mean: the profile's and the project's, as their files have them now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.core.errors import ConfigError
from orchestrator.core.nearest import did_you_mean

if TYPE_CHECKING:
    from orchestrator.sessions.entries import ServerEntry
    from orchestrator.sessions.layers import ConfiguredServers

__all__ = ["configured", "configured_entries", "configured_entry"]


def configured(servers: Path | None) -> ConfiguredServers:
    """Return the servers of both layers; `servers` is the project's file, else that of the project.

    Raises ConfigError.
    """
    import os

    from orchestrator.sessions.layers import configured_servers
    from orchestrator.sessions.state import StatePaths

    return configured_servers(
        StatePaths.from_environment(os.environ), servers, environ=os.environ, home=Path.home()
    )


def configured_entries(servers: Path | None) -> tuple[ServerEntry, ...]:
    """Return the entries of both layers. Raises ConfigError."""
    return configured(servers).file.entries


def configured_entry(found: ConfiguredServers, name: str) -> ServerEntry:
    """Return one entry by its label. Raises ConfigError with the nearest."""
    known = {str(entry.name): entry for entry in found.file.entries}
    if name not in known:
        raise ConfigError(
            f"there is no server {name!r}",
            code="E-SERVER-UNKNOWN",
            fix=did_you_mean(name, known) or "remit mcp list shows which there are",
        )
    return known[name]
