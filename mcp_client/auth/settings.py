"""How a server's entry wants it to be authorized, and who can ask a person. It does nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from mcp_client.auth.flow import Profile
from mcp_client.auth.registration import ClientSettings

__all__ = ["AuthSettings", "AuthorizationStep", "EnterpriseSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnterpriseSettings:
    """The identity provider with which a person has signed in. From configuration only.

    Attributes:
        token_endpoint: where its word is asked for.
        client_id: who we are there.
        id_token: that the person has signed in.
    """

    token_endpoint: str
    client_id: str
    secret: str = field(default="", repr=False)
    id_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How one server is to be authorized.

    Attributes:
        profile: whose authority the token stands for.
        client: who the client is.
        pkce_optional: go on with a server that does not show that it supports PKCE with S256,
            which is used all the same.
        dpop: ask for tokens that are bound to a key, and take no others.
        enterprise: for `Profile.ENTERPRISE`.
        assertion: for `Profile.WORKLOAD`: what the platform says of this workload.
        scopes: what to ask for where the server's challenge does not say.
    """

    profile: Profile = Profile.CODE
    client: ClientSettings = field(default_factory=ClientSettings)
    pkce_optional: bool = False
    dpop: bool = False
    enterprise: EnterpriseSettings | None = None
    assertion: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()


class AuthorizationStep(Protocol):
    """The person's part: a browser is opened, and comes back."""

    @property
    def redirect_uri(self) -> str:
        """Where the browser comes back to: on this machine, or https."""
        ...

    async def visit(self, url: str) -> str:
        """Have the person visit a URL, and return the one that the browser came back to.

        The URL was checked: it is http(s). It is never to be given to a shell.
        """
        ...
