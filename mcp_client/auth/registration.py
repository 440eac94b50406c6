"""Who the client is at an authorization server: known before, by document, or registered. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from mcp_client.auth.discovery import ServerMetadata
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits

__all__ = [
    "AuthMethod",
    "ClientIdentity",
    "ClientSettings",
    "RegistrationRequest",
    "choose_client",
    "choose_method",
    "read_registration",
]

_LIMITS: Final = AuthLimits()


class AuthMethod(Enum):
    """How a client shows a token endpoint who it is."""

    NONE = "none"
    BASIC = "client_secret_basic"
    POST = "client_secret_post"
    PRIVATE_KEY_JWT = "private_key_jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """A client as an authorization server knows it.

    Attributes:
        issuer: the one that knows it, and the only one that it is shown to; empty for an identity
            that is good everywhere.
        method: how it shows who it is.
        private_key: a PEM, for `PRIVATE_KEY_JWT`.
        algorithm: of signatures with that key.
        redirect_uri: where it was registered to be sent back to; empty if that is not known.
    """

    client_id: str
    issuer: str = ""
    method: AuthMethod = AuthMethod.NONE
    secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    algorithm: str = "ES256"
    redirect_uri: str = ""

    def may_redirect_to(self, uri: str) -> bool:
        """Whether it is registered with this redirect, as far as is known."""
        return self.redirect_uri in ("", uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How a client may become known, in the order in which it is tried.

    Attributes:
        client_id: what was registered before; empty if nothing was.
        issuer: the issuer where it was; empty: the one that it is used at first.
        document_url: where the client's metadata document stands (CIMD); empty if it has none.
        name: what people are shown as its name when it registers itself.
    """

    client_id: str = ""
    secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    algorithm: str = "ES256"
    issuer: str = ""
    document_url: str = ""
    name: str = "remit"


@dataclass(frozen=True, slots=True)
class RegistrationRequest:
    """What is posted, as JSON, to a registration endpoint (RFC 7591)."""

    url: str
    body: Mapping[str, object]


def choose_client(
    settings: ClientSettings,
    known: ClientIdentity | None,
    server: ServerMetadata,
    redirect_uri: str,
    scopes: Sequence[str] = (),
) -> ClientIdentity | RegistrationRequest:
    """Return who the client is, or what to ask to become known (MCP 2025-11-25, registration order).

    Raises AuthorizationFailedError with CLIENT_UNKNOWN if somebody has to register it by hand.
    """
    if settings.client_id:
        return _registered_before(settings, server)
    if server.client_documents and settings.document_url:
        return ClientIdentity(client_id=settings.document_url)
    # a registration with one issuer is never shown to another
    if known is not None and known.issuer == server.issuer:
        return known
    if server.registration_endpoint:
        body = _registration(settings, server, redirect_uri, scopes)
        return RegistrationRequest(server.registration_endpoint, body)
    raise AuthorizationFailedError(AuthFault.CLIENT_UNKNOWN)


def choose_method(offered: Sequence[str], *, secret: str = "", private_key: str = "") -> AuthMethod:
    """Return the first method that the client can use and the server supports."""
    possible = [AuthMethod.PRIVATE_KEY_JWT] if private_key else []
    possible += [AuthMethod.BASIC, AuthMethod.POST] if secret else []
    for method in [*possible, AuthMethod.NONE]:
        if method.value in offered:
            return method
    # nothing fits: the strongest, so that what the server then says names the true cause
    return (possible or [AuthMethod.NONE])[0]


def read_registration(
    document: Mapping[str, object], server: ServerMetadata, limits: AuthLimits = _LIMITS
) -> ClientIdentity:
    """Return the identity that a registration gave. Raises AuthorizationFailedError if none."""
    client_id, secret = document.get("client_id"), document.get("client_secret", "")
    if not isinstance(client_id, str) or not 0 < len(client_id) <= limits.token_chars_max:
        raise AuthorizationFailedError(AuthFault.REGISTRATION_REFUSED, "it names no client")
    if not isinstance(secret, str) or len(secret) > limits.token_chars_max:
        raise AuthorizationFailedError(AuthFault.REGISTRATION_REFUSED, "its secret is no text")
    given = document.get("token_endpoint_auth_method")
    # RFC 7591, 3.2.1: the server may have chosen another method than the one asked for
    methods = {method.value: method for method in AuthMethod}
    if isinstance(given, str) and given in methods and given in server.auth_methods:
        method = methods[given]
    else:
        method = choose_method(server.auth_methods, secret=secret)
    return ClientIdentity(client_id=client_id, issuer=server.issuer, method=method, secret=secret)


def _registered_before(settings: ClientSettings, server: ServerMetadata) -> ClientIdentity:
    if settings.issuer and settings.issuer != server.issuer:
        raise AuthorizationFailedError(AuthFault.ISSUER, "the client is registered at another")
    method = choose_method(
        server.auth_methods, secret=settings.secret, private_key=settings.private_key
    )
    return ClientIdentity(
        client_id=settings.client_id,
        issuer=server.issuer,
        method=method,
        secret=settings.secret,
        private_key=settings.private_key,
        algorithm=settings.algorithm,
    )


def _registration(
    settings: ClientSettings, server: ServerMetadata, redirect_uri: str, scopes: Sequence[str]
) -> Mapping[str, object]:
    wanted = (AuthMethod.NONE, AuthMethod.BASIC, AuthMethod.POST)
    method = next((each for each in wanted if each.value in server.auth_methods), AuthMethod.NONE)
    body: dict[str, object] = {
        "client_name": settings.name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.value,
        # MCP 2026-07-28: a program with a loopback redirect is native, and says so
        "application_type": "native",
    }
    if scopes:
        body["scope"] = " ".join(scopes)
    return body
