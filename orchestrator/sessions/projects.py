"""Which folder is the project that a file belongs to. Reads no file, approves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["PROJECT_MARKS", "project_of"]

PROJECT_MARKS: Final = (".git", ".mcp.json", "remit.toml")
"""What stands at the top of a project."""


def project_of(file: Path) -> Path:
    """Return the folder of the project that a file belongs to; its own folder if nothing says so.

    Approvals belong to this folder, so everything that reads them must ask here.
    """
    folder = file.absolute().parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in PROJECT_MARKS):
            return candidate
    return folder
