"""Files of a project: read once, within its folder, so that what is approved is what is used.

Knows paths and bytes; what stands in the files is read elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.reading import TooLargeError, near_file, read_regular

__all__ = ["ProjectFile", "read_project_file"]

_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file as it was when it was read.

    `name` is its path below the project's folder, with slashes; `digest` the SHA-256 of `content`
    in hexadecimal. Whoever uses the file uses `content`, and never reads it again.
    """

    name: str
    path: Path
    content: bytes = field(repr=False, compare=False)
    digest: str


def read_project_file(
    text: str, *, folder: Path, root: Path, where: Where | None, bytes_max: int = _BYTES_MAX
) -> ProjectFile:
    """Read the file that `text` names, relative to `folder`. `where` is the place that names it.

    `..` is allowed as long as the file, with all links followed, lies in `root`: a project's file
    cannot make remit read, or show, what lies outside of it. Raises ConfigError for one that does
    not, an absolute path, a file that is missing, is too large, or cannot be read.
    """
    shown = safe_line(text, reveal=True, chars_max=200)
    if not text or "\x00" in text or "\\" in text or Path(text).is_absolute():
        raise ConfigError(
            f"not a path relative to this file: {shown!r}", code="E-PIPELINE-PATH", where=where
        )
    try:
        real_root = root.resolve()
        path = (folder / text).resolve()
        if not path.is_relative_to(real_root):
            raise ConfigError(
                f"{shown!r} lies outside of the project {real_root}",
                code="E-PIPELINE-PATH",
                why="a project's file may name only files of the project",
                where=where,
            )
        if not path.is_file():
            raise ConfigError(
                f"there is no file {shown!r}",
                code="E-PIPELINE-FILE",
                fix=f"did you mean {near!r}?" if (near := near_file(path)) else "",
                where=where,
            )
        # The path has no links any more: what became one since leads elsewhere.
        content = read_regular(path, bytes_max=bytes_max, follow=False)
    except TooLargeError:
        raise ConfigError(
            f"{shown!r} is larger than {bytes_max} bytes", code="E-CONFIG-TOO-LARGE", where=where
        ) from None
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        reason = error.strerror if isinstance(error, OSError) else "links lead in a circle"
        raise ConfigError(
            f"cannot read {shown!r}: {reason}", code="E-PIPELINE-FILE", where=where
        ) from error
    return ProjectFile(
        name=path.relative_to(real_root).as_posix(),
        path=path,
        content=content,
        digest=hashlib.sha256(content).hexdigest(),
    )
