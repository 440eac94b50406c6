"""Which folder is the project that a file belongs to, and what it may not decide. Reads no file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError

__all__ = ["PROJECT_MARKS", "output_folder", "project_of"]

PROJECT_MARKS: Final = (".git", ".mcp.json", "remit.toml")
"""What stands at the top of a project."""


def project_of(file: Path) -> Path:
    """Return the folder of the project that a file belongs to; its own folder if nothing says so.

    Approvals belong to this folder, so everything that reads them must ask here. A mark counts only
    if it is the user's own or root's: in a folder that all can write to, such as /tmp, anybody could
    make one, and be the project of whatever stands below.
    """
    folder = file.absolute().parent
    for candidate in (folder, *folder.parents):
        if any(_counts(candidate / mark) for mark in PROJECT_MARKS):
            return candidate
    return folder


def output_folder(path: Path, *, projects: Iterable[Path]) -> Path:
    """Return where a folder that is written to really is: absolute, with all links followed.

    Raises ConfigError if a link below one of `projects`, or of the project that we stand in, decides
    it: whoever made the project would choose where agents write.
    """
    here = project_of(Path.cwd() / "here")
    roots = [os.path.realpath(project) for project in (*projects, here)]
    parts = path.absolute().parts
    here = Path(parts[0])
    for part in parts[1:]:
        if part == "..":
            here = here.parent
            continue
        step = here / part
        if _is_link(step) and any(here.is_relative_to(root) for root in roots):
            raise ConfigError(
                f"the output folder goes through a link of the project: {safe_line(str(step))}",
                code="E-OUT-LINK",
                why="the project would choose where agents write",
                fix=f"name the folder itself: {safe_line(os.path.realpath(step), reveal=True)}",
            )
        here = Path(os.path.realpath(step))
    return here


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):  # making or binding it says why
        return False


def _counts(mark: Path) -> bool:
    try:
        owner = mark.lstat().st_uid
    except OSError:
        return False
    return os.name != "posix" or owner in (os.geteuid(), 0)
