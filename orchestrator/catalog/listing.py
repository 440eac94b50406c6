"""What servers say they offer, as our own frozen values. Believes none of it, knows no client.

One bad tool does not take the others with it: it is quarantined, with a reason in our own words.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from orchestrator.catalog.data import ServerData
from orchestrator.catalog.names import ToolKey
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.display import CUT
from orchestrator.core.documents import canonical_digest
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits

__all__ = [
    "Catalog",
    "CatalogTool",
    "Quarantined",
    "ServerListing",
    "definition_digest",
    "list_server",
]

_LIMITS: Final = OrchestratorLimits()
_written: Final = json.JSONEncoder(ensure_ascii=False).encode
"""As `json.dumps` does; that makes a writer for each text which is not ASCII alone."""
_DIALECTS: Final = frozenset(
    {"json-schema.org/draft/2020-12/schema", "json-schema.org/draft-07/schema"}
)
"""What MCP 2025-11-25 lets a schema declare, and what is meant where nothing is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTool:
    """One tool as a server defines it. All of its text is untrusted.

    `description` is bounded; `definition` is everything as the server sent it, and `digest` the
    SHA-256 over that: two tools are equal if their servers, names and digests are.
    """

    server: ServerName
    name: str
    digest: str
    description: str = field(compare=False)
    input_schema: Mapping[str, object] = field(compare=False, repr=False)
    annotations: Mapping[str, object] = field(compare=False, repr=False)
    definition: Mapping[str, object] = field(compare=False, repr=False)

    @property
    def key(self) -> ToolKey:
        """What its model-facing name stands for."""
        return ToolKey(self.server, self.name)

    @property
    def ref(self) -> CapabilityRef:
        """Its identity, for snapshots and the ledger."""
        return CapabilityRef(self.server, CapabilityKind.TOOL, self.name, self.digest)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that cannot be used. `name` is the server's own word, bounded; `reason` is ours."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """What one server listed, once, in its own order. `instructions` are untrusted and bounded.

    `instructions_digest` is over all of the instructions, what was cut included. `data` are
    resources, templates and prompts.
    """

    server: ServerName
    tools: tuple[CatalogTool, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    instructions: str = field(default="", compare=False)
    instructions_digest: str = hashlib.sha256(b"").hexdigest()
    data: ServerData = field(default_factory=ServerData, compare=False)

    def find(self, name: str) -> CatalogTool | None:
        """Return the tool of exactly that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


class Catalog:
    """The listings of all servers. Immutable: each change makes another catalog."""

    __slots__ = ("_by_server",)

    def __init__(self, listings: Iterable[ServerListing] = ()) -> None:
        self._by_server: Mapping[ServerName, ServerListing] = MappingProxyType(
            {listing.server: listing for listing in listings}
        )

    def with_listing(self, listing: ServerListing) -> Catalog:
        """Return a catalog in which this listing stands in place of the server's old one."""
        return Catalog([*self._by_server.values(), listing])

    def without(self, server: ServerName) -> Catalog:
        """Return a catalog without this server."""
        return Catalog(item for item in self._by_server.values() if item.server != server)

    @property
    def servers(self) -> tuple[ServerName, ...]:
        """The servers that have listed something, in the order of their coming."""
        return tuple(self._by_server)

    def listing(self, server: ServerName) -> ServerListing | None:
        """Return what a server listed, if it did."""
        return self._by_server.get(server)

    def find(self, server: ServerName, name: str) -> CatalogTool | None:
        """Return one server's tool of exactly that name."""
        listing = self._by_server.get(server)
        return listing.find(name) if listing else None

    def tools(self) -> Iterator[CatalogTool]:
        """Go through all tools, server by server."""
        for listing in self._by_server.values():
            yield from listing.tools


def list_server(
    server: ServerName,
    definitions: Iterable[object],
    *,
    instructions: str = "",
    limits: OrchestratorLimits = _LIMITS,
) -> ServerListing:
    """Make a listing of the decoded elements of `tools/list`. Never raises for what they hold.

    Two tools of one name are both quarantined: neither silently wins. So is everything past
    `server_tools_max` and `listing_bytes_max`.
    """
    tools: list[CatalogTool] = []
    quarantined: list[Quarantined] = []
    room = limits.listing_bytes_max
    for number, definition in enumerate(definitions):
        if number == limits.server_tools_max:
            quarantined.append(Quarantined("", f"more than {limits.server_tools_max} tools"))
            break
        read = _read_tool(server, definition, limits)
        if isinstance(read, Quarantined):
            quarantined.append(read)
            continue
        room -= _bytes_of(read.definition)
        if room < 0:
            reason = f"the server's definitions are over {limits.listing_bytes_max} bytes"
            quarantined.append(Quarantined(read.name, reason))
        else:
            tools.append(read)
    counts = Counter(tool.name for tool in tools)
    quarantined += [
        Quarantined(name, f"listed {count} times under one name")
        for name, count in counts.items()
        if count > 1
    ]
    return ServerListing(
        server=server,
        tools=tuple(tool for tool in tools if counts[tool.name] == 1),
        quarantined=tuple(quarantined),
        instructions=_cut(instructions, limits.description_chars_max),
        instructions_digest=hashlib.sha256(
            instructions.encode("utf-8", "surrogatepass")
        ).hexdigest(),
    )


