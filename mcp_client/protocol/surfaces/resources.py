"""Resources and templates as a server lists them, and what a read returns; it fetches nothing."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.content import fault_of_contents
from mcp_client.protocol.surfaces.items import (
    Item,
    Quarantined,
    fault_of_id,
    fault_of_texts,
    item_fields,
)
from mcp_client.protocol.texts import short_text, text_of

__all__ = [
    "Resource",
    "ResourceContents",
    "ResourceRead",
    "ResourceTemplate",
    "read_resource",
    "read_resource_result",
    "read_template",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Item):
    """One resource of one server.

    Attributes:
        uri: what it is known by, as the server wrote it.
        name: for people, cut at `name_chars_max`.
        mime_type: empty if the server does not say.
        size: in bytes, before any encoding; None if the server does not say.
    """

    uri: str
    name: str
    mime_type: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate(Item):
    """A family of resources of one server; see `mcp_client.protocol.surfaces.templates`.

    Attributes:
        template: an RFC 6570 template of their URIs: what it is known by.
        name: for people, cut at `name_chars_max`.
        mime_type: of all of them; empty if the server does not say.
    """

    template: str
    name: str
    mime_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContents:
    """One of the contents that a read returned: a text or a blob, never both. Untrusted.

    Attributes:
        uri: what the server calls this part; it need not be the URI that was read.
        mime_type: empty if the server does not say.
        text: the text; None for a blob.
        blob: the blob in base64, checked; None for a text.
        meta: `_meta`, as decoded.
    """

    uri: str
    mime_type: str = ""
    text: str | None = None
    blob: str | None = field(default=None, repr=False)
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)

    @property
    def data(self) -> bytes:
        """The blob decoded, or the text in UTF-8."""
        if self.blob is not None:
            return binascii.a2b_base64(self.blob)
        return (self.text or "").encode()


@dataclass(frozen=True, slots=True)
class ResourceRead:
    """What a read returned, and those of its parts that cannot be used."""

    contents: tuple[ResourceContents, ...]
    quarantined: tuple[Quarantined, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


def read_resource(definition: object, limits: ClientLimits) -> Resource | Quarantined:
    """Read one element of `resources`, as decoded. Never raises for what a server sent."""
    found = _identified(definition, "uri", limits)
    if isinstance(found, Quarantined):
        return found
    members, whole = found
    size = members.get("size")
    return Resource(
        uri=text_of(members, "uri"),
        name=short_text(members, "name", limits.name_chars_max),
        mime_type=short_text(members, "mimeType", limits.name_chars_max),
        size=size if type(size) is int and size >= 0 else None,
        **item_fields(members, limits, whole),
    )


def read_template(definition: object, limits: ClientLimits) -> ResourceTemplate | Quarantined:
    """Read one element of `resourceTemplates`, as decoded. Never raises for what a server sent."""
    found = _identified(definition, "uriTemplate", limits)
    if isinstance(found, Quarantined):
        return found
    members, whole = found
    return ResourceTemplate(
        template=text_of(members, "uriTemplate"),
        name=short_text(members, "name", limits.name_chars_max),
        mime_type=short_text(members, "mimeType", limits.name_chars_max),
        **item_fields(members, limits, whole),
    )


def read_resource_result(result: object, limits: ClientLimits, *, server: str = "") -> ResourceRead:
    """Check the result of `resources/read`. Raises RemoteProtocolError if it is none."""
    members = as_object(result)
    contents = None if members is None else members.get("contents")
    if members is None or not isinstance(contents, list):
        raise _broken("the contents of a resource are an array", server)
    parts = cast("list[object]", contents)
    if len(parts) > limits.content_blocks_max:
        raise _broken(f"a resource has more than {limits.content_blocks_max} contents", server)
    read = [_read_contents(part, limits) for part in parts]
    return ResourceRead(
        tuple([part for part in read if isinstance(part, ResourceContents)]),
        tuple([part for part in read if isinstance(part, Quarantined)]),
        as_object(members.get("_meta")) or {},
    )


def _read_contents(part: object, limits: ClientLimits) -> ResourceContents | Quarantined:
    members = as_object(part)
    if members is None:
        return Quarantined("", "the contents of a resource are an object")
    uri = members.get("uri")
    reason = fault_of_contents(members) or fault_of_id("uri", uri, limits.uri_chars_max)
    if reason or not isinstance(uri, str):
        return Quarantined("", reason)
    text, blob = members.get("text"), members.get("blob")
    if isinstance(text, str) and blob is not None:
        return Quarantined(uri, "it has both a text and a blob")
    return ResourceContents(
        uri=uri,
        mime_type=short_text(members, "mimeType", limits.name_chars_max),
        text=text if isinstance(text, str) else None,
        blob=blob if isinstance(blob, str) else None,
        meta=as_object(members.get("_meta")) or {},
    )


def _identified(
    definition: object, identity: str, limits: ClientLimits
) -> tuple[Mapping[str, object], bytes] | Quarantined:
    """Return the members of something that is known by a URI, and its canonical form."""
    members = as_object(definition)
    if members is None:
        return Quarantined("", "the definition is not an object")
    uri = members.get(identity)
    reason = fault_of_id("uri", uri, limits.uri_chars_max)
    if reason or not isinstance(uri, str):
        return Quarantined("", reason)
    if not isinstance(members.get("name"), str):
        return Quarantined(uri, "it has no name")
    reason = fault_of_texts(members, "mimeType")
    if reason:
        return Quarantined(uri, reason)
    whole = canonical(members)
    if len(whole) > limits.definition_bytes_max:
        bound = limits.definition_bytes_max
        return Quarantined(uri, f"its definition has more than {bound} bytes")
    return members, whole


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
