"""A standing session, kept up: its files read anew, and what a server offers shown. Opens no session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from orchestrator.core.errors import RemitError
from orchestrator.core.ids import ServerName
from orchestrator.sessions.approvals import PendingApprovalError
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.opening import ParentSession
from orchestrator.sessions.policing import PolicyFiles

__all__ = ["Notice", "Prepared", "Upkeep", "failed_servers"]


class Notice(NamedTuple):
    """Something that is left out, or not as it could be: which server or file, why, what mends it."""

    name: str
    state: str
    message: str = ""
    fix: str = ""


class Prepared(Protocol):
    """What the files say, read, and approved after `settle`."""

    notices: list[Notice]
    entries: tuple[ServerEntry, ...]
    rules: PolicyFiles

    async def settle(self) -> None:
        """Have all of the project approved. What is not is left out, or raises."""
        ...

    def check(self, session: ParentSession) -> None:
        """Hold the rules against what the servers offer."""
        ...

    async def admit(self, admit: Callable[[Sequence[ServerEntry]], Awaitable[None]]) -> None:
        """Have what the servers say of their tools shown, and let it be granted."""
        ...


class Upkeep:
    """Reads the configuration of a standing session anew, and has what a server offers shown."""

    def __init__(
        self,
        session: ParentSession,
        prepare: Callable[[], Prepared],
        admit: Callable[[Sequence[ServerEntry]], Awaitable[None]],
    ) -> None:
        self._session = session
        self._prepare = prepare
        self._admit = admit

    async def reload(self) -> tuple[Notice, ...]:
        """Put what the files say now in the place of what they said; return what is left out.

        Servers that are gone are dead before a new one may be used, and nothing of a new one may be
        used before the policy holds. What does not read changes nothing.

        Raises:
            PendingApprovalError, ConfigError, PolicyError: as `open_standing`.
        """
        fresh = self._prepare()
        await fresh.settle()
        session = self._session
        await session.reload(fresh.entries).ready()
        fresh.notices += failed_servers(session)
        if fresh.rules.policy.digest != session.policy.digest:
            session.replace_policy(fresh.rules.policy)
        fresh.check(session)
        await fresh.admit(self._admit)
        return tuple(fresh.notices)

    async def admit(self, name: str) -> tuple[Notice, ...]:
        """Have what one server offers now shown, and let it be granted; return what is left out."""
        connection = self._session.servers.get(ServerName(name))
        if connection is None or connection.error is not None:
            return tuple(failed_servers(self._session))
        try:
            await self._admit([connection.entry])
        except PendingApprovalError as error:
            return (Notice(name, "pending", error.message, error.fix),)
        return ()


def failed_servers(session: ParentSession) -> list[Notice]:
    """Return the servers that cannot be used or not as they were to be, without a word of theirs."""
    boxless = [
        Notice(
            name,
            "not in its sandbox",
            "there is no bubblewrap that works here: it runs with all your rights",
            'apt install bubblewrap; with "required": true it is not started without one',
        )
        for name, connection in session.servers.items()
        if connection.unconfined
    ]
    return boxless + [
        Notice(name, connection.state.value, _message(connection.error), connection.error.fix)
        for name, connection in session.servers.items()
        if connection.error is not None
    ]


def _message(error: RemitError) -> str:
    return f"{error.code}: {error.message}"
