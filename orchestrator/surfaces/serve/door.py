"""Who may speak with the page's server: this machine's browser, from our own page, with the token. Serves nothing.

Another page in the same browser, and a name that leads here (DNS rebinding), are turned away by Origin and
Host; another user of the machine by the token, which stands in the fragment of the address and is never sent
as part of one.
"""

from __future__ import annotations

import hmac
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["API", "HOST", "TOKEN_HEADER", "Door"]

HOST: Final = "127.0.0.1"
"""The one address that is listened on."""
API: Final = "/api/"
"""What needs the token; all else is the page's own code."""
TOKEN_HEADER: Final = "x-remit-token"  # noqa: S105 - a name
"""Carries the token: a header that no other page may set."""

_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Door:
    """Hands on what may come in, and puts the rules for browsers on what goes out."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        names = (HOST, "localhost")
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {f"http://{name}:{port}".encode() for name in names}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or turn it away. Nothing but HTTP comes in."""
        if scope["type"] != "http":
            return
        status = self._refusal(scope["headers"], str(scope["path"]))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        if status is None:
            await self._app(scope, receive, guarded)
            return
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        await guarded({"type": "http.response.start", "status": status, "headers": headers})
        await guarded({"type": "http.response.body", "body": b""})

    def _refusal(self, headers: list[tuple[bytes, bytes]], path: str) -> int | None:
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421
        if any(origin not in self._origins for origin in _values(headers, b"origin")):
            return 403
        if not path.startswith(API):
            return None
        shown = _values(headers, TOKEN_HEADER.encode())
        if len(shown) != 1 or not hmac.compare_digest(shown[0], self._token):
            return 401
        return None


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for each, value in headers if each.lower() == name]
