"""Reads one regular file within a bound, whatever stands at its path. Knows no format.

A project can bring along links to anything: a pipe that never ends a read, a file of the kernel
that has no end and says that its size is 0. None of these may hold us up or break us.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import nearest

__all__ = [
    "PIECE_BYTES",
    "TooLargeError",
    "near_file",
    "pieces_of",
    "read_configured",
    "read_regular",
]

PIECE_BYTES: Final = 1024 * 1024
"""One read: bytes are counted as they come, since a file may say a wrong size."""
_SIBLINGS_MAX: Final = 1_000
"""Names of a folder that are looked through for a misspelt one."""
_DOCUMENT_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class TooLargeError(Exception):
    """A file has more bytes than may be read."""


def read_regular(path: Path, *, bytes_max: int, follow: bool = True) -> bytes:
    """Return what stands in a file. With `follow` False the last name may be no link.

    Raises:
        TooLargeError: it has more than `bytes_max` bytes.
        OSError: it cannot be read, or is no regular file.
    """
    with pieces_of(path, bytes_max=bytes_max, follow=follow) as pieces:
        return b"".join(pieces)


def read_configured(
    path: Path, *, what: str, code: str, fix: str = "", bytes_max: int = _DOCUMENT_BYTES_MAX
) -> bytes:
    """Return what stands in a file that a person or a project has written; `what` names its kind.

    Raises ConfigError if it is too large, or, with `code`, if it cannot be read.
    """
    shown = f"{what} {safe_line(str(path), reveal=True)}".strip()
    where = Where(str(path))
    try:
        return read_regular(path, bytes_max=bytes_max)
    except TooLargeError:
        raise ConfigError(
            f"{shown} has more than {bytes_max} bytes", code="E-CONFIG-TOO-LARGE", where=where
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read {shown}: {error.strerror}", code=code, fix=fix, where=where
        ) from error


def near_file(path: Path) -> str:
    """Return the name of a file beside a missing one that was most likely meant; "" if none was."""
    try:
        names = [item.name for item in islice(path.parent.iterdir(), _SIBLINGS_MAX)]
    except OSError:
        return ""
    return safe_line(nearest(path.name, names) or "", reveal=True)


@contextmanager
def pieces_of(
    path: Path, *, bytes_max: int, follow: bool = True
) -> Generator[Generator[bytes, None, None]]:
    """Open a regular file and yield its bytes in pieces. Raises as `read_regular`."""
    no_follow = 0 if follow else getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, _FLAGS | no_follow)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield _pieces(descriptor, bytes_max)
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, bytes_max: int) -> Generator[bytes, None, None]:
    left = bytes_max
    while True:
        piece = os.read(descriptor, min(PIECE_BYTES, left + 1))
        if not piece:
            return
        left -= len(piece)
        if left < 0:
            raise TooLargeError
        yield piece
