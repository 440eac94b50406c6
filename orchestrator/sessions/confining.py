"""Puts a server into its sandbox, as far as this machine can. Decides nothing about authority."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.sandbox import BASE, Surroundings, bubblewrap_line, holds
from orchestrator.sessions.state import StatePaths

__all__ = ["bubblewrap", "confined"]

_PROBE_SECONDS: Final = 5.0
_SHARED: Final = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108  # hidden, not used
"""Where other programs' files and sockets are."""


class _NoneHereError(Exception):
    """There is no bubblewrap, or it did not work this time."""


def bubblewrap(path: str) -> str:
    """Return the bubblewrap of a search path that works here; empty if there is none. Blocks.

    One that works is tried once. That there was none is not remembered: a machine that was busy for a
    moment would have every later server run without its sandbox. A search path that names no whole
    folder is not followed: what stands where we are is not ours.
    """
    try:
        return _working(path)
    except _NoneHereError:
        return ""


@cache
def _working(path: str) -> str:
    whole = os.pathsep.join(each for each in path.split(os.pathsep) if each.startswith("/"))
    found = shutil.which("bwrap", path=whole)
    if found is None:
        raise _NoneHereError
    probe = (found, *BASE, "--proc", "/proc", "--dev", "/dev", "--", "/bin/true")
    try:
        done = subprocess.run(  # noqa: S603  # of the person's own search path
            probe,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        raise _NoneHereError from None
    if done.returncode != 0:
        raise _NoneHereError
    return found


def confined(entry: ServerEntry, path: str | None = None) -> ServerEntry:
    """Return the entry with the command that runs it in its sandbox; itself where it needs none.

    Call it right before the process starts. `path` is the search path; ours where it is None. Blocks.

    Raises ConfigError: the sandbox is required and cannot be had, or opens what cannot be opened.
    """
    sandbox = entry.sandbox
    if sandbox is None:
        return entry
    program = bubblewrap(os.environ.get("PATH", "") if path is None else path)
    if not program:
        if sandbox.required:
            raise ConfigError(
                f"server {entry.name!r} was not started: it must run in a sandbox, and there is none",
                code="E-SERVER-SANDBOX",
                why="there is no bubblewrap (bwrap) in PATH, or it may make no namespaces here",
                fix="apt install bubblewrap; where namespaces of users are off, turn them on",
                where=entry.where,
            )
        return replace(entry, unconfined=True)
    for opened in sandbox.paths:
        _check_opened(entry, opened)
    around = _surroundings(entry)
    words = bubblewrap_line(program, sandbox, around, str(entry.cwd), (entry.command, *entry.args))
    return replace(entry, command=words[0], args=words[1:])


def _check_opened(entry: ServerEntry, path: str) -> None:
    shown = safe_line(path, reveal=True)
    if os.path.realpath(path) != os.path.normpath(path):
        what = f"{shown} leads elsewhere, or through a link"
    elif not Path(path).exists():
        what = f"{shown} does not exist"
    else:
        return
    raise ConfigError(
        f"server {entry.name!r} was not started: its sandbox opens what cannot be opened: {what}",
        code="E-SERVER-SANDBOX",
        fix="make it, or name the place where it really is",
        where=entry.where,
    )


def _surroundings(entry: ServerEntry) -> Surroundings:
    paths = StatePaths.from_environment(os.environ)
    wanted = (*_SHARED, str(Path.home()), str(paths.config), str(paths.state), str(paths.cache))
    real = dict.fromkeys(os.path.realpath(each) for each in wanted if Path(each).is_dir())
    # one below another is hidden with it, and could not be made there any more
    hidden = tuple(each for each in real if each != "/" and not _below(each, real))
    resolver = os.path.realpath("/etc/resolv.conf")
    return Surroundings(
        hidden=hidden,
        program=tuple(_needed(entry, hidden)),
        resolver=resolver if _below(resolver, hidden) else "",
    )


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _needed(entry: ServerEntry, hidden: Sequence[str]) -> Iterable[str]:
    """Return what a program in a hidden place cannot be without: its folder, and libraries beside it."""
    search = entry.env.get("PATH") or os.environ.get("PATH")
    found = shutil.which(entry.command, path=search) or str(entry.cwd / entry.command)
    places: dict[str, None] = {}
    for program in (Path(found), Path(os.path.realpath(found))):
        folder = program.parent
        beside = ("lib", "lib64", "pyvenv.cfg") if folder.name == "bin" else ()
        for place in (folder, *(folder.parent / each for each in beside)):
            real = os.path.realpath(place)
            if place.exists() and _below(real, hidden) and not holds(real, hidden):
                places[os.path.normpath(place)] = None
    return places
