"""What an authorization server knows: clients, codes, families of tokens. No HTTP, no protocol.

The server's library asks its clients, codes and tokens in its own words: hence the many small
methods.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mcp_client.auth.shell import wall_clock

__all__ = ["Client", "Code", "Realm", "RealmSettings", "TokenRecord"]

USER = "ada"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmSettings:
    """How an authorization server is built.

    Attributes:
        tenant: a path that each of its URLs and its issuer have.
        trailing_slash: its issuer ends with one.
        query: what the query of each of its endpoints is.
        scopes: those that it has.
        access_seconds: how long a token is good for.
        rotates: each refresh token is good once, and used twice ends its family.
        names_issuer: its answers name it (RFC 9207).
        registers: anybody may register (RFC 7591).
        reads_documents: a URL may be a client (CIMD).
        methods: how clients may show who they are.
    """

    tenant: str = ""
    trailing_slash: bool = False
    query: str = ""
    scopes: tuple[str, ...] = ("read", "write", "offline_access")
    access_seconds: int = 3_600
    rotates: bool = True
    names_issuer: bool = True
    registers: bool = True
    reads_documents: bool = False
    methods: tuple[str, ...] = ("none", "client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client that is registered."""

    client_id: str
    secret: str = ""
    method: str = "none"
    redirect_uris: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("authorization_code", "refresh_token")
    metadata: dict[str, object] = field(default_factory=dict[str, object])

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str | None:
        return None

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self.secret, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.grants


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """An authorization code, and what the token must be asked for with."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    resource: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass(slots=True, kw_only=True)
class TokenRecord:
    """A pair that was granted.

    Attributes:
        family: all pairs that came of one consent.
        spent: its refresh token was used.
        ended: its access token is not taken any more.
    """

    access: str
    refresh: str
    client_id: str
    scope: str
    resource: str
    family: str
    expires_at: float
    now: Callable[[], float]
    spent: bool = False
    ended: bool = False

    def check_client(self, client: Client) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return self.now() >= self.expires_at

    def is_revoked(self) -> bool:
        return self.ended

    def get_user(self) -> str:
        return USER


class Realm:
    """One authorization server's memory."""

    def __init__(
        self, settings: RealmSettings, origin: str, now: Callable[[], float] = wall_clock
    ) -> None:
        self.settings = settings
        self.base = f"{origin}{settings.tenant}"
        self.issuer = f"{self.base}/" if settings.trailing_slash else self.base
        self.clients: dict[str, Client] = {}
        self.codes: dict[str, Code] = {}
        self.tokens: list[TokenRecord] = []
        self.killed: set[str] = set()
        self._now = now

    def endpoint(self, name: str) -> str:
        """Return an endpoint's URL."""
        return f"{self.base}/{name}{'?' if self.settings.query else ''}{self.settings.query}"

    def metadata(self) -> dict[str, object]:
        """Return what it says of itself (RFC 8414)."""
        told: dict[str, object] = {
            "issuer": self.issuer,
            "authorization_endpoint": self.endpoint("authorize"),
            "token_endpoint": self.endpoint("token"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [*self.settings.methods],
            "scopes_supported": [*self.settings.scopes],
            "authorization_response_iss_parameter_supported": self.settings.names_issuer,
            "client_id_metadata_document_supported": self.settings.reads_documents,
        }
        if self.settings.registers:
            told["registration_endpoint"] = self.endpoint("register")
        return told

    def client(self, client_id: str) -> Client | None:
        """Return a client that is known."""
        return self.clients.get(client_id)

    def grant(self, *, client_id: str, scope: str, resource: str, family: str = "") -> TokenRecord:
        """Return a new pair, of a family or of a new one."""
        record = TokenRecord(
            access=f"access-{secrets.token_urlsafe(24)}",
            refresh=f"refresh-{secrets.token_urlsafe(24)}",
            client_id=client_id,
            scope=scope,
            resource=resource,
            family=family or secrets.token_hex(8),
            expires_at=self._now() + self.settings.access_seconds,
            now=self._now,
        )
        self.tokens.append(record)
        return record

    def by_access(self, access: str) -> TokenRecord | None:
        """Return the pair of an access token."""
        return next((each for each in self.tokens if each.access == access), None)

    def by_refresh(self, refresh: str) -> TokenRecord | None:
        """Return the pair of a refresh token that may be used; one used twice ends its family."""
        found = next((each for each in self.tokens if each.refresh == refresh), None)
        if found is not None and found.spent:
            self.killed.add(found.family)
            for each in self.tokens:
                if each.family == found.family:
                    each.ended = each.spent = True
        return None if found is None or found.spent else found

    def spend(self, record: TokenRecord) -> None:
        """Take a refresh token that was used."""
        record.spent = self.settings.rotates

    def end_access_tokens(self) -> None:
        """Take no access token any more that was granted so far."""
        for each in self.tokens:
            each.ended = True

    def register(self, client: Client) -> Client:
        """Know a client from now on."""
        self.clients[client.client_id] = replace(client)
        return client
