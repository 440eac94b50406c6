"""What is kept of a server's credentials as a JSON text, and back with every member checked; no files."""

from __future__ import annotations

import math
from typing import cast

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.auth.store import Kept, Stored
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["decode_stored", "encode_stored"]


def encode_stored(stored: Stored) -> bytes:
    """Return the JSON text of what is kept of a server."""
    kept: dict[str, object] = {}
    for issuer, each in stored.kept.items():
        entry: dict[str, object] = {}
        if each.client is not None:
            entry["client"] = {
                "client_id": each.client.client_id,
                "issuer": each.client.issuer,
                "method": each.client.method.value,
                "secret": each.client.secret,
                "redirect_uri": each.client.redirect_uri,
            }
        if each.token is not None:
            entry["token"] = {
                "access_token": each.token.access_token,
                "scheme": each.token.scheme,
                "expires_at": each.token.expires_at,
                "refresh_token": each.token.refresh_token,
                "scopes": list(each.token.scopes),
                "subject": each.token.subject,
                "login": each.token.login,
            }
        kept[issuer] = entry
    whole = {
        "generation": stored.generation,
        "issuer": stored.issuer,
        "kept": kept,
        "holder": stored.holder,
        "until": stored.until,
    }
    return encode(whole)


def decode_stored(data: bytes, limits: AuthLimits) -> Stored:
    """Return what a JSON text keeps of a server.

    Raises AuthorizationFailedError, which shows nothing of the text, for anything that
    `encode_stored` has not made: it may have been planted.
    """
    try:
        whole = _Reader(decode(data, ClientLimits(frame_bytes_max=limits.store_bytes_max)))
        kept: dict[str, Kept] = {}
        for issuer in whole.part("kept").names:
            entry = whole.part("kept").part(issuer)
            kept[issuer] = Kept(client=_client(entry, issuer), token=_token(entry))
        return Stored(
            generation=int(whole.number("generation")),
            issuer=whole.text("issuer"),
            kept=kept,
            holder=whole.text("holder"),
            until=whole.number("until"),
        )
    except (RemoteProtocolError, ValueError, OverflowError):
        # what lies beneath may show the text
        raise AuthorizationFailedError(AuthFault.STORE, "an entry of it is malformed") from None


def _client(entry: _Reader, issuer: str) -> ClientIdentity | None:
    if "client" not in entry.names:
        return None
    part = entry.part("client")
    if part.text("issuer") not in ("", issuer):
        raise ValueError("a client of another issuer")
    return ClientIdentity(
        client_id=part.text("client_id"),
        issuer=part.text("issuer"),
        method=AuthMethod(part.text("method")),
        secret=part.text("secret"),
        redirect_uri=part.text("redirect_uri"),
    )


def _token(entry: _Reader) -> Token | None:
    if "token" not in entry.names:
        return None
    part = entry.part("token")
    access, scheme = part.text("access_token"), part.text("scheme")
    if scheme not in ("Bearer", "DPoP") or not access.isascii() or not access.isprintable():
        raise ValueError("not a token")
    return Token(
        access_token=access,
        scheme=scheme,
        expires_at=part.number("expires_at"),
        refresh_token=part.text("refresh_token"),
        scopes=part.texts("scopes"),
        subject=part.text("subject"),
        login=part.text("login"),
    )


class _Reader:
    """Members of an object, each of its kind or a ValueError."""

    def __init__(self, value: object) -> None:
        found = as_object(value)
        if found is None:
            raise ValueError("not an object")
        self._members = found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def part(self, name: str) -> _Reader:
        return _Reader(self._members.get(name))

    def text(self, name: str) -> str:
        value = self._members.get(name)
        if not isinstance(value, str):
            raise ValueError("not a text")
        return value

    def number(self, name: str) -> float:
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("not a number")
        if not math.isfinite(value):
            raise ValueError("not a finite number")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._members.get(name)
        if not isinstance(value, list):
            raise ValueError("not an array")
        items = cast("list[object]", value)
        return tuple(_Reader({"item": item}).text("item") for item in items)
