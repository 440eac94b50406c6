"""What a connected server offers beside tools: asked for, translated, and made into offers.

Reads no resource and gets no prompt; expands a template only to have one URI to decide on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from mcp_client.client import Client
from mcp_client.client.prompts import PromptListing
from mcp_client.client.resources import ResourceListing, TemplateListing
from mcp_client.protocol.errors import McpError, PeerError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.templates import (
    expand_template,
    match_template,
    template_variables,
)
from orchestrator.authority.admission import Offer
from orchestrator.authority.ledger import Cell
from orchestrator.catalog.data import CatalogPrompt, CatalogResource, ServerData
from orchestrator.core.calls import CallMethod
from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import ServerName

__all__ = ["data_offers", "list_data"]

_LIMITS: Final = ClientLimits()
_SAMPLE: Final = "x"
"""What stands for each variable of a template where one URI is needed to decide on."""
_WIDE_CHARS_MAX: Final = 1_000
"""Of a URI in other letters than RFC 3986 has: a record writes each in up to twelve bytes."""


async def list_data(server: ServerName, client: Client) -> ServerData:
    """Ask a server for its resources, templates and prompts; what it has not declared is empty.

    So is a list that it answers with an error: its tools are not lost by that. What no record has
    room for is left out. Raises McpError for
    a list that has no end or is none, and where the connection ends.
    """
    resources, templates, prompts = (
        ResourceListing((), ()),
        TemplateListing((), ()),
        PromptListing((), ()),
    )
    with suppress(PeerError):
        resources = await client.list_resources()
    with suppress(PeerError):
        templates = await client.list_templates()
    with suppress(PeerError):
        prompts = await client.list_prompts()
    return ServerData(
        resources=(
            *(
                CatalogResource(
                    server=server,
                    uri=item.uri,
                    name=item.title or item.name,
                    digest=item.digest,
                    description=item.description,
                    mime_type=item.mime_type,
                )
                for item in resources.resources
                if _has_room(item.uri)
            ),
            *(
                CatalogResource(
                    server=server,
                    uri=item.template,
                    name=item.title or item.name,
                    digest=item.digest,
                    description=item.description,
                    mime_type=item.mime_type,
                    is_template=True,
                )
                for item in templates.templates
                if _has_room(item.template) and _sample(item.template)
            ),
        ),
        prompts=tuple(
            CatalogPrompt(
                server=server,
                name=item.name,
                digest=item.digest,
                description=item.description or item.title,
                arguments={each.name: each.required for each in item.arguments},
            )
            for item in prompts.prompts
        ),
        completions=client.capabilities.completions,
    )


def data_offers(
    data: ServerData,
    cells: Mapping[CapabilityRef, Cell],
    *,
    link: Cell,
    login: Cell | None,
) -> Iterator[Offer]:
    """Go through what may be granted of it, each once for each thing that may be asked of it."""
    for resource in data.resources:
        yield from _resource_offers(resource, data, cells[resource.ref], link, login)
    for prompt in data.prompts:
        methods = [CallMethod.PROMPT]
        if data.completions and prompt.arguments:
            methods.append(CallMethod.COMPLETE)
        for method in methods:
            yield Offer(
                ref=prompt.ref,
                target=cells[prompt.ref],
                link=link,
                login=login,
                spec=prompt.spec,
                method=method,
            )


def _resource_offers(
    resource: CatalogResource, data: ServerData, target: Cell, link: Cell, login: Cell | None
) -> Iterator[Offer]:
    template = resource.is_template
    methods = [CallMethod.READ]
    if template and data.completions:
        methods.append(CallMethod.COMPLETE)
    for method in methods:
        yield Offer(
            ref=resource.ref,
            target=target,
            link=link,
            login=login,
            spec=resource.spec,
            method=method,
            means=_meaning(resource.uri) if template else None,
            sample=_sample(resource.uri) if template else "",
        )


def _has_room(uri: str) -> bool:
    return uri.isascii() or len(uri) <= _WIDE_CHARS_MAX


def _meaning(template: str) -> Callable[[str], bool]:
    def means(uri: str) -> bool:
        try:
            return match_template(template, uri, _LIMITS) is not None
        except McpError:
            return False

    return means


def _sample(template: str) -> str:
    """Return a URI that a template means; empty for one that cannot be expanded, which is left out."""
    try:
        names = template_variables(template, _LIMITS)
        return expand_template(template, dict.fromkeys(names, _SAMPLE), _LIMITS)
    except McpError:
        return ""
