"""One server's credentials: attached to each request, renewed by one task at a time; no calls retried."""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from mcp_client.auth.asking import Asker
from mcp_client.auth.attaching import BoundHeaders, PresentGuard
from mcp_client.auth.attempt import Attempts
from mcp_client.auth.discovery import UrlRules
from mcp_client.auth.dpop import ProofKey
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.flow import Flow, Profile
from mcp_client.auth.grants import Grant
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.auth.runs import SharedRun
from mcp_client.auth.settings import AuthorizationStep, AuthSettings
from mcp_client.auth.store import Kept, Stored, TellingStore, TokenStore
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.httpx_transport import guarded_client
from mcp_client.net.http.messages import LateHeaders, Target
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.http.errors import AuthorizationRequiredError

__all__ = ["Authorizer", "wall_clock"]

ResultT = TypeVar("ResultT")

_LIMITS: Final = AuthLimits()


def wall_clock() -> float:
    """Return the time in seconds since 1970, as tokens and assertions count it."""
    return datetime.now(tz=UTC).timestamp()


class Authorizer:
    """Holds the credentials of one server for one connection, and gets new ones when it must.

    It is the `LateHeaders` of the server's requests: each carries the token of the step in which it
    is sent. Renewals are one at a time, here and, through the store's lease, in all processes that
    share it; no lock is held while anything is sent. A token that comes after a logout, or after
    another's renewal, is thrown away. Credentials are got within `running` only.

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
        self._origin: Final = Target.parse(server_url).origin
        self._settings = settings
        self._store = store
        self._server = server
        self._limits = limits
        self._clock = clock
        self._key = ProofKey() if settings.dpop else None
        rules = UrlRules.of(server_url, limits)
        asker = Asker(
            guarded_client(engine, seconds=limits.request_seconds_max),
            guard=PresentGuard(self.require_present, guard),
            rules=rules,
            key=self._key,
            clock=clock,
        )
        self._attempts = Attempts(
            server_url,
            asker=asker,
            rules=rules,
            settings=settings,
            step=step,
            server=server,
            clock=clock,
        )
        self._holder = secrets.token_urlsafe(12)
        self._stored = Stored()
        self._nonce = ""
        self._nonces = 0
        self._step_ups = 0
        self._on_change = on_change
        self._runs = SharedRun(closing_seconds=limits.closing_seconds)
        self._telling = store if isinstance(store, TellingStore) else None
        self._version: object = None
        self._storing = anyio.Lock()
        self._logouts = 0
        self._logouts_of_run = 0
        self._due_at = math.inf
        self._obtained_at = -math.inf
        self._refusals = 0

    # ----------------------------------------------------------------------------- attaching

    @property
    def step(self) -> AuthorizationStep | None:
        """Who asks a person; None if nobody is here."""
        return self._attempts.step

    @step.setter
    def step(self, step: AuthorizationStep | None) -> None:
        self._attempts.step = step

    @property
    def generation(self) -> tuple[int, int]:
        """Which credentials a request sent now would carry."""
        return (self._stored.generation, self._nonces)

    def __call__(self) -> Sequence[tuple[str, str]]:
        """Return the headers of a request that is not known: see `of`."""
        return self.headers_for("POST", self._url)

    def of(self, method: str, url: str) -> LateHeaders:
        """Return what makes the headers of one request.

        Raises AuthorizationFailedError for a request to another origin: no credential leaves this
        one, whatever else should have seen to that.
        """
        if Target.parse(url).origin != self._origin:
            raise AuthorizationFailedError(AuthFault.URL, "a request would leave the origin")
        return BoundHeaders(self.headers_for, method, url)

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

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Own the task that gets credentials: a call that is given up takes no other's with it.

        A renewal that is under way at the end is given `closing_seconds`, since a pair that was
        replaced is good for nothing; everything else is given up.
        """
        async with self._runs.open():
            yield

    async def load(self) -> None:
        """Take what the store has."""
        await self._look(self._logouts)

    @property
    def is_due(self) -> bool:
        """Whether the token is about to end and can be renewed alone, or the store has another."""
        return self._clock() >= self._due_at or self._has_moved()

    async def ready(self) -> None:
        """Take what another program put into the store, a logout too, and renew what is about to end.

        Waits only if it has ended; never asks a person or fails. What stands in the way is found
        out by whoever sends a request then.
        """
        if self._has_moved():
            with suppress(AuthorizationFailedError):
                await self._look(self._logouts)
        if self._clock() < self._due_at:
            return
        token = self._stored.token
        if not self._runs.is_busy:
            self._runs.start(self._renew_ahead)
        if token is not None and token.expires_at <= self._clock():
            try:
                await self._runs.join()
            except McpError:
                return

    async def renewed(self, error: AuthorizationRequiredError, seen: object) -> None:
        """Get credentials with which a request may be sent again that was turned away with `error`.

        `seen` is the generation that it was sent with: if that has moved, nothing is to be done.
        Raises `error` if credentials are not what is missing, NeedsAuthorizationError, or
        AuthorizationFailedError.
        """
        asked = {each.parameters.get("error", "") for each in error.challenges}
        if "use_dpop_nonce" in asked and error.nonce and self._key is not None:
            if seen == self.generation:
                self._nonce = error.nonce
                self._nonces += 1
            return
        if error.status == 403 and "insufficient_scope" not in asked:
            raise error
        while seen == self.generation:
            if not self._runs.is_busy:
                await self._runs.do(partial(self._renew, error, widens=error.status == 403))
                return
            await self._runs.join()

    async def log_in(self, error: AuthorizationRequiredError) -> None:
        """Get a new grant, whatever there is: for a person, ask them anew.

        `error` is what the server says to a request without credentials. Raises as `renewed`.
        """
        while self._runs.is_busy:
            try:
                await self._runs.join()
            except McpError:
                continue  # it was another's
        await self._runs.do(partial(self._grant_anew, error))

    async def log_out(self) -> None:
        """Forget the tokens, here in this step and then in the store, whoever else writes there.

        No request leaves any more with what was good before, that of a renewal under way included.
        """
        self._logouts += 1
        self._use(replace(self._stored.without_tokens(), generation=-1))
        async with self._storing:
            while True:
                stored = await self._in_thread(partial(self._store.read, self._url))
                new = stored.without_tokens()
                swap = partial(self._store.swap, self._url, stored.generation, new)
                if await self._in_thread(swap):
                    self._use(replace(new, generation=stored.generation + 1))
                    return

    def require_present(self) -> None:
        """Raise NeedsAuthorizationError if somebody has logged out since the run began."""
        if self._logouts != self._logouts_of_run:
            raise NeedsAuthorizationError(server=self._server)

    # ----------------------------------------------------------------------------------- runs

    async def _renew(self, error: AuthorizationRequiredError, *, widens: bool) -> None:
        with self._begun():
            if not widens or self.step is not None:
                self._count(widens=widens)
            if not widens and await self._overtaken(self._stored.generation):
                return
            can_refresh = not widens and any(
                each.token is not None and each.token.refresh_token
                for each in self._stored.kept.values()
            )
            try:
                if self._needs_person and self.step is None and not can_refresh:
                    raise NeedsAuthorizationError(server=self._server)
                await self._alone(partial(self._authorize, error=error, widens=widens))
            except NeedsAuthorizationError:
                # it is good for nothing any more; one that is too narrow still is
                if not widens and self._logouts == self._logouts_of_run:
                    self._use(self._stored.without_tokens())
                raise

    async def _renew_ahead(self) -> None:
        with self._begun():
            try:
                await self._alone(partial(self._authorize, error=None, widens=False))
            except NeedsAuthorizationError:
                self._due_at = math.inf
            except McpError:
                self._due_at = self._clock() + self._limits.ahead_pause_seconds

    async def _grant_anew(self, error: AuthorizationRequiredError) -> None:
        with self._begun():
            if self._needs_person and self.step is None:
                raise NeedsAuthorizationError(server=self._server)
            await self._alone(partial(self._authorize, error=error, widens=False, anew=True))

    @contextmanager
    def _begun(self) -> Generator[None]:
        """Begin a run: what it sends and gets is good until somebody logs out."""
        self._logouts_of_run = self._logouts
        try:
            yield
        except McpError as failure:
            failure.server = failure.server or self._server
            raise

    @property
    def _needs_person(self) -> bool:
        return self._settings.profile is Profile.CODE

    def _count(self, *, widens: bool) -> None:
        """Count what is asked for because of refusals: a server that always refuses ends it."""
        if widens:
            if self._step_ups >= self._limits.step_ups_max:
                raise AuthorizationFailedError(AuthFault.SCOPE)
            self._step_ups += 1
            return
        age = self._clock() - self._obtained_at
        self._refusals = self._refusals + 1 if age < self._limits.early_seconds else 0
        if self._refusals > self._limits.renewals_max:
            raise AuthorizationFailedError(AuthFault.REFUSED)

    async def _alone(self, work: Callable[[int], Awaitable[bool]]) -> None:
        """Do it as the only one, with the generation that it is about; or take what another got.

        `work` returns False if another has taken its place meanwhile.
        """
        generation = self._stored.generation
        is_done = False
        while not is_done and await self._leased(generation):
            try:
                is_done = await work(generation)
            finally:
                with anyio.CancelScope(shield=True):
                    release = partial(self._store.release, self._url, self._holder)
                    await self._in_thread(release)

    async def _leased(self, generation: int) -> bool:
        """Become the only one who renews; False if another was faster and we have what it got.

        A lease ends by itself: who asks a person for longer may be overtaken, and the store then
        takes the token of whoever comes first.
        """
        while not await self._lease(generation):
            if (await self._look(self._logouts_of_run)).generation != generation:
                return False
            await anyio.sleep(self._limits.poll_seconds)
        return True

    async def _lease(self, generation: int) -> bool:
        """Take the lease, or take it for longer."""
        now = self._clock()
        until = now + self._limits.lease_seconds
        lease = partial(self._store.lease, self._url, generation, self._holder)
        return await self._in_thread(partial(lease, now=now, until=until))

    async def _authorize(
        self,
        generation: int,
        *,
        error: AuthorizationRequiredError | None,
        widens: bool,
        anew: bool = False,
    ) -> bool:
        token = self._stored.token
        earlier = token.scopes if widens and token is not None else ()
        first = next(iter(self._stored.kept), "")
        flow = self._attempts.challenged(error, first_issuer=first, earlier=earlier)
        flow = await self._attempts.discovered(flow)
        kept = self._stored.of(flow.issuer)
        request = None if widens or anew else self._attempts.renewal(flow, kept)
        if request is not None and kept.token is not None:
            # a pair that is replaced and not kept is lost, and used again it ends the login
            with self._runs.whole():
                if not await self._lease(generation):
                    return False
                renewed = await self._attempts.renewed(request, kept.token)
                if renewed is not None:
                    await self._take(flow.renewed(), kept.client, renewed, generation)
                    return True
            if await self._overtaken(generation):
                return True
        if error is None and self._needs_person:
            raise NeedsAuthorizationError(server=self._server)
        flow, granted = await self._attempts.granted(flow, kept.client)
        client = None if self._settings.client.client_id else flow.known_client
        noted = self._noted(granted, kept, widens=widens)
        await self._take(flow.granted(), client, noted, generation)
        return True

    def _noted(self, token: Token, kept: Kept, *, widens: bool) -> Token:
        """Note which login a token goes back to: the one of before, or one of its own."""
        if self._settings.profile is not Profile.CODE:
            return replace(token, login=self._settings.profile.value)
        goes_back = widens and kept.token is not None and kept.token.login
        return replace(token, login=goes_back or secrets.token_urlsafe(12))

    # ---------------------------------------------------------------------------------- store

    async def _take(
        self, flow: Flow, client: ClientIdentity | None, token: Token, generation: int
    ) -> None:
        """Use a token from now on, unless the credentials have moved since it was asked for."""
        self.require_present()
        new = self._stored.with_kept(flow.issuer, Kept(client=client, token=token))
        async with self._storing:
            is_ours = await self._in_thread(partial(self._store.swap, self._url, generation, new))
            self.require_present()
            if is_ours:
                self._obtained_at = self._clock()
                self._use(replace(new, generation=generation + 1))
                return
        # another's is in the store, and stays there
        if (await self._look(self._logouts_of_run)).token is None:
            raise NeedsAuthorizationError(server=self._server)

    async def _overtaken(self, generation: int) -> bool:
        """Whether another has put a token into the store since; then it is ours too."""
        stored = await self._look(self._logouts_of_run)
        return stored.generation != generation and stored.token is not None

    async def _look(self, logouts: int) -> Stored:
        """Use what the store has, unless somebody has logged out since; return what is in use."""
        async with self._storing:
            version, stored = await self._in_thread(self._read)
            if self._key is not None and stored.generation != self._stored.generation:
                # a token is bound to the key of the process that asked for it
                stored = replace(stored, issuer="")
            if logouts == self._logouts:
                self._version = version
                if stored.generation != self._stored.generation:
                    self._use(stored)
            return self._stored

    def _read(self) -> tuple[object, Stored]:
        # the version first: what is written in between is looked at once more
        version = self._telling.version(self._url) if self._telling is not None else None
        return version, self._store.read(self._url)

    def _has_moved(self) -> bool:
        return self._telling is not None and self._telling.version(self._url) != self._version

    def _use(self, stored: Stored) -> None:
        """Use from now on what is kept so. Whoever depends on the grant is told first."""
        before, after = self._stored.grant, stored.grant
        if before != after and self._on_change is not None:
            self._on_change(before, after)
        self._stored = stored
        self._due_at = math.inf
        token = stored.token
        if (
            token is not None
            and token.expires_at
            and (token.refresh_token or not self._needs_person)
        ):
            left = max(0.0, token.expires_at - self._clock())
            ahead = min(self._limits.early_seconds, left * self._limits.early_share)
            self._due_at = token.expires_at - ahead

    async def _in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await anyio.to_thread.run_sync(work)
