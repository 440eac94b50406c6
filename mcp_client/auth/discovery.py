"""Where metadata is looked for, and what of it may be believed: URLs and documents, nothing fetched."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.protocol.urls import WebAddress, is_loopback, read_address

__all__ = [
    "ResourceMetadata",
    "ServerMetadata",
    "UrlRules",
    "choose_scopes",
    "default_server",
    "is_public_address",
    "origin_of",
    "read_resource",
    "read_server",
    "resource_covers",
    "resource_places",
    "server_places",
    "widen",
]

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"
OFFLINE_ACCESS: Final = "offline_access"

_SPECIAL: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "::/96",  # RFC 4291, 2.5.5.1: an IPv4 address in disguise
        "64:ff9b::/96",  # RFC 6052: the same, behind a translator
        "64:ff9b:1::/48",  # RFC 8215
        "2002::/16",  # RFC 3056: the same, in a tunnel
        "fec0::/10",  # RFC 3879: a site's own
    )
)
_LIMITS: Final = AuthLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceMetadata:
    """What a protected resource says of itself (RFC 9728). Untrusted, checked, bounded."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMetadata:
    """What an authorization server says of itself (RFC 8414). Untrusted, checked, bounded.

    Attributes:
        challenge_methods: of PKCE; None if it says nothing about it.
        assumed: there was no document: these are the places of MCP 2025-03-26.
    """

    issuer: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    registration_endpoint: str = ""
    challenge_methods: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] = ("client_secret_basic",)
    scopes_supported: tuple[str, ...] = ()
    dpop_algorithms: tuple[str, ...] = ()
    client_documents: bool = False
    names_issuer: bool = False
    assumed: bool = False

    @property
    def has_pkce(self) -> bool:
        """Whether it shows that S256 is supported."""
        return self.challenge_methods is not None and "S256" in self.challenge_methods


@dataclass(frozen=True, slots=True)
class UrlRules:
    """Which URLs that a server names are spoken to: those that lead nobody inside.

    Attributes:
        server_host: the host of the configured URL: what is configured is trusted to be where it
            is, and only if that is this machine may others be on it.
    """

    server_host: str
    limits: AuthLimits = _LIMITS

    @classmethod
    def of(cls, server_url: str, limits: AuthLimits = _LIMITS) -> UrlRules:
        """Return the rules for what the server at a configured URL names."""
        return cls((urlsplit(server_url).hostname or "").lower(), limits)

    @property
    def is_local(self) -> bool:
        """Whether the configured server is on this machine."""
        return is_loopback(self.server_host)

    def check(self, url: object) -> str:
        """Return a URL that may be spoken to or opened; raise AuthorizationFailedError otherwise.

        It is https, or http between servers of this machine; no private, link-local or otherwise
        special address, except the configured server's own host; without user, without fragment.
        """
        found = read_address(url, chars_max=self.limits.url_chars_max)
        if not isinstance(found, WebAddress):
            raise AuthorizationFailedError(AuthFault.URL, found)
        if "#" in found.url:
            raise AuthorizationFailedError(AuthFault.URL, "a URL has a fragment")
        if is_loopback(found.host):
            if not self.is_local:
                raise AuthorizationFailedError(AuthFault.URL, "a URL leads to this machine")
        elif found.host != self.server_host and not _may_be_public(found.host):
            raise AuthorizationFailedError(AuthFault.URL, "a URL leads to a private address")
        return found.url

    def allows_address(self, host: str, address: str) -> bool:
        """Whether a name may stand for an address: to be asked once the name was looked up."""
        if host.lower() == self.server_host or (self.is_local and is_loopback(address)):
            return True
        return is_public_address(address)


def is_public_address(address: str) -> bool:
    """Whether a numeric address is one of the public network's.

    An IPv6 address that stands for an IPv4 one is not: a gateway would carry it on to wherever that
    is, and no authorization server needs it.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif any(found in network for network in _SPECIAL):
            return False
    return found.is_global and not found.is_multicast


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, as the URL writes them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def resource_places(server_url: str, named: str = "") -> tuple[str, ...]:
    """Return where a resource's metadata is looked for, in this order (MCP 2025-11-25; RFC 9728).

    Args:
        server_url: the configured URL.
        named: what `resource_metadata` of the challenge names.
    """
    path = urlsplit(server_url).path.rstrip("/")
    origin = origin_of(server_url)
    # a query is no part of the resource's path; most servers have none
    places = [named, f"{origin}{_RESOURCE}{path}", f"{origin}{_RESOURCE}"]
    return tuple(dict.fromkeys(place for place in places if place))


def server_places(issuer: str, *, assumed: bool = False) -> tuple[str, ...]:
    """Return where an authorization server's metadata is looked for, in this order.

    `assumed`: the issuer is the MCP server's own origin, as in 2025-03-26: only the root there.
    """
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    if assumed:
        return (f"{origin}{_OAUTH}",)
    if not path:
        return (f"{origin}{_OAUTH}", f"{origin}{_OPENID}")
    return (f"{origin}{_OAUTH}{path}", f"{origin}{_OPENID}{path}", f"{origin}{path}{_OPENID}")


def default_server(server_url: str) -> ServerMetadata:
    """Return what is assumed of a server of 2025-03-26 that has no metadata at all."""
    origin = origin_of(server_url)
    return ServerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
        auth_methods=("none", "client_secret_post", "client_secret_basic"),
        assumed=True,
    )


def resource_covers(resource: str, server_url: str) -> bool:
    """Whether a resource's identifier is the configured URL, or one above it at the same origin."""
    try:
        ours, theirs = urlsplit(server_url), urlsplit(resource)
    except ValueError:
        return False
    if (ours.scheme, ours.netloc.lower()) != (theirs.scheme.lower(), theirs.netloc.lower()):
        return False
    if theirs.query and theirs.query != ours.query:
        return False
    return f"{ours.path.rstrip('/')}/".startswith(f"{theirs.path.rstrip('/')}/")


