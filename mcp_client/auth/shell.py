"""One server's credentials: attached to each request, renewed by one task at a time; no calls retried."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from mcp_client.auth.asking import Asker
from mcp_client.auth.discovery import UrlRules, read_resource, read_server
from mcp_client.auth.dpop import ProofKey
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.flow import Consent, Flow, Profile, Stage
from mcp_client.auth.grants import Grant
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
from mcp_client.auth.store import Kept, Stored, TokenStore
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.httpx_transport import guarded_client
from mcp_client.net.http.messages import LateHeaders
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.http.errors import AuthorizationRequiredError

__all__ = ["Authorizer", "wall_clock"]

ResultT = TypeVar("ResultT")

_LIMITS: Final = AuthLimits()
_NOWHERE: Final = "http://127.0.0.1/"
"""The redirect of a client that redirects nobody."""


def wall_clock() -> float:
    """Return the time in seconds since 1970, as tokens and assertions count it."""
    return datetime.now(tz=UTC).timestamp()


class _Run:
    """One renewal under way, and how it ended."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: McpError | None = None


@dataclass(frozen=True, slots=True)
class _Bound:
    """Headers of one request: its token, and where wanted a proof made for it."""

    owner: Authorizer
    method: str
    url: str

    def __call__(self) -> Sequence[tuple[str, str]]:
        return self.owner.headers_for(self.method, self.url)


