"""A server's error answer as an exception of the right kind; it knows no request but its method."""

from __future__ import annotations

from typing import Final

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import PeerError, ResourceNotFoundError
from mcp_client.protocol.events import ErrorReceived
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.elicitation import (
    URL_ELICITATION_REQUIRED,
    UrlElicitationRequiredError,
    required_elicitations,
)
from mcp_client.protocol.texts import cut_text

__all__ = ["peer_error"]

_NOT_FOUND: Final = frozenset({-32002, -32602})
_OF_RESOURCES: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


def peer_error(
    event: ErrorReceived,
    method: str,
    negotiated: ClientCapabilities,
    limits: ClientLimits,
    *,
    server: str,
) -> PeerError:
    """Return the error that the caller of a request is to see."""
    message = cut_text(event.message, limits.peer_message_chars_max)
    if method in _OF_RESOURCES and event.code in _NOT_FOUND:
        return ResourceNotFoundError(
            code=event.code, peer_message=message, data=event.data, server=server
        )
    if event.code == URL_ELICITATION_REQUIRED and negotiated.elicitation_url:
        found = required_elicitations(event.data, limits, server=server)
        if found is not None:
            elicitations, quarantined = found
            return UrlElicitationRequiredError(
                elicitations=elicitations,
                quarantined=quarantined,
                peer_message=message,
                data=event.data,
                server=server,
            )
    return PeerError(code=event.code, peer_message=message, data=event.data, server=server)
