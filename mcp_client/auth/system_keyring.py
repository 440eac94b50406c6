"""Tokens in the system's keyring, where there is a real one; it draws no window and keeps no copy."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.files import locked, name_of
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.records import decode_stored, encode_stored
from mcp_client.auth.store import Stored, leased, swapped

__all__ = ["Keyring", "KeyringKind", "KeyringTokenStore", "choose_keyring", "find_keyring"]

SERVICE: Final = "remit"
"""What people see in their keyring."""
_REAL: Final = frozenset(
    f"keyring.backends.{name}"
    for name in ("SecretService", "Windows", "kwallet", "libsecret", "macOS")
)
"""Those that a system guards. Others write files that anybody's program could read, or keep nothing."""
_LIMITS: Final = AuthLimits()


class Keyring(Protocol):
    """A system's keyring, as the library `keyring` has it. Its functions may block for a person."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return what is kept; None if nothing is."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep it."""
        ...


class KeyringKind(Protocol):
    """A kind of keyring, as the library has them."""

    __module__: str

    @property
    def priority(self) -> float:
        """How much it is to be preferred; 0 or less: not at all."""
        ...

    def __call__(self) -> Keyring:
        """Return one."""
        ...


def find_keyring() -> Keyring | None:
    """Return the system's keyring; None if there is none, or the extra `keyring` is not installed.

    What is configured for the library is not asked: it may name one that keeps secrets in the clear.
    """
    try:
        from keyring.backend import KeyringBackend
    except ImportError:
        return None
    for name in sorted(_REAL):
        with suppress(ImportError):
            import_module(name)  # each makes itself known to the library
    return choose_keyring(cast("Iterable[KeyringKind]", KeyringBackend.get_viable_backends()))


def choose_keyring(kinds: Iterable[KeyringKind]) -> Keyring | None:
    """Return one of the best kind that a system guards; None if there is none."""
    real = [kind for kind in kinds if kind.__module__ in _REAL and kind.priority > 0]
    return max(real, key=lambda kind: kind.priority)() if real else None


class KeyringTokenStore:
    """Keeps each server's tokens in the system's keyring.

    A keyring cannot compare and write in one step: a lock in a folder does that for all programs
    that use the same one.

    Args:
        keyring: see `find_keyring`.
        folder: for the lock; see `FileTokenStore`.
        limits: the bounds.
    """

    def __init__(self, keyring: Keyring, folder: Path, limits: AuthLimits = _LIMITS) -> None:
        self._keyring = keyring
        self._folder = folder
        self._limits = limits

    def read(self, server: str) -> Stored:
        """See `TokenStore`."""
        with locked(self._folder):
            return self._read(server)

    def swap(self, server: str, generation: int, new: Stored) -> bool:
        """See `TokenStore`."""
        with locked(self._folder):
            return self._write(server, swapped(self._read(server), generation, new))

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """See `TokenStore`."""
        with locked(self._folder):
            after = leased(self._read(server), generation, holder, now=now, until=until)
            return self._write(server, after)

    def release(self, server: str, holder: str) -> None:
        """See `TokenStore`."""
        with locked(self._folder):
            stored = self._read(server)
            if stored.holder == holder:
                self._write(server, replace(stored, holder="", until=0.0))

    def _read(self, server: str) -> Stored:
        try:
            text = self._keyring.get_password(SERVICE, name_of(server))
        except Exception:  # noqa: BLE001  # each system's own; what it says may show an entry
            raise AuthorizationFailedError(AuthFault.STORE, "the keyring cannot be read") from None
        if text is None:
            return Stored()
        if len(text) > self._limits.store_bytes_max:
            raise AuthorizationFailedError(AuthFault.STORE, "an entry of it is over its bound")
        return decode_stored(text.encode(), self._limits)

    def _write(self, server: str, stored: Stored | None) -> bool:
        if stored is None:
            return False
        text = encode_stored(stored).decode()
        if len(text) > self._limits.store_bytes_max:
            raise AuthorizationFailedError(AuthFault.STORE, "it would be over its bound")
        try:
            self._keyring.set_password(SERVICE, name_of(server), text)
        except Exception:  # noqa: BLE001  # each system's own; what it says may show the entry
            raise AuthorizationFailedError(
                AuthFault.STORE, "the keyring cannot be written"
            ) from None
        return True
