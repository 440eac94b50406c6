"""The servers that commands mean: the profile's and the project's, read from their files. Starts none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.sessions.configuration import ServersFile
    from orchestrator.sessions.entries import ServerEntry

__all__ = ["configured_entries"]


def configured_entries(servers: Path | None) -> tuple[ServerEntry, ...]:
    """Return the profile's entries and the project's, read from `servers` or `.mcp.json` here.

    Raises ConfigError.
    """
    import os

    from orchestrator.sessions.projects import project_of
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    file = servers or Path(".mcp.json")
    project = file if servers is not None or file.exists() else None
    folder = project_of(file).resolve()
    return _configured(profile=paths.config / "mcp.json", project=project, folder=folder).entries


def _configured(*, profile: Path, project: Path | None, folder: Path) -> ServersFile:
    """Read the profile's and the project's entries. Raises ConfigError."""
    import os

    from orchestrator.sessions.approvals import Origin
    from orchestrator.sessions.configuration import (
        ServersFile,
        ServersSource,
        load_servers,
        merge_servers,
    )

    def load(path: Path | None, origin: Origin) -> ServersFile:
        if path is None:
            return ServersFile()
        return load_servers(
            path,
            ServersSource(origin=origin, project=folder, home=Path.home(), environ=os.environ),
        )

    return merge_servers(
        load(profile if profile.exists() else None, Origin.PROFILE),
        load(project, Origin.PROJECT),
    )
