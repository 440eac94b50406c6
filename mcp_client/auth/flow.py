"""How a server comes to be authorized, as a table of stages; what is not in it is an error. No I/O.

Each method takes what a shell has learned, checks it, and returns the flow that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from mcp_client.auth.discovery import (
    ResourceMetadata,
    ServerMetadata,
    choose_scopes,
    default_server,
    origin_of,
    resource_places,
    server_places,
    widen,
)
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.registration import ClientIdentity

__all__ = ["TABLE", "Consent", "Event", "Flow", "Profile", "Stage", "diagram"]


class Profile(Enum):
    """Whose authority the token stands for, and how it is got."""

    CODE = "authorization_code"
    """A person's, who consents in a browser."""
    CLIENT_CREDENTIALS = "client_credentials"
    """The client's own."""
    ENTERPRISE = "enterprise"
    """A person's, who has signed in with an identity provider (ID-JAG)."""
    WORKLOAD = "workload"
    """A workload's, which its platform vouches for (RFC 7523)."""


class Stage(Enum):
    """What is being waited for."""

    START = "start"
    RESOURCE = "resource"
    """The resource's metadata."""
    SERVER = "server"
    """The authorization server's metadata."""
    CLIENT = "client"
    """Who the client is there."""
    CONSENT = "consent"
    """The person."""
    ASSERTION = "assertion"
    """The identity provider's word."""
    GRANT = "grant"
    """The token."""
    DONE = "done"
    FAILED = "failed"


class Event(Enum):
    """What a shell has learned."""

    CHALLENGED = "challenged"
    RESOURCE_READ = "resource read"
    RESOURCE_MISSING = "resource missing"
    SERVER_READ = "server read"
    SERVER_MISSING = "server missing"
    CLIENT_NEEDS_PERSON = "client known, person needed"
    CLIENT_NEEDS_ASSERTION = "client known, assertion needed"
    CLIENT_SUFFICES = "client known, nothing else needed"
    RENEWED = "token renewed, client known from before"
    CONSENTED = "consented"
    ASSERTED = "asserted"
    GRANTED = "granted"
    FAILED = "failed"


TABLE: Final[Mapping[tuple[Stage, Event], Stage]] = {
    (Stage.START, Event.CHALLENGED): Stage.RESOURCE,
    (Stage.RESOURCE, Event.RESOURCE_READ): Stage.SERVER,
    (Stage.RESOURCE, Event.RESOURCE_MISSING): Stage.SERVER,
    (Stage.SERVER, Event.SERVER_READ): Stage.CLIENT,
    (Stage.SERVER, Event.SERVER_MISSING): Stage.CLIENT,
    (Stage.CLIENT, Event.CLIENT_NEEDS_PERSON): Stage.CONSENT,
    (Stage.CLIENT, Event.CLIENT_NEEDS_ASSERTION): Stage.ASSERTION,
    (Stage.CLIENT, Event.CLIENT_SUFFICES): Stage.GRANT,
    (Stage.CLIENT, Event.RENEWED): Stage.DONE,
    (Stage.CONSENT, Event.CONSENTED): Stage.GRANT,
    (Stage.ASSERTION, Event.ASSERTED): Stage.GRANT,
    (Stage.GRANT, Event.GRANTED): Stage.DONE,
    (Stage.RESOURCE, Event.FAILED): Stage.FAILED,
    (Stage.SERVER, Event.FAILED): Stage.FAILED,
    (Stage.CLIENT, Event.FAILED): Stage.FAILED,
    (Stage.CONSENT, Event.FAILED): Stage.FAILED,
    (Stage.ASSERTION, Event.FAILED): Stage.FAILED,
    (Stage.GRANT, Event.FAILED): Stage.FAILED,
}
"""The whole flow. START, DONE and FAILED have no way on but those that stand here."""

