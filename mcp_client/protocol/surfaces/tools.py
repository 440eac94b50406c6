"""Tools as a server defines them: identity, bounds, digest. It neither calls nor trusts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

from mcp_client.protocol.jsonrpc import as_object, canonical, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.items import (
    Item,
    Quarantined,
    fault_of_id,
    fault_of_texts,
    item_fields,
)

__all__ = ["QuarantinedTool", "Tool", "named_params", "read_tool"]

_DIALECTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema",
    }
)
_SCHEMA: Final = b'"inputSchema":'
_NO_SCHEMA: Final = _SCHEMA + b"null"


QuarantinedTool = Quarantined
"""A tool that cannot be used, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Item):
    """One tool of one server.

    Attributes:
        name: the raw name, case-sensitive; unique in its listing.
        schema_start: where in `definition` the input schema begins; and `schema_end`. Two numbers:
            the collector follows a slice, ten thousand times in a catalogue.
    """

    name: str
    schema_start: int = field(repr=False, hash=False)
    schema_end: int = field(repr=False, hash=False)

    @property
    def input_schema(self) -> bytes:
        """The input schema in canonical form, every keyword kept; parsed by who needs it.

        Nothing in it is resolved, fetched or run: references and regular expressions are text.
        """
        return self.definition[self.schema_start : self.schema_end]


def named_params(name: str, arguments: bytes) -> bytes:
    """Return the params of a call: canonical, as `arguments`, a JSON object, is.

    They are not encoded once more. Raises LocalProtocolError for a name that is no text of JSON.
    """
    return b'{"arguments":%b,"name":%b}' % (arguments, _name_text(name))


@lru_cache(maxsize=1024)  # of names that are called, which are few
def _name_text(name: str) -> bytes:
    return encode(name)


def read_tool(definition: object, limits: ClientLimits) -> Tool | Quarantined:
    """Read one element of `tools`, as decoded: its depth and texts are within bounds already.

    Never raises for what a server sent: one bad tool does not harm the others.
    """
    members = as_object(definition)
    if members is None:
        return Quarantined("", "the definition is not an object")
    name = members.get("name")
    reason = fault_of_id("name", name, limits.name_chars_max)
    if reason or not isinstance(name, str):
        return Quarantined("", reason)
    schema = members.get("inputSchema")
    reason = fault_of_texts(members) or _fault_of_schema(schema)
    if reason:
        return Quarantined(name, reason)
    whole, schema_span = _canonical_parts(members)
    reason = _fault_of_size(schema, whole, schema_span, limits)
    if reason:
        return Quarantined(name, reason)
    start, end = schema_span.start, schema_span.stop
    return Tool(
        name=name, schema_start=start, schema_end=end, **item_fields(members, limits, whole)
    )


def _canonical_parts(members: Mapping[str, object]) -> tuple[bytes, slice]:
    """Return the canonical form, and where the schema stands in it: it is kept once, not twice."""
    schema = canonical(members["inputSchema"])
    around = canonical({**members, "inputSchema": None})
    # a quote within a text is escaped, so that this is a member, here or further inside
    before, *behind = around.split(_NO_SCHEMA)
    if len(behind) != 1:
        return _canonical_halves(members, schema)
    start = len(before) + len(_SCHEMA)
    whole = b"".join((before, _SCHEMA, schema, behind[0]))
    return whole, slice(start, start + len(schema))


def _canonical_halves(members: Mapping[str, object], schema: bytes) -> tuple[bytes, slice]:
    """Return the same where another member holds one of that name, without a value."""
    before = canonical({name: value for name, value in members.items() if name < "inputSchema"})
    behind = canonical({name: value for name, value in members.items() if name > "inputSchema"})
    head = before[:-1] + (b"," if len(before) > 2 else b"") + _SCHEMA
    tail = (b"," if len(behind) > 2 else b"") + behind[1:]
    return head + schema + tail, slice(len(head), len(head) + len(schema))


def _fault_of_size(schema: object, whole: bytes, span: slice, limits: ClientLimits) -> str:
    if len(whole) > limits.definition_bytes_max:
        return f"its definition has more than {limits.definition_bytes_max} bytes"
    if span.stop - span.start > limits.schema_bytes_max:
        return f"its schema has more than {limits.schema_bytes_max} bytes"
    start, end = span.start, span.stop
    objects, arrays = whole.count(b"{", start, end), whole.count(b"[", start, end)
    # brackets inside of texts are counted as well: only what looks too large is looked through
    if objects > limits.schema_objects_max or objects + arrays > limits.schema_depth_max:
        return _fault_of_structure(schema, limits)
    return ""


def _fault_of_structure(schema: object, limits: ClientLimits) -> str:
    level: list[object] = [schema]
    depth = objects = 0
    while level:
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                objects += 1
                below.extend(cast("dict[str, object]", each).values())
            else:
                below.extend(cast("list[object]", each))
        if objects > limits.schema_objects_max:
            return f"its schema has more than {limits.schema_objects_max} objects"
        depth += 1
        if depth > limits.schema_depth_max:
            return f"its schema is nested more than {limits.schema_depth_max} deep"
        level = [each for each in below if isinstance(each, dict | list)]
    return ""


def _fault_of_schema(schema: object) -> str:
    keywords = as_object(schema)
    if keywords is None:
        return "it has no input schema"
    if keywords.get("type") != "object":
        return "its input schema does not describe an object"
    dialect = keywords.get("$schema")
    if dialect is None:  # MCP 2025-11-25: 2020-12 where nothing is declared
        return ""
    # the empty fragment is part of Draft 7's own name for itself
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in _DIALECTS:
        return "its input schema is of a dialect other than 2020-12 and Draft 7"
    return ""