class Authorizer:
    """Holds the credentials of one server for one connection, and gets new ones when it must.

    It is the `LateHeaders` of the server's requests: each carries the token of the step in which it
    is sent. Renewals are one at a time, here and, through the store's lease, in all processes that
    share it; no lock is held while anything is sent. A token that comes after a logout, or after
    another's renewal, is thrown away.

    Args:
        server_url: the configured URL of the server, and the audience of its tokens.
        engine: sends the credential traffic; its owner's to close.
        guard: leave for each request of that traffic.
        settings: how the server is to be authorized.
        store: where tokens are kept.
        step: asks a person; None if nobody is here: then NeedsAuthorizationError is raised at once.
        server: the host's label of the server, for errors.
        limits: the bounds.
        clock: the wall clock.
        on_change: told what the grant was and what it will be, in the step in which that changes,
            before anything is sent with it. Must not raise.
    """

    def __init__(
        self,
        server_url: str,
        *,
        engine: HttpEngine,
        guard: SendGuard,
        settings: AuthSettings,
        store: TokenStore,
        step: AuthorizationStep | None = None,
        server: str = "",
        limits: AuthLimits = _LIMITS,
        clock: Callable[[], float] = wall_clock,
        on_change: Callable[[Grant | None, Grant | None], object] | None = None,
    ) -> None:
        self._url = server_url
        self._settings = settings
        self._store = store
        self._step = step
        self._server = server
        self._limits = limits
        self._clock = clock
        self._rules = UrlRules.of(server_url, limits)
        self._key = ProofKey() if settings.dpop else None
        self._asker = Asker(
            guarded_client(engine, seconds=limits.request_seconds_max),
            guard=guard,
            rules=self._rules,
            key=self._key,
            clock=clock,
        )
        self._holder = secrets.token_urlsafe(12)
        self._stored = Stored()
        self._nonce = ""
        self._nonces = 0
        self._step_ups = 0
        self._on_change = on_change
        self._run: _Run | None = None

    # ----------------------------------------------------------------------------- attaching

    @property
    def generation(self) -> tuple[int, int]:
        """Which credentials a request sent now would carry."""
        return (self._stored.generation, self._nonces)

    def __call__(self) -> Sequence[tuple[str, str]]:
        """Return the headers of a request that is not known: see `of`."""
        return self.headers_for("POST", self._url)

    def of(self, method: str, url: str) -> LateHeaders:
        """Return what makes the headers of one request."""
        return _Bound(self, method, url)

    def headers_for(self, method: str, url: str) -> Sequence[tuple[str, str]]:
        """Return the headers of a request that is sent in this step."""
        token = self._stored.token
        if token is None:
            return ()
        authorization = ("Authorization", f"{token.scheme} {token.access_token}")
        if self._key is None:
            return (authorization,)
        proof = self._key.proof(
            method,
            url,
            now=int(self._clock()),
            jti=secrets.token_urlsafe(24),
            access_token=token.access_token,
            nonce=self._nonce,
        )
        return (authorization, ("DPoP", proof))

    # ------------------------------------------------------------------------------ renewing

    async def load(self) -> None:
        """Take what the store has."""
        stored = await self._in_thread(partial(self._store.read, self._url))
        if self._key is not None:
            # a token is bound to the key of the process that asked for it
            stored = replace(stored, issuer="")
        self._use(stored)

    async def renewed(self, error: AuthorizationRequiredError, seen: object) -> None:
        """Get credentials with which a request may be sent again that was turned away with `error`.

        `seen` is the generation that it was sent with: if that has moved, nothing is to be done.
        Raises `error` if credentials are not what is missing, NeedsAuthorizationError, or
        AuthorizationFailedError.
        """
        while seen == self.generation:
            if self._run is None:
                await self._lead(partial(self._renew, error))
                return
            run = self._run
            await run.over.wait()
            if run.error is not None:
                raise run.error

    async def log_in(self, error: AuthorizationRequiredError) -> None:
        """Get a new grant, whatever there is: for a person, ask them anew.

        `error` is what the server says to a request without credentials. Raises as `renewed`.
        """
        while self._run is not None:
            await self._run.over.wait()
        await self._lead(partial(self._granted_anew, error))

    async def log_out(self) -> None:
        """Forget the tokens, here in this step and then in the store, whoever else writes there."""
        self._use(replace(self._stored.without_tokens(), generation=-1))
        while True:
            stored = await self._in_thread(partial(self._store.read, self._url))
            if await self._swap(stored.generation, stored.without_tokens()):
                return

    def _use(self, stored: Stored) -> None:
        """Use from now on what is kept so. Whoever depends on the grant is told first."""
        before, after = self._stored.grant, stored.grant
        if before != after and self._on_change is not None:
            self._on_change(before, after)
        self._stored = stored

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> None:
        run = self._run = _Run()
        try:
            await work()
        except McpError as failure:
            failure.server = failure.server or self._server
            run.error = failure
            raise
        finally:
            self._run = None
            run.over.set()

    async def _renew(self, error: AuthorizationRequiredError) -> None:
        asked = {each.parameters.get("error", "") for each in error.challenges}
        if "use_dpop_nonce" in asked and error.nonce and self._key is not None:
            self._nonce = error.nonce
            self._nonces += 1
            return
        widens = error.status == 403
        if widens and "insufficient_scope" not in asked:
            raise error
        if widens and self._step_ups >= self._limits.step_ups_max:
            raise AuthorizationFailedError(AuthFault.SCOPE)
        can_refresh = not widens and any(
            each.token is not None and each.token.refresh_token
            for each in self._stored.kept.values()
        )
        self._step_ups += widens
        try:
            if self._settings.profile is Profile.CODE and self._step is None and not can_refresh:
                raise NeedsAuthorizationError(server=self._server)
            await self._alone(partial(self._authorize, error, widens=widens))
        except NeedsAuthorizationError:
            if not widens:  # it is good for nothing any more; one that is too narrow still is
                self._use(self._stored.without_tokens())
            raise

    async def _granted_anew(self, error: AuthorizationRequiredError) -> None:
        if self._settings.profile is Profile.CODE and self._step is None:
            raise NeedsAuthorizationError(server=self._server)
        await self._alone(partial(self._authorize, error, widens=False, anew=True))

    async def _alone(self, work: Callable[[int], Awaitable[None]]) -> None:
        """Do it as the only one, with the generation that it is about; or take what another got."""
        generation = self._stored.generation
        if await self._leased(generation):
            try:
                await work(generation)
            finally:
                with anyio.CancelScope(shield=True):
                    release = partial(self._store.release, self._url, self._holder)
                    await self._in_thread(release)

    async def _leased(self, generation: int) -> bool:
        """Become the only one who renews; False if another was faster and we have what it got.

        A lease ends by itself: who asks a person for longer may be overtaken, and the store then
        takes the token of whoever comes first.
        """
        while True:
            now = self._clock()
            lease = partial(self._store.lease, now=now, until=now + self._limits.lease_seconds)
            if await self._in_thread(partial(lease, self._url, generation, self._holder)):
                return True
            stored = await self._in_thread(partial(self._store.read, self._url))
            if stored.generation != generation:
                self._use(stored)
                return False
            await anyio.sleep(self._limits.poll_seconds)

    async def _authorize(
        self,
        error: AuthorizationRequiredError,
        generation: int,
        *,
        widens: bool,
        anew: bool = False,
    ) -> None:
        flow = await self._discovered(self._challenged(error, widens=widens))
        kept = self._stored.of(flow.issuer)
        token = None if widens or anew else await self._refreshed(flow, kept)
        if token is not None:
            await self._take(flow.renewed(), kept.client, token, generation)
            return
        flow = await self._identified(flow, kept.client)
        flow = await self._agreed(flow)
        token = self._noted(await self._granted(flow), kept, widens=widens)
        client = None if self._settings.client.client_id else flow.known_client
        await self._take(flow.granted(), client, token, generation)

    # --------------------------------------------------------------------------------- steps

    def _challenged(self, error: AuthorizationRequiredError, *, widens: bool) -> Flow:
        scope = named = ""
        for challenge in error.challenges:
            if challenge.scheme in ("bearer", "dpop"):
                scope = scope or challenge.parameters.get("scope", "")
                named = named or challenge.parameters.get("resource_metadata", "")
        scope = scope or " ".join(self._settings.scopes)
        token = self._stored.token
        earlier = token.scopes if widens and token is not None else ()
        flow = Flow(
            server_url=self._url,
            profile=self._settings.profile,
            expected_issuer=self._expected_issuer,
            pkce_optional=self._settings.pkce_optional,
        )
        return flow.challenged(scope=scope, named_place=named, earlier=earlier)

    @property
    def _expected_issuer(self) -> str:
        """The only issuer that may be asked: what was registered by hand goes to no second one."""
        client = self._settings.client
        if client.issuer or not client.client_id:
            return client.issuer
        return next(iter(self._stored.kept), "")

    async def _discovered(self, flow: Flow) -> Flow:
        found = await self._asker.find(flow.places)
        if found is None:
            flow = flow.resource_missing()
        else:
            flow = flow.resource_read(read_resource(found, self._url, self._rules))
        found = await self._asker.find(flow.places)
        if found is None:
            return flow.server_missing()
        return flow.server_read(read_server(found, flow.issuer, self._rules))

    async def _refreshed(self, flow: Flow, kept: Kept) -> Token | None:
        """Return the token of a refresh; None if there is nothing to refresh, or not any more."""
        before = kept.token
        endpoint = flow.known_server.token_endpoint
        if before is None or not before.refresh_token or not endpoint:
            return None
        client = choose_client(self._settings.client, kept.client, flow.known_server, _NOWHERE)
        if isinstance(client, RegistrationRequest):
            return None
        request = refresh_request(
            endpoint,
            client,
            refresh_token=before.refresh_token,
            resource=flow.resource_id,
            facts=self._facts(flow),
        )
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

    def _noted(self, token: Token, kept: Kept, *, widens: bool) -> Token:
        """Note which login a token goes back to: the one of before, or one of its own."""
        if self._settings.profile is not Profile.CODE:
            return replace(token, login=self._settings.profile.value)
        goes_back = widens and kept.token is not None and kept.token.login
        return replace(token, login=goes_back or secrets.token_urlsafe(12))

    async def _identified(self, flow: Flow, known: ClientIdentity | None) -> Flow:
        redirect = _NOWHERE if self._step is None else self._step.redirect_uri
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
        if self._step is None:
            raise NeedsAuthorizationError(server=self._server)
        consent = Consent(
            redirect_uri=self._step.redirect_uri,
            state=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        flow = flow.asking(consent)
        url = self._rules.check(authorization_url(flow, consent))
        with anyio.move_on_after(self._limits.consent_seconds_max) as scope:
            came = await self._step.visit(url)
            return flow.consented(read_redirect(came, consent, self._limits))
        assert scope.cancelled_caught
        raise AuthorizationFailedError(AuthFault.DENIED, "nobody came back in time")

    async def _granted(self, flow: Flow) -> Token:
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
        return await self._ask(request, flow.scopes)

    async def _ask(self, request: TokenRequest, scopes: tuple[str, ...]) -> Token:
        return read_token(
            await self._asker.token(request),
            now=self._clock(),
            asked=scopes,
            bound=self._key is not None,
            limits=self._limits,
        )

    async def _take(
        self, flow: Flow, client: ClientIdentity | None, token: Token, generation: int
    ) -> None:
        """Use a token from now on, unless the credentials have moved since it was asked for."""
        new = self._stored.with_kept(flow.issuer, Kept(client=client, token=token))
        if self._stored.generation == generation and await self._swap(generation, new):
            return
        await self.load()
        if self._stored.token is None:
            raise NeedsAuthorizationError(server=self._server)

    async def _swap(self, generation: int, new: Stored) -> bool:
        if not await self._in_thread(partial(self._store.swap, self._url, generation, new)):
            return False
        self._use(replace(new, generation=generation + 1))
        return True

    def _facts(self, flow: Flow) -> AssertionFacts:
        return AssertionFacts(
            audience=flow.issuer,
            now=int(self._clock()),
            id=secrets.token_urlsafe(24),
            seconds=self._limits.assertion_seconds,
        )

    async def _in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await anyio.to_thread.run_sync(work)
