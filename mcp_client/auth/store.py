"""Tokens and registrations kept, by server and issuer; a write wins only over what it has read.

A system's keyring, where there is a real one, would be another `TokenStore`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, cast

import anyio.to_thread

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.grants import Grant
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["FileTokenStore", "Kept", "MemoryTokenStore", "Stored", "TokenStore", "forget"]

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
_LIMITS: Final = AuthLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept of one issuer: who we are there, and what it granted for the server."""

    client: ClientIdentity | None = None
    token: Token | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is kept of one server.

    Attributes:
        generation: moves with each login, renewal and logout.
        issuer: whose token is in use; empty for none.
        kept: by issuer.
        holder: who is renewing it now; empty for nobody.
        until: a time of the wall clock after which another may.
    """

    generation: int = 0
    issuer: str = ""
    kept: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    holder: str = ""
    until: float = 0.0

    def of(self, issuer: str) -> Kept:
        """Return what is kept of an issuer, and only of that one."""
        return self.kept.get(issuer, Kept())

    @property
    def token(self) -> Token | None:
        """The token in use."""
        return self.of(self.issuer).token

    @property
    def grant(self) -> Grant | None:
        """What is known of the token in use; None if there is none."""
        token = self.token
        if token is None:
            return None
        return Grant(
            issuer=self.issuer,
            subject=token.subject,
            login=token.login,
            scopes=frozenset(token.scopes),
        )

    def with_kept(self, issuer: str, kept: Kept) -> Stored:
        """Return it with what is now in use; tokens of other issuers are not kept."""
        others = {name: replace(each, token=None) for name, each in self.kept.items()}
        return replace(self, issuer=issuer, kept={**others, issuer: kept})

    def without_tokens(self) -> Stored:
        """Return it as it is after a logout: registrations stay."""
        others = {name: replace(each, token=None) for name, each in self.kept.items()}
        return replace(self, issuer="", kept=others)


class TokenStore(Protocol):
    """Where tokens are kept. Its functions block for as long as a file takes, and no longer."""

    def read(self, server: str) -> Stored:
        """Return what is kept of a server, by its URL."""
        ...

    def swap(self, server: str, generation: int, new: Stored) -> bool:
        """Write if the generation is still this one, as the next; False if another was faster."""
        ...

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """Become the only one who renews this generation; False if another is, or it has moved."""
        ...

    def release(self, server: str, holder: str) -> None:
        """Renew it no longer."""
        ...


async def forget(store: TokenStore, server: str) -> None:
    """Drop the tokens that are kept of a server, whoever else writes there meanwhile."""
    while True:
        stored = await anyio.to_thread.run_sync(partial(store.read, server))
        swap = partial(store.swap, server, stored.generation, stored.without_tokens())
        if await anyio.to_thread.run_sync(swap):
            return


class MemoryTokenStore:
    """Keeps tokens as long as the program runs."""

    def __init__(self) -> None:
        self._stored: dict[str, Stored] = {}

    def read(self, server: str) -> Stored:
        """See `TokenStore`."""
        return self._stored.get(server, Stored())

    def swap(self, server: str, generation: int, new: Stored) -> bool:
        """See `TokenStore`."""
        after = _swapped(self.read(server), generation, new)
        if after is not None:
            self._stored[server] = after
        return after is not None

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """See `TokenStore`."""
        after = _leased(self.read(server), generation, holder, now=now, until=until)
        if after is not None:
            self._stored[server] = after
        return after is not None

    def release(self, server: str, holder: str) -> None:
        """See `TokenStore`."""
        stored = self.read(server)
        if stored.holder == holder:
            self._stored[server] = replace(stored, holder="", until=0.0)


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
        with self._locked():
            return self._read(self._place(server))

    def swap(self, server: str, generation: int, new: Stored) -> bool:
        """See `TokenStore`."""
        with self._locked():
            place = self._place(server)
            return self._write(place, _swapped(self._read(place), generation, new))

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """See `TokenStore`."""
        with self._locked():
            place = self._place(server)
            after = _leased(self._read(place), generation, holder, now=now, until=until)
            return self._write(place, after)

    def release(self, server: str, holder: str) -> None:
        """See `TokenStore`."""
        with self._locked():
            place = self._place(server)
            stored = self._read(place)
            if stored.holder == holder:
                self._write(place, replace(stored, holder="", until=0.0))

    def _place(self, server: str) -> Path:
        # the URL may hold a secret, so that it names no file
        return self._folder / f"{hashlib.sha256(server.encode()).hexdigest()[:32]}.json"

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes out for as long as a file takes; never while anything is sent."""
        self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        _check_private(self._folder.lstat(), stat.S_ISDIR)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(self._folder / "lock", flags, FILE_MODE)
        except OSError as error:
            raise AuthorizationFailedError(AuthFault.STORE) from error
        try:
            _check_private(os.fstat(lock), stat.S_ISREG)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read(self, place: Path) -> Stored:
        try:
            found = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return Stored()
        except OSError as error:
            raise AuthorizationFailedError(AuthFault.STORE) from error
        with open(found, "rb") as file:
            _check_private(os.fstat(file.fileno()), stat.S_ISREG)
            return _decode(file.read(self._limits.store_bytes_max + 1), self._limits)

    def _write(self, place: Path, stored: Stored | None) -> bool:
        if stored is None:
            return False
        data = encode(_encodable(stored))
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
        return True


