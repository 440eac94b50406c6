"""Built-in tools by which a model reads a resource or gets a prompt: an explicit act, decided like any.

Each is decided twice: whether the agent may use the tool, and whether it may read this resource, or get
this prompt, of this server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from orchestrator.broker.builtins import BuiltinTool
from orchestrator.broker.view import AgentView
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, DenyReason

__all__ = ["READING_TOOLS"]

_TEXT: Final[Mapping[str, object]] = {"type": "string"}


async def _read(view: AgentView, arguments: Mapping[str, object]) -> str:
    server, uri = _texts(arguments, "server", "uri")
    return _shown(await view.call(Call.read(server, uri)))


async def _get_prompt(view: AgentView, arguments: Mapping[str, object]) -> str:
    server, name = _texts(arguments, "server", "name")
    given = arguments.get("arguments", {})
    if not isinstance(given, Mapping):
        raise AuthorityError("arguments is an object of texts", reason=DenyReason.BAD_ARGUMENTS)
    return _shown(await view.call(Call.prompt(server, name, given)))  # pyright: ignore[reportUnknownArgumentType]


def _texts(arguments: Mapping[str, object], *names: str) -> tuple[str, ...]:
    texts = [arguments.get(name) for name in names]
    found = tuple(text for text in texts if isinstance(text, str))
    if len(found) != len(names):
        raise AuthorityError(f"{' and '.join(names)} are texts", reason=DenyReason.BAD_ARGUMENTS)
    return found


def _shown(content: UntrustedContent) -> str:
    """Return what was read, marked as what it is, with where it comes from."""
    return json.dumps(
        {
            "server": content.origin.server,
            "kind": content.origin.kind,
            "name": content.origin.name,
            "trust": content.trust,
            "authority": content.authority,
            "truncated": content.truncated,
            "content": list(content.blocks),
        },
        ensure_ascii=False,
    )


READING_TOOLS: Final = (
    BuiltinTool(
        name="read_resource",
        description=(
            "Read one resource of a server by its URI. `list_capabilities` shows which there are."
        ),
        run=_read,
        input_schema={
            "type": "object",
            "required": ["server", "uri"],
            "additionalProperties": False,
            "properties": {"server": _TEXT, "uri": _TEXT},
        },
    ),
    BuiltinTool(
        name="get_prompt",
        description="Get one prompt of a server by its exact name, with its arguments as texts.",
        run=_get_prompt,
        input_schema={
            "type": "object",
            "required": ["server", "name"],
            "additionalProperties": False,
            "properties": {
                "server": _TEXT,
                "name": _TEXT,
                "arguments": {"type": "object", "additionalProperties": _TEXT},
            },
        },
    ),
)
"""What a model has beside a server's own tools."""