_AFTER_CLIENT: Final = {
    Profile.CODE: Event.CLIENT_NEEDS_PERSON,
    Profile.ENTERPRISE: Event.CLIENT_NEEDS_ASSERTION,
    Profile.CLIENT_CREDENTIALS: Event.CLIENT_SUFFICES,
    Profile.WORKLOAD: Event.CLIENT_SUFFICES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """One question to a person, and what its answer must show."""

    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One attempt to get a token for one server. A value: every step returns a new one.

    Attributes:
        server_url: the configured URL.
        profile: how the token is got.
        expected_issuer: the only issuer that may be asked; empty if the resource may choose.
        pkce_optional: the server's entry says that PKCE need not be advertised.
        stage: what is being waited for.
        earlier: the scopes that were asked for before, for a step-up.
        issuer: the issuer, from the stage SERVER on.
        scopes: what to ask for, from the stage CLIENT on.
    """

    server_url: str
    profile: Profile = Profile.CODE
    expected_issuer: str = ""
    pkce_optional: bool = False
    stage: Stage = Stage.START
    challenged_scope: str = ""
    named_place: str = ""
    earlier: tuple[str, ...] = ()
    resource: ResourceMetadata | None = None
    issuer: str = ""
    server: ServerMetadata | None = None
    scopes: tuple[str, ...] = ()
    client: ClientIdentity | None = None
    consent: Consent | None = None
    code: str = field(default="", repr=False)
    assertion: str = field(default="", repr=False)

    # ------------------------------------------------------------------------------- questions

    @property
    def places(self) -> tuple[str, ...]:
        """Where the document that is waited for may be, in this order."""
        if self.stage is Stage.RESOURCE:
            return resource_places(self.server_url, self.named_place)
        if self.stage is Stage.SERVER:
            return server_places(self.issuer, assumed=self.resource is None)
        raise _out_of_turn("no document is waited for")

    @property
    def resource_id(self) -> str:
        """The resource to name in every request (RFC 8707)."""
        return self.server_url if self.resource is None else self.resource.resource

    @property
    def known_server(self) -> ServerMetadata:
        """The authorization server's metadata. From the stage CLIENT on."""
        if self.server is None:
            raise _out_of_turn("the authorization server is not known")
        return self.server

    @property
    def known_client(self) -> ClientIdentity:
        """Who the client is. From the stage after CLIENT on."""
        if self.client is None:
            raise _out_of_turn("the client is not known")
        return self.client

    # ----------------------------------------------------------------------------------- steps

    def challenged(
        self, *, scope: str = "", named_place: str = "", earlier: tuple[str, ...] = ()
    ) -> Flow:
        """The server wants a token. `earlier` are the scopes of one that did not suffice."""
        return replace(
            self._to(Event.CHALLENGED),
            challenged_scope=scope,
            named_place=named_place,
            earlier=earlier,
        )

    def resource_read(self, resource: ResourceMetadata) -> Flow:
        """The resource's metadata was found, read and checked."""
        after = self._to(Event.RESOURCE_READ)
        issuer = self.expected_issuer or resource.authorization_servers[0]
        # what is registered at one issuer is not shown to another that the resource would like
        if issuer not in resource.authorization_servers:
            raise AuthorizationFailedError(AuthFault.ISSUER, "the resource names another")
        return replace(after, resource=resource, issuer=issuer)

    def resource_missing(self) -> Flow:
        """There is none anywhere: the server is one of 2025-03-26, its own issuer."""
        after = self._to(Event.RESOURCE_MISSING)
        issuer = origin_of(self.server_url)
        if self.expected_issuer not in ("", issuer):
            raise AuthorizationFailedError(AuthFault.ISSUER, "the resource names none")
        return replace(after, issuer=issuer)

    def server_read(self, server: ServerMetadata) -> Flow:
        """The authorization server's metadata was found, read and checked."""
        after = self._to(Event.SERVER_READ)
        if server.issuer != self.issuer:
            raise AuthorizationFailedError(AuthFault.ISSUER)
        # MCP 2025-06-18: absent means that PKCE is not supported, and then nothing goes on
        if self.profile is Profile.CODE and not (server.has_pkce or self.pkce_optional):
            raise AuthorizationFailedError(AuthFault.PKCE)
        return replace(after, server=server, scopes=self._wanted(server))

    def server_missing(self) -> Flow:
        """There is none anywhere, which only a server of 2025-03-26 may do."""
        after = self._to(Event.SERVER_MISSING)
        if self.resource is not None:
            raise AuthorizationFailedError(AuthFault.METADATA_MISSING)
        server = default_server(self.server_url)
        return replace(after, server=server, scopes=self._wanted(server))

    def client_known(self, client: ClientIdentity) -> Flow:
        """It is clear who the client is at this issuer."""
        after = self._to(_AFTER_CLIENT[self.profile])
        if client.issuer not in ("", self.issuer):
            raise AuthorizationFailedError(AuthFault.ISSUER, "the client is registered at another")
        return replace(after, client=client)

    def renewed(self) -> Flow:
        """The token of before was renewed at this very issuer: nobody has to be asked."""
        return self._to(Event.RENEWED)

    def asking(self, consent: Consent) -> Flow:
        """The person is about to be asked; what is recorded here is what the answer must show."""
        if self.stage is not Stage.CONSENT or self.consent is not None:
            raise _out_of_turn("nobody is to be asked")
        return replace(self, consent=consent)

    def consented(self, answer: Mapping[str, str]) -> Flow:
        """The browser came back with these parameters.

        State and issuer are looked at first: of an answer that is not ours nothing else is said.
        """
        if self.consent is None:
            raise _out_of_turn("nobody was asked")
        after = self._to(Event.CONSENTED)
        if answer.get("state") != self.consent.state:
            raise AuthorizationFailedError(AuthFault.STATE)
        named = answer.get("iss")
        # RFC 9207, 2.4; MCP 2026-07-28: compared as it is, advertised or not
        if named is None and self.known_server.names_issuer:
            raise AuthorizationFailedError(AuthFault.ISSUER, "the answer names none")
        if named is not None and named != self.issuer:
            raise AuthorizationFailedError(AuthFault.ISSUER, "the answer names another")
        code = answer.get("code", "")
        if "error" in answer or not code:
            raise AuthorizationFailedError(AuthFault.DENIED)
        return replace(after, code=code)

    def asserted(self, assertion: str) -> Flow:
        """The identity provider has vouched for the person."""
        return replace(self._to(Event.ASSERTED), assertion=assertion)

    def granted(self) -> Flow:
        """The token is here. What was good for it once is forgotten."""
        return replace(self._to(Event.GRANTED), consent=None, code="", assertion="")

    def failed(self) -> Flow:
        """Nothing more comes of it. What was good once is forgotten."""
        return replace(self._to(Event.FAILED), consent=None, code="", assertion="")

    # -------------------------------------------------------------------------------- internal

    def _to(self, event: Event) -> Flow:
        stage = TABLE.get((self.stage, event))
        if stage is None:
            raise _out_of_turn(f"{event.value} in stage {self.stage.value}")
        return replace(self, stage=stage)

    def _wanted(self, server: ServerMetadata) -> tuple[str, ...]:
        return widen(self.earlier, choose_scopes(self.challenged_scope, self.resource, server))


def diagram() -> str:
    """Return the table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {Stage.START.value}"]
    lines += [
        f"    {before.value} --> {after.value}: {event.value}"
        for (before, event), after in TABLE.items()
    ]
    lines += [f"    {end.value} --> [*]" for end in (Stage.DONE, Stage.FAILED)]
    return "\n".join(lines)


def _out_of_turn(detail: str) -> AuthorizationFailedError:
    return AuthorizationFailedError(AuthFault.FLOW, detail)