def _swapped(stored: Stored, generation: int, new: Stored) -> Stored | None:
    if stored.generation != generation:
        return None
    return replace(new, generation=generation + 1, holder="", until=0.0)


def _leased(
    stored: Stored, generation: int, holder: str, *, now: float, until: float
) -> Stored | None:
    is_held = stored.holder not in ("", holder) and now < stored.until
    if stored.generation != generation or is_held:
        return None
    return replace(stored, holder=holder, until=until)


def _check_private(found: os.stat_result, is_kind: _IsKind) -> None:
    if not is_kind(found.st_mode):
        raise AuthorizationFailedError(AuthFault.STORE, "a part of it is of another kind")
    if found.st_uid != os.geteuid():
        raise AuthorizationFailedError(AuthFault.STORE, "a part of it belongs to somebody else")
    if found.st_mode & _OTHERS:
        raise AuthorizationFailedError(AuthFault.STORE, "others can read a part of it")


class _IsKind(Protocol):
    def __call__(self, mode: int, /) -> bool: ...


def _encodable(stored: Stored) -> Mapping[str, object]:
    kept: dict[str, object] = {}
    for issuer, each in stored.kept.items():
        entry: dict[str, object] = {}
        if each.client is not None:
            entry["client"] = {
                "client_id": each.client.client_id,
                "issuer": each.client.issuer,
                "method": each.client.method.value,
                "secret": each.client.secret,
                "redirect_uri": each.client.redirect_uri,
            }
        if each.token is not None:
            entry["token"] = {
                "access_token": each.token.access_token,
                "scheme": each.token.scheme,
                "expires_at": each.token.expires_at,
                "refresh_token": each.token.refresh_token,
                "scopes": list(each.token.scopes),
                "subject": each.token.subject,
                "login": each.token.login,
            }
        kept[issuer] = entry
    return {
        "generation": stored.generation,
        "issuer": stored.issuer,
        "kept": kept,
        "holder": stored.holder,
        "until": stored.until,
    }


def _decode(data: bytes, limits: AuthLimits) -> Stored:
    try:
        whole = _Reader(decode(data, ClientLimits(frame_bytes_max=limits.store_bytes_max)))
        kept: dict[str, Kept] = {}
        for issuer in whole.part("kept").names:
            entry = whole.part("kept").part(issuer)
            kept[issuer] = Kept(client=_client(entry), token=_token(entry))
        return Stored(
            generation=int(whole.number("generation")),
            issuer=whole.text("issuer"),
            kept=kept,
            holder=whole.text("holder"),
            until=whole.number("until"),
        )
    except (RemoteProtocolError, ValueError) as error:
        raise AuthorizationFailedError(AuthFault.STORE, "a file of it is malformed") from error


def _client(entry: _Reader) -> ClientIdentity | None:
    if "client" not in entry.names:
        return None
    part = entry.part("client")
    return ClientIdentity(
        client_id=part.text("client_id"),
        issuer=part.text("issuer"),
        method=AuthMethod(part.text("method")),
        secret=part.text("secret"),
        redirect_uri=part.text("redirect_uri"),
    )


def _token(entry: _Reader) -> Token | None:
    if "token" not in entry.names:
        return None
    part = entry.part("token")
    return Token(
        access_token=part.text("access_token"),
        scheme=part.text("scheme"),
        expires_at=part.number("expires_at"),
        refresh_token=part.text("refresh_token"),
        scopes=part.texts("scopes"),
        subject=part.text("subject"),
        login=part.text("login"),
    )


class _Reader:
    """Members of an object, each of its kind or a ValueError."""

    def __init__(self, value: object) -> None:
        found = as_object(value)
        if found is None:
            raise ValueError("not an object")
        self._members = found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def part(self, name: str) -> _Reader:
        return _Reader(self._members.get(name))

    def text(self, name: str) -> str:
        value = self._members.get(name)
        if not isinstance(value, str):
            raise ValueError("not a text")
        return value

    def number(self, name: str) -> float:
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("not a number")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._members.get(name)
        if not isinstance(value, list):
            raise ValueError("not an array")
        items = cast("list[object]", value)
        return tuple(_Reader({"item": item}).text("item") for item in items)