def read_resource(
    document: Mapping[str, object], server_url: str, rules: UrlRules
) -> ResourceMetadata:
    """Return a resource's metadata. Raises AuthorizationFailedError if it is another resource's."""
    resource = document.get("resource")
    if not isinstance(resource, str) or not resource_covers(resource, server_url):
        raise AuthorizationFailedError(AuthFault.RESOURCE)
    servers = _texts(document, "authorization_servers", rules.limits.servers_max)
    if not servers:
        raise AuthorizationFailedError(AuthFault.DOCUMENT, "no authorization server is named")
    issuers = tuple(rules.check(server) for server in servers)
    if any("?" in issuer for issuer in issuers):
        # RFC 8414, 2: its metadata would be that of the issuer without the query
        raise AuthorizationFailedError(AuthFault.URL, "an issuer has a query")
    return ResourceMetadata(
        resource=resource,
        authorization_servers=issuers,
        scopes_supported=_texts(document, "scopes_supported", rules.limits.scopes_max) or (),
    )


def read_server(document: Mapping[str, object], issuer: str, rules: UrlRules) -> ServerMetadata:
    """Return an authorization server's metadata.

    Raises AuthorizationFailedError unless the issuer in it is, character for character, the one
    whose metadata was asked for (RFC 8414, 3.3), and every endpoint may be spoken to.
    """
    if document.get("issuer") != issuer:
        raise AuthorizationFailedError(AuthFault.ISSUER)
    scopes_max = rules.limits.scopes_max
    endpoints = {
        name: "" if document.get(name) is None else rules.check(document.get(name))
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    }
    methods = _texts(document, "token_endpoint_auth_methods_supported", scopes_max)
    return ServerMetadata(
        issuer=issuer,
        authorization_endpoint=endpoints["authorization_endpoint"],
        token_endpoint=endpoints["token_endpoint"],
        registration_endpoint=endpoints["registration_endpoint"],
        challenge_methods=_texts(document, "code_challenge_methods_supported", scopes_max),
        # RFC 8414, 2: omitted means client_secret_basic
        auth_methods=("client_secret_basic",) if methods is None else methods,
        scopes_supported=_texts(document, "scopes_supported", scopes_max) or (),
        dpop_algorithms=_texts(document, "dpop_signing_alg_values_supported", scopes_max) or (),
        client_documents=document.get("client_id_metadata_document_supported") is True,
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def choose_scopes(
    challenged: str, resource: ResourceMetadata | None, server: ServerMetadata
) -> tuple[str, ...]:
    """Return the scopes to ask for: the challenge's, else all of the resource's, else none.

    `offline_access` is added only where the authorization server lists it, and only to others:
    alone it would ask for less than saying nothing does.
    """
    scopes = tuple(challenged.split())
    if not scopes and resource is not None:
        scopes = resource.scopes_supported
    if scopes and OFFLINE_ACCESS in server.scopes_supported:
        scopes = widen(scopes, (OFFLINE_ACCESS,))
    return widen((), scopes)


def widen(before: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    """Return the union of scopes in the order in which they first came."""
    return tuple(dict.fromkeys([*before, *more]))


def _may_be_public(host: str) -> bool:
    """False for what is a special address already; a name is judged once it was looked up."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # inet_aton's short forms ("127.1", "0x7f.1", "2130706433") are numbers to some resolvers
        last = host.rstrip(".").rpartition(".")[2]
        is_number = last[:1].isdigit() and (last.isdigit() or last.startswith("0x"))
        return not is_number and last not in ("localhost", "local", "internal")
    return is_public_address(host)


def _texts(document: Mapping[str, object], name: str, count_max: int) -> tuple[str, ...] | None:
    """Return a member that is an array of texts; None if there is none."""
    value = document.get(name)
    if value is None:
        return None
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(item for item in items if isinstance(item, str))
    if len(texts) != len(items) or len(texts) > count_max:
        raise AuthorizationFailedError(AuthFault.DOCUMENT, "a list in it is none of texts")
    return texts
