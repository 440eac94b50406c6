"""Why a server could not be authorized, as errors without any secret or text of a server."""

from __future__ import annotations

from enum import Enum

from mcp_client.protocol.errors import Delivery, McpError

__all__ = ["AuthFault", "AuthorizationFailedError", "NeedsAuthorizationError"]


class AuthFault(Enum):
    """What was wrong. The value says it in words."""

    CALLBACK = "the address that the browser is to come back to cannot be listened at"
    CLIENT_UNKNOWN = "no client is registered, and none can be"
    DENIED = "the person or the authorization server said no"
    DOCUMENT = "a document of the server cannot be read"
    FLOW = "a step does not belong here"
    GRANT_REFUSED = "the token endpoint refused the grant"
    ISSUER = "the issuer is not the one that was asked"
    METADATA_MISSING = "the authorization server has no metadata"
    PKCE = "the authorization server does not show that it supports PKCE with S256"
    REFUSED = "the server turns away what its authorization server has just granted"
    REGISTRATION_REFUSED = "the registration was refused"
    RESOURCE = "the metadata is that of another resource"
    SCOPE = "a wider scope was asked for and did not help"
    STATE = "the answer belongs to another request"
    STORE = "the token store is not safe or not readable"
    GRANT_UNUSABLE = "the token endpoint's answer is no usable token"
    UNREACHABLE = "the authorization server could not be reached"
    URL = "a URL is one that is not spoken to"


class AuthorizationFailedError(McpError):
    """The server could not be authorized. `fault` says why; no token, code or URL is in the text."""

    def __init__(self, fault: AuthFault, detail: str = "", *, server: str = "") -> None:
        text = f"{fault.value}: {detail}" if detail else fault.value
        super().__init__(text, server=server, stage="authorize", delivery=Delivery.REFUSED)
        self.fault = fault


class NeedsAuthorizationError(McpError):
    """A person has to log in, and there is nobody here to ask. Raised at once, never after a wait."""

    def __init__(self, *, server: str = "") -> None:
        super().__init__(
            "the server needs authorization by a person",
            server=server,
            stage="authorize",
            delivery=Delivery.REFUSED,
        )
