"""What went wrong with a call, in the orchestrator's own errors: agents know no client."""

from __future__ import annotations

from mcp_client.protocol.errors import McpError, PeerError, ServerGoneError
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import CallFailedError, Delivery

__all__ = ["failed"]


def failed(wish: Wish, error: McpError, delivery: Delivery | None = None) -> CallFailedError:
    """Translate the client's error: agents know no client.

    `delivery` is the call's own, where the error is about something else.
    """
    if delivery is None:
        delivery = error.delivery
    detail = ""
    if isinstance(error, PeerError):
        detail = error.peer_message
    elif isinstance(error, ServerGoneError):
        detail = error.stderr_tail
    fix = ""
    if isinstance(error, AuthorizationRequiredError):
        fix = f"log in again: remit mcp login {wish.ref.server}, or mend the headers of its entry"
    unknown = delivery is Delivery.MAYBE_SENT
    return CallFailedError(
        f"{wish.ref}: {error}" + (" (outcome unknown)" if unknown else ""),
        code="E-CALL-" + type(error).__name__.removesuffix("Error").upper(),
        server=wish.ref.server,
        stage=error.stage,
        delivery=delivery,
        peer_code=error.code if isinstance(error, PeerError) else None,
        untrusted_detail=detail,
        fix=fix,
    )
