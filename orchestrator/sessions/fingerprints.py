"""Digests of the files that a command line names. Knows no servers; starts nothing.

It covers what can be seen: files named in words, as `-m module`, or inside `NAME=path` and lists.
It cannot cover what these files load in their turn, nor folders.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError, Where

__all__ = ["FINGERPRINT_BYTES_MAX", "file_digest", "file_digests"]

FINGERPRINT_BYTES_MAX: Final = 256 * 1024 * 1024
"""All files of one command line together: a second's work at each start. Scripts are far smaller."""

_UNREADABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
_SEPARATORS: Final = re.compile(r"[\s=:;,]+")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def file_digests(
    words: Sequence[str],
    *,
    project: Path,
    folders: Iterable[Path],
    bytes_max: int = FINGERPRINT_BYTES_MAX,
) -> tuple[tuple[str, str], ...]:
    """Return (path as seen from the project, SHA-256) of each file that a word names, sorted.

    A relative path is looked up in each of `folders`, since programs differ in what it is relative
    to; an absolute one counts if it lies in `project`. Raises ConfigError for a file that cannot be
    read, and past `bytes_max` bytes of all of them: what cannot be compared cannot be approved.
    """
    places = tuple(dict.fromkeys(folders))
    found: dict[str, str] = {}
    left = bytes_max
    for name in _candidates(words):
        for place in places:
            path = place / name
            key = os.path.relpath(path, project)
            if key in found or (Path(name).is_absolute() and not path.is_relative_to(project)):
                continue
            read = _read(path, left)
            if read is not None:
                found[key], size = read
                left -= size
    return tuple(sorted(found.items()))


def file_digest(path: Path, *, bytes_max: int = FINGERPRINT_BYTES_MAX) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises ConfigError if it cannot be had."""
    read = _read(path, bytes_max)
    if read is None:
        raise ConfigError(f"there is no file {path}", code="E-CONFIG-FILE", where=Where(str(path)))
    return read[0]


def _candidates(words: Sequence[str]) -> Iterable[str]:
    before = ""
    names: dict[str, None] = {}
    for word in words:
        names[word] = None
        names.update(dict.fromkeys(_SEPARATORS.split(word)))
        if before == "-m" and _MODULE.fullmatch(word):
            path = word.replace(".", "/")
            names.update(dict.fromkeys((f"{path}.py", f"{path}/__main__.py")))
        before = word
    return (name for name in names if name and "\x00" not in name)


def _read(path: Path, bytes_max: int) -> tuple[str, int] | None:
    """Return the digest and the size of a file; None if there is none, or it is no regular one."""
    try:
        # Not blocking: a named pipe must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno not in _UNREADABLE or path.is_dir():
            return None
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", code="E-CONFIG-FILE", where=Where(str(path))
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > bytes_max:
            raise ConfigError(
                f"{path} has {status.st_size} bytes, more than can be compared",
                code="E-CONFIG-TOO-LARGE",
                where=Where(str(path)),
            )
        with open(descriptor, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), status.st_size
    finally:
        os.close(descriptor)