def definition_digest(definition: Mapping[str, object]) -> str:
    """Return the SHA-256 of a definition as a server sent it, in hexadecimal; key order is nothing.

    The definition is within the bounds of depth.
    """
    try:
        return canonical_digest(definition)
    except ValueError:
        # RFC 8785 has no form for 2**64 - 1, a common maximum, nor for lone surrogates.
        plain = json.dumps(definition, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(b"not RFC 8785\n" + plain.encode("ascii")).hexdigest()


def _read_tool(
    server: ServerName, definition: object, limits: OrchestratorLimits
) -> CatalogTool | Quarantined:
    if not isinstance(definition, Mapping):
        return Quarantined("", "its definition is not an object")
    fields = cast("Mapping[str, object]", definition)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        return Quarantined("", "it has no name")
    if len(name) > limits.tool_name_chars_max:
        shown = name[: limits.tool_name_chars_max]
        return Quarantined(shown, f"its name is over {limits.tool_name_chars_max} characters")
    description = fields.get("description", "")
    annotations = fields.get("annotations", {})
    if not isinstance(description, str):
        return Quarantined(name, "its description is not text")
    if not isinstance(annotations, Mapping):
        return Quarantined(name, "its annotations are not an object")
    schema = fields.get("inputSchema")
    if not isinstance(schema, Mapping):
        return Quarantined(name, "it has no input schema that is an object")
    schema = cast("Mapping[str, object]", schema)
    fault = (
        _bounds_fault(fields, limits)
        or _schema_fault(schema, limits)
        or _size_fault(fields, limits)
    )
    if fault:
        return Quarantined(name, fault)
    return CatalogTool(
        server=server,
        name=name,
        digest=definition_digest(fields),
        description=_cut(description, limits.description_chars_max),
        input_schema=schema,
        annotations=cast("Mapping[str, object]", annotations),
        definition=fields,
    )


def _bounds_fault(definition: Mapping[str, object], limits: OrchestratorLimits) -> str:
    """Return why a definition is too much to look at; empty if it is not."""
    nodes = 0
    waiting: list[tuple[object, int]] = [(definition, 0)]
    while waiting:
        value, depth = waiting.pop()
        nodes += 1
        if nodes > limits.schema_nodes_max:
            return f"its definition has over {limits.schema_nodes_max} values"
        children: Iterable[object] = ()
        if isinstance(value, Mapping):
            children = cast("Mapping[str, object]", value).values()
        elif isinstance(value, list):
            children = cast("list[object]", value)
        else:
            continue
        if depth > limits.schema_depth_max:
            return f"its definition is nested over {limits.schema_depth_max} deep"
        waiting.extend((child, depth + 1) for child in children)
    return ""


def _schema_fault(schema: Mapping[str, object], limits: OrchestratorLimits) -> str:
    """Return why a schema cannot be shown to a model; empty if it can. Fetches and runs nothing."""
    if schema.get("type") != "object":
        return "its input schema does not describe an object"
    dialect = schema.get("$schema")
    if dialect is not None and not _is_known(dialect):
        return "its input schema is in a dialect that is neither 2020-12 nor Draft 7"
    if _bytes_of(schema) > limits.schema_bytes_max:
        return f"its input schema is over {limits.schema_bytes_max} bytes"
    return ""


def _size_fault(definition: Mapping[str, object], limits: OrchestratorLimits) -> str:
    if _bytes_of(definition) > limits.definition_bytes_max:
        return f"its definition is over {limits.definition_bytes_max} bytes"
    return ""


def _bytes_of(value: object) -> int:
    return len(_written(value).encode("utf-8", "surrogatepass"))


def _is_known(dialect: object) -> bool:
    if not isinstance(dialect, str):
        return False
    return dialect.removesuffix("#").removeprefix("https://").removeprefix("http://") in _DIALECTS


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - len(CUT)] + CUT
