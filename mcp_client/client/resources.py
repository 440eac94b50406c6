"""Resources: list them and their templates, read, subscribe; no URI is ever fetched from here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio

from mcp_client.client.changes import Changes
from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.items import Quarantined
from mcp_client.protocol.resources import (
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
        self, uri: str, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> ResourceRead:
        """Have the server read a resource, and return its contents, checked part by part.

        Raises ResourceNotFoundError if the server says that there is none. The URI is the
        server's own: nobody but the server resolves it, whatever its scheme.
        """
        self._check(uri)
        result = await self._ask("resources/read", {"uri": uri}, guard=guard, seconds=seconds)
        return read_resource_result(result, self.session.limits, server=self.server)

    @property
    def subscriptions(self) -> frozenset[str]:
        """The URIs that are subscribed to: to be made again when `epoch` is another."""
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
            await self._ask("resources/subscribe", {"uri": uri}, guard=guard, seconds=seconds)
        except BaseException:
            subscribed.discard(uri)
            raise

    async def unsubscribe(
        self, uri: str, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> None:
        """Have the server tell no more. Updates are ignored from now on, whatever it answers."""
        self._check(uri)
        self.session.bulletin.subscribed.discard(uri)
        await self._ask("resources/unsubscribe", {"uri": uri}, guard=guard, seconds=seconds)

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
