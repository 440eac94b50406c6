"""What a servers file says of logging in to a server: who the client is, how far, where back to. It logs in nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcp_client.auth.flow import Profile
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthSettings, EnterpriseSettings
from orchestrator.core.documents import Table

__all__ = ["LOGIN_KEYS", "NO_LOGIN", "LoginEntry", "LoginTexts", "read_login"]

_LIMITS: Final = AuthLimits()
_PORT_MIN: Final = 1_024
_PORT_MAX: Final = 65_535
_CALLBACK: Final = "/callback"
"""The path of a redirect that was registered by hand with a port alone, as other clients have it."""

_TEXTS: Final = (
    "assertion", "clientId", "clientMetadataUrl", "clientSecret", "issuer", "privateKey",
)  # fmt: skip
_FLAGS: Final = ("dpop", "pkceOptional")
_PROVIDER: Final = ("clientId", "clientSecret", "idToken", "tokenEndpoint")
LOGIN_KEYS: Final = frozenset(
    {
        *_TEXTS, *_FLAGS, "callbackPort", "grant", "identityProvider", "redirectUri", "scopes",
        "signingAlgorithm",
    }
)  # fmt: skip
"""Keys of an entry's `oauth`."""
_GRANTS: Final = {profile.value: profile for profile in Profile}
_REDIRECT: Final = re.compile(r"http://(127\.0\.0\.1|localhost):([0-9]{4,5})/[A-Za-z0-9/._~-]*")
_SIGNING: Final = ("ES256", "ES384", "ES512", "RS256", "PS256", "EdDSA")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginEntry:
    """How one server is logged in to.

    Attributes:
        settings: who the client is, and by whose authority it asks.
        redirect_uri: where the browser comes back to, if that was registered by hand.
        port: of this machine, for the same; 0 takes any.
    """

    settings: AuthSettings = field(default_factory=AuthSettings)
    redirect_uri: str = ""
    port: int = 0


NO_LOGIN: Final = LoginEntry()
"""An entry that says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTexts:
    """What an entry says of it. The values are as they stand in the file, or expanded and secret."""

    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    scopes: tuple[str, ...] = ()
    profile: Profile = Profile.CODE
    algorithm: str = "ES256"
    pkce_optional: bool = False
    dpop: bool = False
    port: int = 0
    redirect_uri: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that `${…}` may stand in."""
        return tuple(self.values.values())

    def entry(self, texts: Sequence[str]) -> LoginEntry:
        """Return what it comes to with these texts, in the order of `texts`."""
        found = dict(zip(self.values, texts, strict=True))
        enterprise = None
        if self.profile is Profile.ENTERPRISE:
            enterprise = EnterpriseSettings(
                token_endpoint=found.get("identityProvider.tokenEndpoint", ""),
                client_id=found.get("identityProvider.clientId", ""),
                secret=found.get("identityProvider.clientSecret", ""),
                id_token=found.get("identityProvider.idToken", ""),
            )
        return LoginEntry(
            settings=AuthSettings(
                profile=self.profile,
                client=ClientSettings(
                    client_id=found.get("clientId", ""),
                    secret=found.get("clientSecret", ""),
                    private_key=found.get("privateKey", ""),
                    algorithm=self.algorithm,
                    issuer=found.get("issuer", ""),
                    document_url=found.get("clientMetadataUrl", ""),
                ),
                pkce_optional=self.pkce_optional,
                dpop=self.dpop,
                enterprise=enterprise,
                assertion=found.get("assertion", ""),
                scopes=self.scopes,
            ),
            redirect_uri=self.redirect_uri or self._registered_uri(found.get("clientId", "")),
            port=self.port,
        )

    def _registered_uri(self, client_id: str) -> str:
        if client_id and self.port:
            return f"http://127.0.0.1:{self.port}{_CALLBACK}"
        return ""


def read_login(table: Table) -> LoginTexts:
    """Read what an entry says of logging in. Raises ConfigError for a wrong type or value."""
    oauth = table.optional("oauth")
    if oauth is None:
        return LoginTexts()
    values = {name: oauth.text(name) for name in _TEXTS if name in oauth}
    profile = _GRANTS[oauth.choice("grant", _GRANTS, Profile.CODE.value)]
    provider = oauth.optional("identityProvider")
    if provider is not None:
        provider.only(_PROVIDER)
        values |= {f"identityProvider.{name}": provider.text(name) for name in provider}
    _check_grant(oauth, profile)
    return LoginTexts(
        values=values,
        scopes=_scopes(oauth),
        profile=profile,
        algorithm=oauth.choice("signingAlgorithm", _SIGNING, "ES256"),
        pkce_optional=oauth.flag("pkceOptional", default=False),
        dpop=oauth.flag("dpop", default=False),
        port=_port(oauth),
        redirect_uri=_redirect_uri(oauth),
    )


def _check_grant(oauth: Table, profile: Profile) -> None:
    """Raise ConfigError where a grant lacks what it lives on: nothing else would be tried instead."""
    needed: Mapping[Profile, Sequence[str]] = {
        Profile.CODE: (),
        Profile.CLIENT_CREDENTIALS: ("clientId",),
        # who names the issuer decides where the identity goes: never the server
        Profile.ENTERPRISE: ("clientId", "issuer", "identityProvider"),
        Profile.WORKLOAD: ("clientId", "assertion"),
    }
    for name in needed[profile]:
        if name not in oauth:
            raise oauth.error(f"the grant {profile.value!r} needs {name!r}", "grant")


def _scopes(oauth: Table) -> tuple[str, ...]:
    if isinstance(oauth.value.get("scopes"), str):
        scopes = tuple(oauth.text("scopes").split())
    else:
        scopes = oauth.strings("scopes", ())
    if len(scopes) > _LIMITS.scopes_max:
        raise oauth.error(f"more than {_LIMITS.scopes_max} scopes", "scopes")
    # RFC 6749, 3.3
    if any(
        not scope.isascii() or not scope.isprintable() or set(scope) & set(' "\\')
        for scope in scopes
    ):
        raise oauth.error("a scope holds a character that it cannot have", "scopes")
    return scopes


def _port(oauth: Table) -> int:
    port = oauth.integer("callbackPort", 0)
    if "callbackPort" in oauth and not _PORT_MIN <= port <= _PORT_MAX:
        raise oauth.error(
            f"a callback's port is between {_PORT_MIN} and {_PORT_MAX}", "callbackPort"
        )
    return port


def _redirect_uri(oauth: Table) -> str:
    uri = oauth.text("redirectUri", "")
    if not uri:
        return ""
    found = _REDIRECT.fullmatch(uri)
    if found is None or not _PORT_MIN <= int(found[2]) <= _PORT_MAX:
        raise oauth.error(
            "a redirect comes back to this machine: http://127.0.0.1:PORT/PATH, nothing else",
            "redirectUri",
        )
    return uri
