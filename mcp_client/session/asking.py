"""One request from its start to its result, over a session that may have to be renewed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from mcp_client.ports import SendGuard
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http.errors import AuthorizationRequiredError, SessionLostError
from mcp_client.protocol.progress import Progress
from mcp_client.session.renewal import Renewal
from mcp_client.session.session import ClientSession

__all__ = ["Renewals", "ask", "reason_of"]


async def ask(
    session: ClientSession,
    method: str,
    params: bytes,
    *,
    guard: SendGuard | None = None,
    seconds: float | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    declares: ClientCapabilities | None = None,
) -> object:
    """Send a request and return its result; renew what the server turned it away for.

    What was not sent goes out in the new session, under its guard. What the server turned away for
    this one reason, or for want of other credentials, is sent once more if it goes under the
    session's own guard; a guard of its own is good for one send, and whoever gave it has to decide
    anew. See `ClientSession.start` for the arguments and `PendingRequest.wait` for the errors.
    """
    renewals = Renewals(session.renewal)
    while True:
        if session.renewal.credentials_due:
            await session.renewal.credentials_ready()
        renewals.begin()
        try:
            if session.renewal.is_due:
                await session.renewal.ready()
            pending = session.start(
                method,
                params,
                guard=session.guard if guard is None else guard,
                seconds=seconds,
                on_progress=on_progress,
                declares=declares,
            )
            try:  # as `wait` does, without a coroutine for each request
                await pending.ending()
            finally:
                session.give_up(pending)
            return pending.outcome()
        except (SessionLostError, AuthorizationRequiredError) as error:
            resendable = error.delivery is Delivery.NOT_SENT or (
                error.delivery is Delivery.REFUSED and guard is None
            )
            if not resendable or not renewals.may_follow(error):
                raise
            failure = error
        await renewals.after(failure)


def reason_of(error: SessionLostError | AuthorizationRequiredError) -> str:
    """Return why a request was turned away: what was renewed for one reason is not renewed again."""
    if isinstance(error, SessionLostError):
        return "session"
    asks_nonce = error.nonce and any(
        each.parameters.get("error") == "use_dpop_nonce" for each in error.challenges
    )
    return "nonce" if asks_nonce else f"status {error.status}"


class Renewals:
    """The renewals that one request may lead to: one for each reason to turn it away."""

    __slots__ = ("_credentials", "_reasons", "_renewal", "_session")

    def __init__(self, renewal: Renewal) -> None:
        self._renewal = renewal
        self._reasons: tuple[str, ...] = ()
        self._session = renewal.count
        self._credentials: object = None

    def begin(self) -> None:
        """Note what the request is about to be sent with."""
        self._session = self._renewal.count
        source = self._renewal.credentials
        self._credentials = None if source is None else source.generation

    def may_follow(self, error: SessionLostError | AuthorizationRequiredError) -> bool:
        """Whether something is to be renewed for this reason, for the first time."""
        if isinstance(error, AuthorizationRequiredError) and self._renewal.credentials is None:
            return False
        reason = reason_of(error)
        is_first = reason not in self._reasons
        self._reasons = (*self._reasons, reason)
        return is_first

    async def after(self, error: SessionLostError | AuthorizationRequiredError) -> None:
        """Renew what the request was turned away for. Raises what is in the way."""
        source = self._renewal.credentials
        if isinstance(error, SessionLostError):
            await self._renewal.renew(self._session)
        elif source is not None:
            await source.renewed(error, self._credentials)
