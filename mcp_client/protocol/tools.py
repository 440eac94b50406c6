"""Tools as a server defines them: identity, bounds, digest. It neither calls nor trusts them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.limits import ClientLimits

__all__ = ["CUT_MARK", "QuarantinedTool", "Tool", "cut_text", "read_tool"]

CUT_MARK: Final = " […cut]"
"""Stands at the end of a server's text that was over its bound."""

_DIALECTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of one server. All of it is the server's word: untrusted, and bounded.

    Attributes:
        name: the raw name, case-sensitive; unique in its listing.
        title: for people; empty if there is none.
        description: cut at `description_chars_max`, and then it ends in `CUT_MARK`.
        annotations: hints about behaviour. They never decide anything.
        definition: the whole definition as the server sent it, in canonical form.
        digest: SHA-256 of `definition`, in hexadecimal: what an approval is pinned to.
        schema_span: where in `definition` the input schema stands.
    """

    name: str
    title: str = ""
    description: str = ""
    annotations: Mapping[str, object] = field(default_factory=dict[str, object])
    definition: bytes = field(repr=False)
    digest: str
    schema_span: slice = field(repr=False, hash=False)

    @property
    def input_schema(self) -> bytes:
        """The input schema in canonical form, every keyword kept; parsed by who needs it."""
        return self.definition[self.schema_span]


@dataclass(frozen=True, slots=True)
class QuarantinedTool:
    """A tool that cannot be used, and why. `name` is empty if it has none that can be shown.

    The reason is our own text; nothing that the server wrote is in it.
    """

    name: str
    reason: str


def read_tool(definition: object, limits: ClientLimits) -> Tool | QuarantinedTool:
    """Read one element of `tools`, as decoded: its depth and texts are within bounds already.

    Never raises for what a server sent: one bad tool does not harm the others.
    """
    members = as_object(definition)
    if members is None:
        return QuarantinedTool("", "the definition is not an object")
    name = members.get("name")
    if not isinstance(name, str) or not name:
        return QuarantinedTool("", "it has no name")
    if len(name) > limits.name_chars_max:
        return QuarantinedTool("", f"its name has more than {limits.name_chars_max} characters")
    if not name.isprintable():
        return QuarantinedTool("", "its name holds characters that cannot be shown")
    reason = _fault_of_texts(members) or _fault_of_schema(members.get("inputSchema"))
    if reason:
        return QuarantinedTool(name, reason)
    whole, schema_span = _canonical_parts(members)
    if schema_span.stop - schema_span.start > limits.schema_bytes_max:
        return QuarantinedTool(name, f"its schema has more than {limits.schema_bytes_max} bytes")
    return Tool(
        name=name,
        title=cut_text(_text(members, "title"), limits.name_chars_max),
        description=cut_text(_text(members, "description"), limits.description_chars_max),
        annotations=as_object(members.get("annotations")) or {},
        definition=whole,
        digest=hashlib.sha256(whole).hexdigest(),
        schema_span=schema_span,
    )


def cut_text(text: str, chars_max: int) -> str:
    """Return a server's text within its bound, the mark of the cut included."""
    if len(text) <= chars_max:
        return text
    return text[: max(0, chars_max - len(CUT_MARK))] + CUT_MARK


def _canonical_parts(members: Mapping[str, object]) -> tuple[bytes, slice]:
    """Return the canonical form, and where the schema stands in it: it is kept once, not twice."""
    text = bytearray(b"{")
    start = end = 0
    for name in sorted(members):
        text += canonical(name)
        text += b":"
        start = len(text) if name == "inputSchema" else start
        text += canonical(members[name])
        end = len(text) if name == "inputSchema" else end
        text += b","
    text[-1:] = b"}"
    return bytes(text), slice(start, end)


def _text(members: Mapping[str, object], name: str) -> str:
    text = members.get(name)
    return text if isinstance(text, str) else ""


def _fault_of_texts(members: Mapping[str, object]) -> str:
    # null is what some servers write where they mean nothing
    for name in ("title", "description"):
        if not isinstance(members.get(name), str | None):
            return f"its {name} is not a text"
    annotations = members.get("annotations")
    if annotations is not None and as_object(annotations) is None:
        return "its annotations are not an object"
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
