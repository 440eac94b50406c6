"""A login by the official SDK's OAuth provider, which all frameworks but remit take. Standard library and `mcp`.

None of them has a word for logging out. What an application has by the SDK's own means is the storage
that it handed over: where nothing is kept any more, nobody is logged in.
"""

from __future__ import annotations

import http.client
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

BACK = "http://127.0.0.1:9/callback"


class Kept:
    """The SDK's `TokenStorage`, in memory."""

    def __init__(self) -> None:
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info) -> None:
        self.client = client_info

    def forget(self) -> None:
        """Log out."""
        self.tokens = self.client = None


def login_to(url: str) -> tuple[OAuthClientProvider, Kept]:
    """Return what logs in to a server, for httpx, and where it keeps the login."""
    kept = Kept()
    came_back: list[str] = []

    async def visit(address: str) -> None:
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.netloc, timeout=5)
        connection.request("GET", f"{parts.path}?{parts.query}")
        came_back.append(connection.getresponse().headers["Location"])

    async def answered():
        words = parse_qs(urlsplit(came_back[-1]).query)
        return answer_of(words["code"][0], words["state"][0])

    metadata = OAuthClientMetadata(
        client_name="bench", redirect_uris=[BACK], token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=kept,
        redirect_handler=visit,
        callback_handler=answered,
    )
    return provider, kept


def answer_of(code: str, state: str):
    """Return the code and the state as this SDK wants them: a type of its own since version 2."""
    try:
        from mcp.client.auth import AuthorizationCodeResult
    except ImportError:
        return code, state
    return AuthorizationCodeResult(code=code, state=state)
