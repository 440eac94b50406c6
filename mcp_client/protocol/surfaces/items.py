"""What the listings of all kinds have in common: identity, hints, digest. It fetches nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict, cast

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.texts import short_text

__all__ = ["Item", "ItemFields", "Quarantined", "fault_of_id", "fault_of_texts", "item_fields"]

_NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A thing of a server that cannot be used, and why.

    `name` is the server's own word for it (for a resource its URI), and empty where it has none
    that can be shown. The reason is our own text; nothing that the server wrote is in it.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a server lists. All of it is the server's word: untrusted, and bounded.

    Attributes:
        title: for people; empty if there is none.
        description: cut at `description_chars_max`, and then it ends in `CUT_MARK`.
        annotations: hints. They never decide anything.
        meta: `_meta`, as decoded.
        icons: as decoded. They are carried, and never fetched.
        definition: the whole definition as the server sent it, in canonical form.
        digest: SHA-256 of `definition`, in hexadecimal: what an approval is pinned to.
    """

    title: str = ""
    description: str = ""
    annotations: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)
    icons: tuple[Mapping[str, object], ...] = field(default=(), hash=False, repr=False)
    definition: bytes = field(repr=False)
    digest: str


class ItemFields(TypedDict):
    """The fields of an `Item`, for the class that adds its own."""

    title: str
    description: str
    annotations: Mapping[str, object]
    meta: Mapping[str, object]
    icons: tuple[Mapping[str, object], ...]
    definition: bytes
    digest: str


def fault_of_id(what: str, value: object, chars_max: int) -> str:
    """Return what is wrong with a name or URI that something is known by; empty if nothing is."""
    if not isinstance(value, str) or not value:
        return f"it has no {what}"
    if len(value) > chars_max:
        return f"its {what} has more than {chars_max} characters"
    if not value.isprintable():
        return f"its {what} holds characters that cannot be shown"
    return ""


def fault_of_texts(members: Mapping[str, object], *names: str) -> str:
    """Return what is wrong with members that are texts, and with the annotations; or nothing."""
    # null is what some servers write where they mean nothing
    for name in ("title", "description", *names):
        text = members.get(name)
        if text is not None and not isinstance(text, str):
            return f"its {name} is not a text"
    annotations = members.get("annotations")
    if annotations is not None and as_object(annotations) is None:
        return "its annotations are not an object"
    return ""


def item_fields(members: Mapping[str, object], limits: ClientLimits, whole: bytes) -> ItemFields:
    """Read what all items have; `whole` is the canonical form of the definition."""
    return ItemFields(
        title=short_text(members, "title", limits.name_chars_max),
        description=short_text(members, "description", limits.description_chars_max),
        annotations=as_object(members.get("annotations")) or _NOTHING,
        meta=as_object(members.get("_meta")) or _NOTHING,
        icons=_icons(members.get("icons"), limits),
        definition=whole,
        digest=hashlib.sha256(whole).hexdigest(),
    )


def _icons(value: object, limits: ClientLimits) -> tuple[Mapping[str, object], ...]:
    """Keep those that have a source; whatever else is there is no icon and does no harm."""
    if not isinstance(value, list):
        return ()
    found: list[Mapping[str, object]] = []
    for each in cast("list[object]", value)[: limits.icons_max]:
        icon = as_object(each)
        if icon is not None and isinstance(icon.get("src"), str):
            found.append(icon)
    return tuple(found)
