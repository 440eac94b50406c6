"""What the machine and the installation have. Starts nothing, and reads no configuration."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.confining import bubblewrap
from orchestrator.sessions.credentials import credential_store
from orchestrator.sessions.state import StatePaths, refuse_shared
from orchestrator.surfaces.doctor.findings import Finding, Level

__all__ = ["machine_findings"]

_PACKAGES: Final = ("orchestrator", "mcp_client", "policies")
_DISTRIBUTION: Final = "remit"
_RELEASED: Final = 1_796_000_000.0
"""A wall clock before this (2026-11-30) is wrong: this version did not exist then."""
_EXTRAS: Final = (("models", "pydantic_ai", "language models"),)


def machine_findings(paths: StatePaths, *, now: float) -> list[Finding]:
    """Look at the interpreter, the installation, the folders, the clock. `now` is Unix seconds."""
    return [
        _python(),
        _system(),
        *_packages(),
        _search(),
        *_folders(paths),
        _clock(paths, now),
        _sandbox(),
        _credentials(paths),
        *(_extra(*extra) for extra in _EXTRAS),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    # that it is new enough is the installer's business: an older one could not read this file
    return Finding(name="python", level=Level.OK, detail=version)


def _system() -> Finding:
    if sys.platform == "linux":
        return Finding(name="system", level=Level.OK, detail="Linux")
    return Finding(
        name="system",
        level=Level.FAIL,
        detail=f"{sys.platform}: servers cannot be started as child processes here, since their "
        "descendants could not be found again",
        fix="use Linux, or servers that are reached by an address",
    )


def _packages() -> Iterable[Finding]:
    """Say whether another distribution has packages of the same names."""
    owners = packages_distributions()
    foreign = {
        name: sorted({owner for owner in owners.get(name, ()) if owner.lower() != _DISTRIBUTION})
        for name in _PACKAGES
    }
    for name, others in foreign.items():
        if others:
            yield Finding(
                name="packages",
                level=Level.FAIL,
                detail=f"{name!r} is also a package of {', '.join(others)}, installed here as well: "
                "one has overwritten files of the other",
                fix="install remit into an environment of its own",
            )
    folders = {Path(place).parent.parent for place in _places()}
    if len(folders) > 1:
        yield Finding(
            name="packages",
            level=Level.FAIL,
            detail="the three packages of remit stand in different folders: "
            + ", ".join(sorted(map(str, folders))),
            fix="remove the folders that shadow them, or start remit elsewhere",
        )
    elif not any(foreign.values()):
        yield Finding(name="packages", level=Level.OK, detail=_version())


def _places() -> Iterable[str]:
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield spec.origin


def _version() -> str:
    try:
        return f"remit {distribution(_DISTRIBUTION).version}"
    except PackageNotFoundError:
        return "remit, not installed as a distribution"


def _search() -> Finding:
    try:
        database = sqlite3.connect(":memory:")
        try:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
        finally:
            database.close()
    except sqlite3.Error:
        return Finding(
            name="search",
            level=Level.WARN,
            detail="SQLite has no full-text search here: capability_search is slower",
            fix="use a Python whose SQLite has FTS5",
        )
    return Finding(name="search", level=Level.OK, detail=f"SQLite {sqlite3.sqlite_version}, FTS5")


def _folders(paths: StatePaths) -> Iterable[Finding]:
    for folder in (paths.config, paths.state, paths.cache):
        if not folder.exists():
            yield Finding(name="folder", level=Level.OK, detail=f"{folder} will be made")
            continue
        try:
            refuse_shared(folder)
        except ConfigError as error:
            yield Finding(name="folder", level=Level.FAIL, detail=error.message, fix=error.fix)
            continue
        if not os.access(folder, os.W_OK | os.X_OK):
            yield Finding(
                name="folder",
                level=Level.FAIL,
                detail=f"{folder} cannot be written to",
                fix=f"chmod u+rwx {folder}",
            )
        elif stat.S_IMODE(folder.stat().st_mode) & 0o077:
            yield Finding(
                name="folder",
                level=Level.WARN,
                detail=f"{folder} can be read by others",
                fix=f"chmod 700 {folder}",
            )
        else:
            yield Finding(name="folder", level=Level.OK, detail=str(folder))


def _clock(paths: StatePaths, now: float) -> Finding:
    """A clock that is wrong makes tokens, leases and approvals end at the wrong time."""
    fix = "set the clock: timedatectl set-ntp true"
    if now < _RELEASED:
        return Finding(
            name="clock", level=Level.FAIL, detail="it is before this version was made", fix=fix
        )
    newest = max((_changed(path) for path in (paths.approvals, paths.pins)), default=0.0)
    if newest > now + 60:
        return Finding(
            name="clock",
            level=Level.WARN,
            detail=f"it is {newest - now:.0f} s behind what remit wrote last",
            fix=fix,
        )
    return Finding(name="clock", level=Level.OK, detail="plausible")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _sandbox() -> Finding:
    path = os.environ.get("PATH", "")
    if bubblewrap(path):
        return Finding(name="sandbox", level=Level.OK, detail="bubblewrap")
    if shutil.which("bwrap", path=path):
        return Finding(
            name="sandbox",
            level=Level.WARN,
            detail="bubblewrap may make no namespaces here: servers run with all your rights, "
            "and those whose sandbox is required do not start",
            fix="turn on namespaces of users: sysctl kernel.unprivileged_userns_clone=1",
        )
    return Finding(
        name="sandbox",
        level=Level.WARN,
        detail="no bubblewrap: servers run with all your rights, and those whose sandbox is required "
        "do not start",
        fix="apt install bubblewrap",
    )


def _credentials(paths: StatePaths) -> Finding:
    """Say where tokens are kept. A folder of files is good; a keyring is better."""
    found = credential_store(paths)
    return Finding(
        name="credentials",
        level=Level.OK,
        detail=f"kept in {found.kind.value}: {found.detail}",
        fix=found.fix,
    )


def _extra(name: str, module: str, what: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(name=f"extra {name}", level=Level.OK, detail=what)
    return Finding(
        name=f"extra {name}",
        level=Level.WARN,
        detail=f"not installed: no {what}",
        fix=f"pip install 'remit[{name}]'",
    )
