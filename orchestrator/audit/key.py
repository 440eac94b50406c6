"""The key under which arguments are digested for the log; it stays outside the log. No records."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError, Where

__all__ = ["KEY_BYTES", "argument_digests", "load_or_create_key"]

KEY_BYTES: Final = 32
"""The size of a key: a digest's, so that guessing it is no easier than breaking the hash."""
_UNUSABLE: Final = frozenset({errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO})
"""How a link, and what is not ours to read, fails to be opened. Another time would be no better."""
_PERSON: Final = b"remit-arguments"


def argument_digests(key: bytes) -> Callable[[bytes], str]:
    """Return what makes the keyed digest (BLAKE2b, 32 bytes, hexadecimal) that stands in for arguments.

    Equal arguments have equal digests under one key. Without the key a guess cannot be tested,
    so short arguments stay secret, and logs of different machines cannot be compared.
    """
    keyed = blake2b(key=key, digest_size=32, person=_PERSON)

    def digest(arguments: bytes) -> str:
        state = keyed.copy()  # to take the key is half of the work on short arguments
        state.update(arguments)
        return state.hexdigest()

    return digest


def load_or_create_key(path: Path) -> bytes:
    """Return the key at `path`; make one, for its owner only, where there is none.

    Two processes that start together get the same key. Raises ConfigError if what stands there is
    not a key, is a link, or is open to others; OSError if it cannot be read or made now.
    """
    try:
        return _load(path)
    except FileNotFoundError:
        _create(path)
        return _load(path)


def _load(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        raise _unusable(path, error.strerror or "", f"rm {path}") from error
    try:
        status = os.fstat(descriptor)
        key = os.read(descriptor, KEY_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise _unusable(path, f"an audit key is a file of {KEY_BYTES} bytes", f"rm {path}")
    if status.st_uid != os.geteuid():
        raise _unusable(path, "the file belongs to another user", f"rm {path}")
    if status.st_mode & 0o077:
        raise _unusable(path, "the file is open to other users", f"rm {path}")
    return key


def _create(path: Path) -> None:
    """Write a whole key beside `path`, then link it into place: nobody sees half a key."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        os.write(descriptor, os.urandom(KEY_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        with suppress(FileExistsError):  # another process was first: its key is the key
            os.link(draft, path)
    finally:
        draft.unlink()


def _unusable(path: Path, why: str, fix: str) -> ConfigError:
    return ConfigError(
        "the audit key cannot be used", code="E-AUDIT-KEY", why=why, fix=fix, where=Where(str(path))
    )
