"""What is kept of a server's credentials, and the port of who keeps it; it knows no file and no format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, runtime_checkable

import anyio.to_thread

from mcp_client.auth.grants import Grant
from mcp_client.auth.registration import ClientIdentity
from mcp_client.auth.requests import Token

__all__ = [
    "Kept",
    "MemoryTokenStore",
    "Stored",
    "TellingStore",
    "TokenStore",
    "forget",
    "leased",
    "swapped",
]


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


@runtime_checkable
class TellingStore(TokenStore, Protocol):
    """A store that can tell at once whether an entry was written since it was read."""

    def version(self, server: str) -> object:
        """Return what is another value once a server's entry was written. Takes no lock."""
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
        after = swapped(self.read(server), generation, new)
        if after is not None:
            self._stored[server] = after
        return after is not None

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        """See `TokenStore`."""
        after = leased(self.read(server), generation, holder, now=now, until=until)
        if after is not None:
            self._stored[server] = after
        return after is not None

    def release(self, server: str, holder: str) -> None:
        """See `TokenStore`."""
        stored = self.read(server)
        if stored.holder == holder:
            self._stored[server] = replace(stored, holder="", until=0.0)


def swapped(stored: Stored, generation: int, new: Stored) -> Stored | None:
    """Return what is kept after `TokenStore.swap`; None if nothing may be written."""
    if stored.generation != generation:
        return None
    return replace(new, generation=generation + 1, holder="", until=0.0)


def leased(
    stored: Stored, generation: int, holder: str, *, now: float, until: float
) -> Stored | None:
    """Return what is kept after `TokenStore.lease`; None if nothing may be written."""
    # Who asks has read the clock before its turn came: the lease of another may well end after its
    # own. One that lasts longer by a whole lease was made by a clock that went wrong.
    is_held = stored.holder not in ("", holder) and now < stored.until <= until + (until - now)
    if stored.generation != generation or is_held:
        return None
    return replace(stored, holder=holder, until=until)
