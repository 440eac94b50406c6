"""Tokens in files that only their owner can read, and the lock between programs; it decides nothing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.records import decode_stored, encode_stored
from mcp_client.auth.store import Stored, leased, swapped

__all__ = ["FileTokenStore", "locked", "name_of"]

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
_LIMITS: Final = AuthLimits()


class FileTokenStore:
    """Keeps each server's tokens in a file that only its owner can read.

    The folder is 0700, the files 0600, each replaced as a whole. What others could read, or what is
    not ours, is refused with AuthorizationFailedError: it may have been read, or planted.
    """

    def __init__(self, folder: Path, limits: AuthLimits = _LIMITS) -> None:
        self._folder = folder
        self._limits = limits

    def read(self, server: str) -> Stored:
        """See `TokenStore`."""
        with locked(self._folder):
            return self._read(self._place(server))

    def swap(self, server: str, generation: int, new: Stored) -> bool:
        """See `TokenStore`."""
        with locked(self._folder):
            place = self._place(server)
            return self._write(place, swapped(self._read(place), generation, new))

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """See `TokenStore`."""
        with locked(self._folder):
            place = self._place(server)
            after = leased(self._read(place), generation, holder, now=now, until=until)
            return self._write(place, after)

    def release(self, server: str, holder: str) -> None:
        """See `TokenStore`."""
        with locked(self._folder):
            place = self._place(server)
            stored = self._read(place)
            if stored.holder == holder:
                self._write(place, replace(stored, holder="", until=0.0))

    def version(self, server: str) -> object:
        """See `TellingStore`."""
        try:
            found = self._place(server).lstat()
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _place(self, server: str) -> Path:
        return self._folder / f"{name_of(server)}.json"

    def _read(self, place: Path) -> Stored:
        try:
            found = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return Stored()
        except OSError as error:
            raise AuthorizationFailedError(AuthFault.STORE, "a file cannot be read") from error
        with open(found, "rb") as file:
            _check_private(os.fstat(file.fileno()), stat.S_ISREG)
            return decode_stored(file.read(self._limits.store_bytes_max + 1), self._limits)

    def _write(self, place: Path, stored: Stored | None) -> bool:
        if stored is None:
            return False
        data = encode_stored(stored)
        if len(data) > self._limits.store_bytes_max:
            raise AuthorizationFailedError(AuthFault.STORE, "it would be over its bound")
        part = place.with_suffix(".part")  # one at a time: we hold the lock
        with suppress(FileNotFoundError):
            part.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(part, flags, FILE_MODE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
        # or a crash could bring the old pair back, which is good for nothing any more
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True


def name_of(server: str) -> str:
    """Return what a server's entry is called: its URL may hold a secret, and names nothing."""
    return hashlib.sha256(server.encode()).hexdigest()[:32]


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Keep other programs out for as long as a file takes; never while anything is sent.

    The folder is made where it is missing. Raises AuthorizationFailedError if it is not private.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        _check_private(folder.lstat(), stat.S_ISDIR)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(folder / "lock", flags, FILE_MODE)
    except OSError as error:
        raise AuthorizationFailedError(AuthFault.STORE, "its lock cannot be had") from error
    try:
        _check_private(os.fstat(lock), stat.S_ISREG)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _check_private(found: os.stat_result, is_kind: _IsKind) -> None:
    if not is_kind(found.st_mode):
        raise AuthorizationFailedError(AuthFault.STORE, "a part of it is of another kind")
    if found.st_uid != os.geteuid():
        raise AuthorizationFailedError(AuthFault.STORE, "a part of it belongs to somebody else")
    if found.st_mode & _OTHERS:
        raise AuthorizationFailedError(AuthFault.STORE, "others can read a part of it")


class _IsKind(Protocol):
    def __call__(self, mode: int, /) -> bool: ...
