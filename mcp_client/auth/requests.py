"""What is asked of authorization and token endpoints, as URLs and forms, and their answers read. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.flow import Consent, Flow
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits

__all__ = [
    "AssertionFacts",
    "Token",
    "TokenRequest",
    "authorization_url",
    "client_credentials_request",
    "code_request",
    "exchange_request",
    "jwt_bearer_request",
    "read_assertion",
    "read_redirect",
    "read_token",
    "refresh_request",
    "with_client",
]

ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105  # the name of a kind
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  # the name of a grant
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

SUBJECT_CHARS_MAX: Final = 255
"""Of a subject's name: what OpenID Connect allows."""

_LIMITS: Final = AuthLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """What is posted, as a form, to a token endpoint. Nothing of it but the URL is ever shown."""

    url: str
    form: Sequence[tuple[str, str]] = field(repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a token endpoint granted.

    Attributes:
        scheme: what stands before it in a header, `Bearer` or `DPoP`.
        expires_at: in seconds of the wall clock; 0 if the server does not say.
        refresh_token: empty if there is none, which is never an error.
        scopes: what it is good for, as far as is known.
        subject: whom it stands for, where the server said so with an ID token; empty otherwise.
        login: which login it goes back to; see `Grant`.
    """

    access_token: str = field(repr=False)
    scheme: str = "Bearer"
    expires_at: float = 0.0
    refresh_token: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    subject: str = field(default="", repr=False)
    login: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionFacts:
    """What goes into an assertion of ours that changes each time: whom for, when, which."""

    audience: str
    now: int
    id: str
    seconds: int = _LIMITS.assertion_seconds


def authorization_url(flow: Flow, consent: Consent) -> str:
    """Return the URL at which the person consents. PKCE is always S256."""
    from mcp_client.auth.signing import challenge_of

    server = flow.known_server
    if not server.authorization_endpoint:
        raise AuthorizationFailedError(AuthFault.DOCUMENT, "no authorization endpoint is named")
    query = [
        ("response_type", "code"),
        ("client_id", flow.known_client.client_id),
        ("redirect_uri", consent.redirect_uri),
        ("state", consent.state),
        ("code_challenge", challenge_of(consent.verifier)),
        ("code_challenge_method", "S256"),
        ("resource", flow.resource_id),
    ]
    if flow.scopes:
        query.append(("scope", " ".join(flow.scopes)))
    if "offline_access" in flow.scopes:
        query.append(("prompt", "consent"))  # OpenID Connect Core, 11: or it is ignored
    # RFC 6749, 3.1: a query that the endpoint has already is kept
    joint = "&" if urlsplit(server.authorization_endpoint).query else "?"
    return f"{server.authorization_endpoint}{joint}{urlencode(query)}"


def read_redirect(url: str, consent: Consent, limits: AuthLimits = _LIMITS) -> Mapping[str, str]:
    """Return the parameters that the browser came back with.

    Raises AuthorizationFailedError if it came elsewhere, or said one thing twice.
    """
    if len(url) > limits.url_chars_max:
        raise AuthorizationFailedError(AuthFault.STATE, "the answer is too long")
    try:
        ours, theirs = urlsplit(consent.redirect_uri), urlsplit(url)
    except ValueError:
        raise AuthorizationFailedError(AuthFault.STATE, "the answer is no URL") from None
    if ours[:3] != theirs[:3]:
        raise AuthorizationFailedError(AuthFault.STATE, "the answer came elsewhere")
    pairs = parse_qsl(theirs.query, keep_blank_values=True)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AuthorizationFailedError(AuthFault.STATE, "the answer says one thing twice")
    return found


def code_request(flow: Flow, facts: AssertionFacts) -> TokenRequest:
    """Return what a code is turned into a token with."""
    consent = flow.consent
    if consent is None or not flow.code:
        raise AuthorizationFailedError(AuthFault.FLOW, "there is no code")
    form = [
        ("grant_type", "authorization_code"),
        ("code", flow.code),
        ("redirect_uri", consent.redirect_uri),
        ("code_verifier", consent.verifier),
        ("resource", flow.resource_id),
    ]
    return with_client(_to_token_endpoint(flow, form), flow.known_client, facts)


def refresh_request(
    token_endpoint: str,
    client: ClientIdentity,
    *,
    refresh_token: str,
    resource: str,
    facts: AssertionFacts,
) -> TokenRequest:
    """Return what a token is renewed with: for the same resource and the same scope."""
    form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("resource", resource),
    ]
    return with_client(TokenRequest(url=token_endpoint, form=form), client, facts)


def client_credentials_request(flow: Flow, facts: AssertionFacts) -> TokenRequest:
    """Return what a client asks for a token of its own with."""
    form = [("grant_type", "client_credentials"), ("resource", flow.resource_id)]
    return with_client(_to_token_endpoint(flow, _scoped(form, flow)), flow.known_client, facts)


def jwt_bearer_request(flow: Flow, assertion: str, facts: AssertionFacts) -> TokenRequest:
    """Return what somebody's word for a subject is turned into a token with (RFC 7523)."""
    form = [
        ("grant_type", JWT_BEARER),
        ("assertion", assertion),
        ("resource", flow.resource_id),
    ]
    return with_client(_to_token_endpoint(flow, _scoped(form, flow)), flow.known_client, facts)


def exchange_request(
    flow: Flow, token_endpoint: str, client: ClientIdentity, id_token: str, facts: AssertionFacts
) -> TokenRequest:
    """Return what an identity provider is asked for its word with (RFC 8693, ID-JAG)."""
    form = [
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token", id_token),
        ("subject_token_type", ID_TOKEN),
        ("audience", flow.issuer),
        ("resource", flow.resource_id),
    ]
    return with_client(TokenRequest(url=token_endpoint, form=_scoped(form, flow)), client, facts)


def with_client(
    request: TokenRequest, client: ClientIdentity, facts: AssertionFacts
) -> TokenRequest:
    """Return a request that shows who the client is, in the way that the server supports."""
    form = list(request.form)
    match client.method:
        case AuthMethod.NONE:
            form.append(("client_id", client.client_id))
        case AuthMethod.POST:
            form += [("client_id", client.client_id), ("client_secret", client.secret)]
        case AuthMethod.BASIC:
            # RFC 6749, 2.3.1: both are form-encoded before they are joined
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
            value = base64.b64encode(pair.encode()).decode()
            header = ("Authorization", f"Basic {value}")
            return replace(request, headers=(*request.headers, header))
        case AuthMethod.PRIVATE_KEY_JWT:
            from mcp_client.auth.signing import sign_assertion

            assertion = sign_assertion(
                client,
                audience=facts.audience,
                unique=facts.id,
                issued_at=facts.now,
                expires_at=facts.now + facts.seconds,
            )
            form += [
                ("client_assertion_type", CLIENT_ASSERTION),
                ("client_assertion", assertion),
            ]
    return replace(request, form=tuple(form))


def read_token(
    document: Mapping[str, object],
    *,
    now: float,
    asked: tuple[str, ...],
    bound: bool = False,
    limits: AuthLimits = _LIMITS,
) -> Token:
    """Return the token of an answer. Raises AuthorizationFailedError if it is not usable.

    Args:
        document: the answer.
        now: the wall clock's time.
        asked: the scopes that were asked for: those granted, if it does not say otherwise.
        bound: it must be bound to our key: one that anybody could use is refused.
        limits: the bounds.
    """
    access = _text(document, "access_token", limits)
    scheme = _text(document, "token_type", limits).lower()
    if not access or scheme not in ("bearer", "dpop") or (scheme == "dpop") is not bound:
        raise AuthorizationFailedError(AuthFault.GRANT_UNUSABLE)
    if not access.isascii() or not access.isprintable() or " " in access:
        raise AuthorizationFailedError(AuthFault.GRANT_UNUSABLE, "no header can hold it")
    seconds = document.get("expires_in")
    if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < 12:
        seconds = int(seconds)  # some servers send a text
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    # a number without end, or past all bounds, is no time
    has_end = is_number and 0 < cast("float", seconds) <= limits.token_seconds_max
    scopes = tuple(_text(document, "scope", limits).split()) or asked
    if len(scopes) > limits.scopes_max:
        raise AuthorizationFailedError(AuthFault.GRANT_UNUSABLE, "it has too many scopes")
    return Token(
        access_token=access,
        scheme="DPoP" if bound else "Bearer",
        expires_at=now + float(cast("float", seconds)) if has_end else 0.0,
        refresh_token=_text(document, "refresh_token", limits),
        scopes=scopes,
        subject=_subject(_text(document, "id_token", limits)),
    )


def read_assertion(document: Mapping[str, object], limits: AuthLimits = _LIMITS) -> str:
    """Return the identity provider's word. Raises AuthorizationFailedError if it is something else."""
    assertion = _text(document, "access_token", limits)
    if not assertion or document.get("issued_token_type") != ID_JAG:
        raise AuthorizationFailedError(AuthFault.GRANT_UNUSABLE, "it is no ID-JAG")
    return assertion


def _subject(id_token: str) -> str:
    """Return whom an ID token is about; empty if there is none that can be read.

    OpenID Connect Core, 3.1.3.7: what comes from the token endpoint itself, over its TLS, need not
    be verified once more. It only tells one subject from another: nothing is granted for it.
    """
    parts = id_token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = as_object(decode(base64.urlsafe_b64decode(parts[1] + "==="), ClientLimits()))
    except (RemoteProtocolError, ValueError):
        return ""
    subject = None if claims is None else claims.get("sub")
    # OpenID Connect Core, 2: at most 255 characters
    return subject if isinstance(subject, str) and len(subject) <= SUBJECT_CHARS_MAX else ""


def _to_token_endpoint(flow: Flow, form: Sequence[tuple[str, str]]) -> TokenRequest:
    endpoint = flow.known_server.token_endpoint
    if not endpoint:
        raise AuthorizationFailedError(AuthFault.DOCUMENT, "no token endpoint is named")
    return TokenRequest(url=endpoint, form=form)


def _scoped(form: list[tuple[str, str]], flow: Flow) -> list[tuple[str, str]]:
    return [*form, ("scope", " ".join(flow.scopes))] if flow.scopes else form


def _text(document: Mapping[str, object], name: str, limits: AuthLimits) -> str:
    value = document.get(name, "")
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > limits.token_chars_max:
        raise AuthorizationFailedError(AuthFault.GRANT_UNUSABLE, "it is malformed")
    return value
