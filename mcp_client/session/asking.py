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
    renewal, renewals = session.renewal, None
    while True:
        source = renewal.credentials
        if source is not None and source.is_due:
            await renewal.credentials_ready()
        sent_in = renewal.count
        sent_with = None if source is None else source.generation
        try:
            if renewal.is_due:
                await renewal.ready()
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
                if not pending.settled:
                    session.give_up(pending)
            return pending.outcome()
        except (SessionLostError, AuthorizationRequiredError) as error:
            resendable = error.delivery is Delivery.NOT_SENT or (
                error.delivery is Delivery.REFUSED and guard is None
            )
            renewals = renewals or Renewals(renewal)  # hardly a request needs any
            if not resendable or not renewals.may_follow(error):
                raise
            failure = error
        await renewals.after(failure, sent_in, sent_with)


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

    __slots__ = ("_reasons", "_renewal")

    def __init__(self, renewal: Renewal) -> None:
        self._renewal = renewal
        self._reasons: tuple[str, ...] = ()

    def may_follow(self, error: SessionLostError | AuthorizationRequiredError) -> bool:
        """Whether something is to be renewed for this reason, for the first time."""
        if isinstance(error, AuthorizationRequiredError) and self._renewal.credentials is None:
            return False
        reason = reason_of(error)
        is_first = reason not in self._reasons
        self._reasons = (*self._reasons, reason)
        return is_first

    async def after(
        self,
        error: SessionLostError | AuthorizationRequiredError,
        session: int,
        credentials: object,
    ) -> None:
        """Renew what the request was turned away for. Raises what is in the way.

        `session` is the renewal's count at the time it was sent, `credentials` those it went with.
        """
        source = self._renewal.credentials
        if isinstance(error, SessionLostError):
            await self._renewal.renew(session)
        elif source is not None:
            await source.renewed(error, credentials)
