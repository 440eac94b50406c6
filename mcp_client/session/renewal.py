"""What a connection renews when its server wants that: session, credentials; it sends nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from mcp_client.ports import CredentialSource

__all__ = ["Renewal"]


class _Handshake:
    """One that is under way, and what it came to."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: Exception | None = None


class Renewal:
    """One handshake at a time, shared by all who need it.

    Attributes:
        count: how often the session has begun anew.
        is_due: a handshake was begun, and none was completed since: nothing can be sent.
        restore: called after each handshake, before anybody may use the new session: it asks again
            for what the server forgot along with the old one.
        on_renewed: called after each time: what was listed or assumed before has to be asked for
            again.
        credentials: gets new ones when the server wants other ones; None if nobody does.
    """

    def __init__(self, shake_hands: Callable[[], Awaitable[None]]) -> None:
        self.count = 0
        self.is_due = False
        self.restore: Callable[[], Awaitable[None]] | None = None
        self.on_renewed: Callable[[], object] | None = None
        self.credentials: CredentialSource | None = None
        self._shake_hands = shake_hands
        self._running: _Handshake | None = None

    async def renew(self, seen: int) -> None:
        """Return once the session has begun anew since `count` was `seen`.

        One handshake serves all who wait; if the task that makes it is cancelled, another one
        makes its own. Raises what the handshake raised, to all who waited for it.
        """
        while self.count == seen:
            running = self._running
            if running is None:
                await self._run()
            else:
                await running.over.wait()
                if running.error is not None:
                    raise running.error

    async def ready(self) -> None:
        """Return once no handshake is due. Raises what `renew` does."""
        if self.is_due:
            await self.renew(self.count)

    @property
    def credentials_due(self) -> bool:
        """Whether the credentials are about to end: see `credentials_ready`."""
        return self.credentials is not None and self.credentials.is_due

    async def credentials_ready(self) -> None:
        """Have credentials renewed that are about to end, before a request is sent with them."""
        if self.credentials is not None:
            await self.credentials.ready()

    async def _run(self) -> None:
        running = self._running = _Handshake()
        self.is_due = True
        try:
            await self._shake_hands()
            if self.restore is not None:
                await self.restore()
            self.count += 1
            self.is_due = False
        except Exception as error:
            running.error = error
            raise
        finally:
            self._running = None
            running.over.set()
        if self.on_renewed is not None:
            self.on_renewed()
