"""One request from its start to its result, over a session that may have to begin anew meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from mcp_client.ports import SendGuard
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http_errors import SessionLostError
from mcp_client.protocol.progress import Progress
from mcp_client.session.session import ClientSession

__all__ = ["ask"]


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
    """Send a request and return its result; begin the session anew if the server has forgotten it.

    What was not sent goes out in the new session, under its guard. What the server turned away for
    this one reason is sent once more if it goes under the session's own guard; a guard of its own
    is good for one send, and whoever gave it has to decide anew. See `ClientSession.start` for the
    arguments and `PendingRequest.wait` for the errors.
    """
    for is_last in (False, True):
        if session.renewal.is_due:
            await session.renewal.ready()
        seen = session.renewal.count
        try:
            pending = session.start(
                method,
                params,
                guard=session.guard if guard is None else guard,
                seconds=seconds,
                on_progress=on_progress,
                declares=declares,
            )
            return await pending.wait()
        except SessionLostError as error:
            resendable = error.delivery is Delivery.NOT_SENT or (
                error.delivery is Delivery.REFUSED and guard is None
            )
            if is_last or not resendable:
                raise
        await session.renewal.renew(seen)
    raise AssertionError("the second time either returns or raises")
