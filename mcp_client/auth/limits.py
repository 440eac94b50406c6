"""Every bound of authorization, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AuthLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthLimits:
    """The bounds of one server's authorization. Sizes are bytes, times are seconds."""

    document_bytes_max: int = 256 * 1024
    """One metadata document, registration or token response: real ones have a few thousand."""
    url_chars_max: int = 8_192
    """One URL that is discovered or redirected to: what common servers and proxies take."""
    token_chars_max: int = 16_384
    """One token, code or secret: what fits into a request's head."""
    token_seconds_max: float = 10 * 366 * 86_400.0
    """How long a token may be said to be good: more is taken for no end at all."""
    scopes_max: int = 256
    """Scopes of one request: a list of all that a large service has."""
    servers_max: int = 16
    """Authorization servers of one resource; further ones are not looked at."""
    step_ups_max: int = 3
    """Times that a wider scope is asked for, before a refusal is taken as final."""
    request_seconds_max: float = 20.0
    """One request to an authorization server."""
    consent_seconds_max: float = 300.0
    """From opening a browser to the code: a person reads, signs in, confirms."""
    renewals_max: int = 5
    """Tokens in a row that are turned away as soon as they were granted: then no other is asked for."""
    early_seconds: float = 30.0
    """So long before its end a token is renewed: clocks differ, requests take time."""
    early_share: float = 0.2
    """But not sooner than with this share of its time left: one of a minute is not renewed at once."""
    ahead_pause_seconds: float = 5.0
    """Before a renewal ahead of the end is tried again that did not succeed."""
    closing_seconds: float = 2.0
    """How long a renewal under way may take once its connection is closed."""
    lease_seconds: float = 60.0
    """How long one process may take to renew a grant before another may try."""
    poll_seconds: float = 0.1
    """Between two looks at a grant that another process renews."""
    assertion_seconds: int = 300
    """How long an assertion of ours is good for."""
    store_bytes_max: int = 1024 * 1024
    """One file of the token store."""
