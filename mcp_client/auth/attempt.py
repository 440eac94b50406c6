"""From a challenge to a token, over the network, step by step; it keeps nothing and attaches nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio

from mcp_client.auth.asking import Asker
from mcp_client.auth.discovery import UrlRules, read_resource, read_server
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.flow import Consent, Flow, Profile, Stage
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import (
    AuthMethod,
    ClientIdentity,
    RegistrationRequest,
    choose_client,
    read_registration,
)
from mcp_client.auth.requests import (
    AssertionFacts,
    Token,
    TokenRequest,
    authorization_url,
    client_credentials_request,
    code_request,
    exchange_request,
    jwt_bearer_request,
    read_assertion,
    read_redirect,
    read_token,
    refresh_request,
)
from mcp_client.auth.settings import AuthorizationStep, AuthSettings
from mcp_client.auth.store import Kept
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.protocol.urls import WebAddress, read_address

__all__ = ["Attempts"]

_NOWHERE: Final = "http://127.0.0.1/"
"""The redirect of a client that redirects nobody."""


class Attempts:
    """Makes the steps of a flow for one server: each fetches what is missing and has it checked.

    Args:
        server_url: the configured URL of the server.
        asker: sends the credential traffic.
        rules: which URLs are spoken to.
        settings: how the server is to be authorized.
        step: asks a person; None if nobody is here. It may be set to another later on.
        server: the host's label of the server, for errors.
        clock: the wall clock.
    """

    def __init__(
        self,
        server_url: str,
        *,
        asker: Asker,
        rules: UrlRules,
        settings: AuthSettings,
        step: AuthorizationStep | None,
        server: str,
        clock: Callable[[], float],
    ) -> None:
        self._url = server_url
        self._asker = asker
        self._rules = rules
        self._limits: AuthLimits = rules.limits
        self._settings = settings
        self.step = step
        self._server = server
        self._clock = clock

    def challenged(
        self,
        error: AuthorizationRequiredError | None,
        *,
        first_issuer: str = "",
        earlier: tuple[str, ...] = (),
    ) -> Flow:
        """Return the flow that begins with what a server said.

        Args:
            error: what it said; None if it was not asked.
            first_issuer: the one that was asked before; what was registered by hand, without saying
                where, goes to no second one.
            earlier: the scopes of a token that did not suffice.

        Raises AuthorizationFailedError if an assertion is to be shown and the configuration does
        not say to whom.
        """
        scope = named = ""
        for challenge in () if error is None else error.challenges:
            if challenge.scheme in ("bearer", "dpop"):
                scope = scope or challenge.parameters.get("scope", "")
                named = named or challenge.parameters.get("resource_metadata", "")
        scope = scope or " ".join(self._settings.scopes)
        client = self._settings.client
        vouched = self._settings.profile in (Profile.ENTERPRISE, Profile.WORKLOAD)
        if vouched and not client.issuer:
            # who speaks for a person or a workload decides to whom, and never the resource
            raise AuthorizationFailedError(AuthFault.ISSUER, "the server's entry names none")
        flow = Flow(
            server_url=self._url,
            profile=self._settings.profile,
            expected_issuer=client.issuer or (first_issuer if client.client_id else ""),
            pkce_optional=self._settings.pkce_optional,
        )
        return flow.challenged(scope=scope, named_place=named, earlier=earlier)

    async def discovered(self, flow: Flow) -> Flow:
        """Find out who authorizes for the server, and where."""
        found = await self._asker.find(flow.places)
        if found is None:
            flow = flow.resource_missing()
        else:
            flow = flow.resource_read(read_resource(found, self._url, self._rules))
        found = await self._asker.find(flow.places)
        if found is None:
            return flow.server_missing()
        return flow.server_read(read_server(found, flow.issuer, self._rules))

    def renewal(self, flow: Flow, kept: Kept) -> TokenRequest | None:
        """Return what the token of before is renewed with; None if there is nothing to renew."""
        before = kept.token
        endpoint = flow.known_server.token_endpoint
        if before is None or not before.refresh_token or not endpoint:
            return None
        client = choose_client(self._settings.client, kept.client, flow.known_server, _NOWHERE)
        if isinstance(client, RegistrationRequest):
            return None
        return refresh_request(
            endpoint,
            client,
            refresh_token=before.refresh_token,
            resource=flow.resource_id,
            facts=self._facts(flow),
        )

    async def renewed(self, request: TokenRequest, before: Token) -> Token | None:
        """Return the token of a renewal; None if the server says that there is none any more."""
        try:
            token = await self._ask(request, before.scopes)
        except AuthorizationFailedError as error:
            if error.fault is not AuthFault.GRANT_REFUSED:
                raise
            return None
        return replace(
            token,
            # RFC 6749, 6: where no new one comes, the old one stays good
            refresh_token=token.refresh_token or before.refresh_token,
            subject=token.subject or before.subject,
            login=before.login,
        )

    async def granted(self, flow: Flow, known: ClientIdentity | None) -> tuple[Flow, Token]:
        """Become known where that is needed, have somebody say yes, and get the token."""
        flow = await self._agreed(await self._identified(flow, known))
        facts = self._facts(flow)
        match flow.profile:
            case Profile.CODE:
                request = code_request(flow, facts)
            case Profile.CLIENT_CREDENTIALS:
                request = client_credentials_request(flow, facts)
            case Profile.ENTERPRISE:
                request = jwt_bearer_request(flow, flow.assertion, facts)
            case Profile.WORKLOAD:
                request = jwt_bearer_request(flow, self._settings.assertion, facts)
        return flow, await self._ask(request, flow.scopes)

    # --------------------------------------------------------------------------------- steps

    async def _identified(self, flow: Flow, known: ClientIdentity | None) -> Flow:
        redirect = _NOWHERE if self.step is None else self._checked(self.step.redirect_uri)
        if known is not None and not known.may_redirect_to(redirect):
            known = None  # the listener is another one than that which was registered
        chosen = choose_client(
            self._settings.client, known, flow.known_server, redirect, flow.scopes
        )
        if isinstance(chosen, RegistrationRequest):
            answer = await self._asker.register(chosen)
            chosen = read_registration(answer, flow.known_server, self._limits)
            chosen = replace(chosen, redirect_uri=redirect)
        return flow.client_known(chosen)

    def _checked(self, redirect: str) -> str:
        """Return where the browser is sent back to: this machine, or https (OAuth 2.1, 8.4)."""
        found = read_address(redirect, chars_max=self._limits.url_chars_max)
        if not isinstance(found, WebAddress):
            raise AuthorizationFailedError(AuthFault.URL, "a redirect leads elsewhere")
        return redirect

    async def _agreed(self, flow: Flow) -> Flow:
        """Have the person, or the identity provider, say yes where somebody has to."""
        if flow.stage is Stage.CONSENT:
            return await self._consented(flow)
        if flow.stage is Stage.ASSERTION:
            enterprise = self._settings.enterprise
            if enterprise is None:
                raise AuthorizationFailedError(AuthFault.CLIENT_UNKNOWN, "no identity provider")
            client = ClientIdentity(
                client_id=enterprise.client_id,
                method=AuthMethod.POST if enterprise.secret else AuthMethod.NONE,
                secret=enterprise.secret,
            )
            request = exchange_request(
                flow, enterprise.token_endpoint, client, enterprise.id_token, self._facts(flow)
            )
            return flow.asserted(read_assertion(await self._asker.token(request), self._limits))
        return flow

    async def _consented(self, flow: Flow) -> Flow:
        if self.step is None:
            raise NeedsAuthorizationError(server=self._server)
        consent = Consent(
            redirect_uri=self.step.redirect_uri,
            state=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        flow = flow.asking(consent)
        url = self._rules.check(authorization_url(flow, consent))
        with anyio.move_on_after(self._limits.consent_seconds_max) as scope:
            came = await self.step.visit(url)
            return flow.consented(read_redirect(came, consent, self._limits))
        assert scope.cancelled_caught
        raise AuthorizationFailedError(AuthFault.DENIED, "nobody came back in time")

    async def _ask(self, request: TokenRequest, scopes: tuple[str, ...]) -> Token:
        return read_token(
            await self._asker.token(request),
            now=self._clock(),
            asked=scopes,
            bound=self._settings.dpop,
            limits=self._limits,
        )

    def _facts(self, flow: Flow) -> AssertionFacts:
        return AssertionFacts(
            audience=flow.issuer,
            now=int(self._clock()),
            id=secrets.token_urlsafe(24),
            seconds=self._limits.assertion_seconds,
        )
