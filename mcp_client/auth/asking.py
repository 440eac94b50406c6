"""Requests to authorization servers: checked, bounded, under a guard, never redirected; no decisions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import anyio
import httpx

from mcp_client.auth.discovery import UrlRules
from mcp_client.auth.dpop import ProofKey
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import RegistrationRequest
from mcp_client.auth.requests import TokenRequest
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["Asker"]

_METADATA: Final = (("Accept", "application/json"), ("MCP-Protocol-Version", "2025-11-25"))
_LATER: Final = frozenset({408, 425, 429})
"""What a server that is too busy says: it has said nothing about what was asked."""
_JSON: Final = (("Accept", "application/json"), ("Content-Type", "application/json"))
_FORM: Final = (
    ("Accept", "application/json"),
    ("Content-Type", "application/x-www-form-urlencoded"),
)


class Asker:
    """Asks authorization servers. What it raises shows no URL, no token and no server's text.

    Args:
        client: see `guarded_client`: it follows no redirect.
        guard: leave for each request.
        rules: which URLs are spoken to.
        key: proves that tokens are ours; None if they need no proof.
        clock: the wall clock.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        guard: SendGuard,
        rules: UrlRules,
        key: ProofKey | None,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._guard = guard
        self._rules = rules
        self._key = key
        self._clock = clock
        self._nonces: dict[str, str] = {}

    @property
    def _limits(self) -> AuthLimits:
        return self._rules.limits

    async def find(self, places: Sequence[str]) -> Mapping[str, object] | None:
        """Return the first document that is at one of these places; None if there is none.

        A redirect is not followed, and so is no document. A server that fails is not one that has
        none: then AuthorizationFailedError is raised, so that nothing weaker is tried instead.
        """
        for place in places:
            status, body, _ = await self._send("GET", place, _METADATA, b"")
            if status == 200:
                return self._document(body, AuthFault.DOCUMENT)
            if status >= 500 or status in _LATER:
                raise AuthorizationFailedError(AuthFault.UNREACHABLE, f"status {status}")
        return None

    async def register(self, request: RegistrationRequest) -> Mapping[str, object]:
        """Register the client, and return the answer."""
        status, body, _ = await self._send("POST", request.url, _JSON, encode(request.body))
        if status not in (200, 201):
            raise AuthorizationFailedError(AuthFault.REGISTRATION_REFUSED, f"status {status}")
        return self._document(body, AuthFault.REGISTRATION_REFUSED)

    async def token(self, request: TokenRequest) -> Mapping[str, object]:
        """Ask a token endpoint, and return its answer.

        GRANT_REFUSED means that it said no; anything else, that nobody knows.
        """
        for is_last in (False, True):
            headers = [*_FORM, *request.headers, *self._proof(request.url)]
            form = urlencode(list(request.form)).encode()
            status, body, answered = await self._send("POST", request.url, headers, form)
            nonce = answered.get("dpop-nonce", "")
            if nonce and len(nonce) <= self._limits.token_chars_max and self._key is not None:
                if len(self._nonces) >= self._limits.servers_max:
                    self._nonces.clear()
                self._nonces[request.url] = nonce
            if status == 200:
                return self._document(body, AuthFault.GRANT_UNUSABLE)
            if status >= 500 or status in _LATER:
                raise AuthorizationFailedError(AuthFault.UNREACHABLE, f"status {status}")
            # RFC 9449, 8: the very same request, with the nonce that came with the refusal
            if self._error_in(body) != "use_dpop_nonce" or not nonce or is_last:
                break
        raise AuthorizationFailedError(AuthFault.GRANT_REFUSED, f"status {status}")

    def _proof(self, url: str) -> Sequence[tuple[str, str]]:
        if self._key is None:
            return ()
        proof = self._key.proof(
            "POST",
            url,
            now=int(self._clock()),
            jti=secrets.token_urlsafe(24),
            nonce=self._nonces.get(url, ""),
        )
        return (("DPoP", proof),)

    async def _send(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send one request; return its status, its body and its headers."""
        self._rules.check(url)
        sent = self._client.stream(
            method,
            url,
            headers=list(headers),
            content=body or None,
            extensions={"guard": self._guard},
        )
        received, is_too_large = bytearray(), False
        try:
            with anyio.fail_after(self._limits.request_seconds_max) as scope:
                async with sent as response:
                    async for piece in response.aiter_raw():
                        if len(received) + len(piece) <= self._limits.document_bytes_max:
                            received += piece
                        else:
                            # the next wait ends it: httpx's generators must not be left half read
                            is_too_large = True
                            scope.cancel()
        except TimeoutError:
            if is_too_large:
                raise AuthorizationFailedError(AuthFault.DOCUMENT, "it is too large") from None
            raise AuthorizationFailedError(AuthFault.UNREACHABLE, "it took too long") from None
        except httpx.HTTPError as error:
            # httpx's error holds the request, and that the credentials: ours beneath it does not
            raise AuthorizationFailedError(AuthFault.UNREACHABLE) from error.__cause__
        except httpx.InvalidURL:
            raise AuthorizationFailedError(AuthFault.URL, "a URL cannot be read") from None
        if is_too_large:
            raise AuthorizationFailedError(AuthFault.DOCUMENT, "it is too large")
        return response.status_code, bytes(received), response.headers

    def _document(self, body: bytes, fault: AuthFault) -> Mapping[str, object]:
        try:
            found = as_object(decode(body, self._json_limits()))
        except RemoteProtocolError:
            found = None
        if found is None:
            raise AuthorizationFailedError(fault, "it is no JSON object")
        return found

    def _error_in(self, body: bytes) -> object:
        try:
            found = as_object(decode(body, self._json_limits()))
        except RemoteProtocolError:
            return None
        return None if found is None else found.get("error")

    def _json_limits(self) -> ClientLimits:
        return ClientLimits(frame_bytes_max=self._limits.document_bytes_max)
