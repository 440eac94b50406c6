"""The profile's files and the project's, one over the other (S-20). Approves and starts nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.sessions.approvals import ApprovalBook, ApprovalStore, Origin
from orchestrator.sessions.configuration import ServersSource, load_servers, merge_servers
from orchestrator.sessions.entries import ServersFile
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.sandbox import SandboxMinimum
from orchestrator.sessions.settings import sandbox_minimum
from orchestrator.sessions.state import StatePaths

__all__ = ["SERVERS_FILE", "ConfiguredServers", "configured_servers"]

SERVERS_FILE: Final = ".mcp.json"
"""The project's servers file, as other clients name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredServers:
    """The servers there are.

    Attributes:
        file: the entries of both layers; the profile's stand first and win over the project's.
        project: the folder that approvals belong to, links followed.
        project_file: the project's servers file; None if there is none.
        book: what of the project is approved.
        minimum: what the person's settings confine servers to; None for nothing.
    """

    file: ServersFile
    project: Path
    project_file: Path | None
    book: ApprovalBook
    minimum: SandboxMinimum | None


def configured_servers(
    paths: StatePaths,
    servers: Path | None,
    *,
    environ: Mapping[str, str],
    home: Path,
    approve: Collection[str] = (),
    allow_variables: Collection[str] = (),
    out: str = "",
    with_project: bool = True,
    folder: Path | None = None,
    handed: ServersFile | None = None,
) -> ConfiguredServers:
    """Read the profile's servers file and the project's.

    `servers` is the project's file; None takes the one of the project that `folder` is in, by
    default the one that we stand in, if it has one. Without `with_project` only the profile's is
    read. `handed` are entries that an editor hands over: they stand in the profile's place, and
    nothing of the profile is there (S-20).
    Raises ConfigError for a file that cannot be read, the person's settings among them, or an
    approval that is none.
    """
    named = servers or project_of((folder or Path.cwd()) / SERVERS_FILE) / SERVERS_FILE
    project = project_of(named).resolve()
    present = named if with_project and (servers is not None or named.exists()) else None
    profile = paths.config / "mcp.json"
    minimum = sandbox_minimum(paths)

    def load(path: Path | None, origin: Origin) -> ServersFile:
        if path is None:
            return ServersFile()
        source = ServersSource(
            origin=origin,
            minimum=minimum,
            project=project,
            home=home,
            environ=environ,
            allow_variables=frozenset(allow_variables),
            out=out,
        )
        return load_servers(path, source)

    theirs = load(present, Origin.PROJECT)
    if handed is not None:
        merged = merge_servers(handed, theirs, owner="editor")
    else:
        merged = merge_servers(load(profile if profile.exists() else None, Origin.PROFILE), theirs)
    return ConfiguredServers(
        file=merged,
        project=project,
        project_file=present,
        book=ApprovalStore(paths.approvals).book(project, approve),
        minimum=minimum,
    )
