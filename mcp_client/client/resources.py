"""Resources: list them and their templates, read, subscribe; no URI is ever fetched from here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import anyio

from mcp_client.client.changes import Changes
from mcp_client.client.listening import Listener
from mcp_client.client.rounds import Exchange
from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.resources import (
    Resource,
    ResourceRead,
    ResourceTemplate,
    read_resource,
    read_resource_result,
    read_template,
)
from mcp_client.session import ClientSession

__all__ = ["ResourceListing", "ResourceSurface", "TemplateListing"]


@dataclass(frozen=True, slots=True)
class ResourceListing:
    """The resources of one server, in its own order, and those that cannot be used."""

    resources: tuple[Resource, ...]
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True, slots=True)
class TemplateListing:
    """The templates of one server, in its own order, and those that cannot be used."""

    templates: tuple[ResourceTemplate, ...]
    quarantined: tuple[Quarantined, ...]


class ResourceSurface(Surface):
    """The part of `Client` that deals with resources."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__(session)
        self._resources_changed = Changes(session)
        self._updates = _Updates(session)
        self.listener = Listener(session)
        session.bulletin.on_resource_updated = self._updates.tell

    async def list_resources(self) -> ResourceListing:
        """Return all resources of the server, page by page. Empty if it has declared none.

        What is malformed is quarantined, and what has no end raises, as with `list_tools`.
        """
        session = self.session
        if not session.connection.capabilities.resources:
            return ResourceListing((), ())
        found = await self._list(
            "resources/list",
            "resources",
            read_resource,
            lambda resource: resource.uri,
            count_max=session.limits.resources_max,
        )
        return ResourceListing(found.items, found.quarantined)

    async def list_templates(self) -> TemplateListing:
        """Return all templates of resources, page by page. Empty if resources are not declared.

        What is malformed is quarantined, and what has no end raises, as with `list_tools`.
        """
        session = self.session
        if not session.connection.capabilities.resources:
            return TemplateListing((), ())
        found = await self._list(
            "resources/templates/list",
            "resourceTemplates",
            read_template,
            lambda template: template.template,
            count_max=session.limits.resources_max,
        )
        return TemplateListing(found.items, found.quarantined)

    async def read_resource(
        self,
        uri: str,
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        declares: ClientCapabilities | None = None,
    ) -> ResourceRead:
        """Have the server read a resource, and return its contents, checked part by part.

        Raises ResourceNotFoundError if the server says that there is none, InputRequiredError if
        it has questions and the leave is for one frame. The URI is the server's own: nobody but
        the server resolves it, whatever its scheme.
        """
        self._check(uri)
        result = await self._ask(
            "resources/read", {"uri": uri}, guard=guard, seconds=seconds, declares=declares
        )
        return read_resource_result(result, self.session.limits, server=self.server)

    async def continue_read(
        self,
        required: InputRequired,
        answers: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
    ) -> ResourceRead:
        """Go on with `read_resource` where the server had questions: see `ToolSurface.continue_call`."""
        how = Exchange(guard=guard, seconds=seconds)
        result = await self._continue("resources/read", required, answers, how)
        return read_resource_result(result, self.session.limits, server=self.server)

    @property
    def subscriptions(self) -> frozenset[str]:
        """The URIs that are subscribed to. A session that begins anew is asked for them again."""
        return frozenset(self.session.bulletin.subscribed)

    async def subscribe(
        self, uri: str, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> None:
        """Have the server tell when a resource, or a part of it, has changed.

        It is asked again for one that is subscribed to already: it may have forgotten.

        Raises LocalProtocolError if the server has not declared it, or past `subscriptions_max`.
        """
        self._check(uri)
        subscribed = self.session.bulletin.subscribed
        if uri not in subscribed and len(subscribed) >= self.session.limits.subscriptions_max:
            raise LocalProtocolError(
                f"there are {self.session.limits.subscriptions_max} subscriptions already",
                server=self.server,
                stage="send",
            )
        # an update may come right behind the answer
        subscribed.add(uri)
        try:
            await self._tell_subscribed("resources/subscribe", uri, guard, seconds)
        except BaseException:
            subscribed.discard(uri)
            raise

    async def unsubscribe(
        self, uri: str, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> None:
        """Have the server tell no more. Updates are ignored from now on, whatever it answers."""
        self._check(uri)
        self.session.bulletin.subscribed.discard(uri)
        await self._tell_subscribed("resources/unsubscribe", uri, guard, seconds)

    async def _tell_subscribed(
        self, method: str, uri: str, guard: SendGuard | None, seconds: float | None
    ) -> None:
        if not isinstance(self.session.connection, ModernConnection):
            await self._ask(method, {"uri": uri}, guard=guard, seconds=seconds)
            return
        # since 2026-07-28 one stream of notices says all that is wanted
        await self.listener.renew(guard=guard)
        wanted = uri in self.session.bulletin.subscribed
        if wanted and uri not in self.listener.granted.resources:
            raise self._broken("the server does not tell about this resource")

    def resource_updates(self) -> AsyncIterator[str]:
        """Return an iterator over subscribed URIs of which the server told that they changed.

        Updates of one that are told while its consumer is busy come as one. For one task; it ends
        with the connection.
        """
        return self._updates

    def resource_changes(self) -> AsyncIterator[None]:
        """Return an iterator that goes on each time that resources and templates are to be listed.

        See `tool_changes`.
        """
        return self._resources_changed

    def _check(self, uri: str) -> None:
        if not uri or len(uri) > self.session.limits.uri_chars_max:
            raise LocalProtocolError(
                f"a URI has 1 to {self.session.limits.uri_chars_max} characters",
                server=self.server,
                stage="send",
            )


class _Updates:
    """URIs whose resources have changed: at most one entry for each subscription."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._told = anyio.Event()
        self._uris: dict[str, None] = {}

    def tell(self, uri: str) -> None:
        self._uris[uri] = None
        self._told.set()

    def end(self) -> None:
        self._told.set()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if not self._uris and self._session.lost is None:
            self._told = anyio.Event()
            await self._told.wait()
        if self._session.lost is not None:
            raise StopAsyncIteration
        uri = next(iter(self._uris))
        del self._uris[uri]
        return uri
