"""What a server answered, looked through and bounded: of tools, resources, prompts and completions.

All of it is untrusted content with its origin, whatever was asked for. Follows no link in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from mcp_client.protocol.errors import McpError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.completion import read_completion
from mcp_client.protocol.surfaces.prompts import read_prompt_result
from mcp_client.protocol.surfaces.resources import read_resource_result
from mcp_client.protocol.surfaces.results import checked_result
from orchestrator.broker.bounding import within_bound
from orchestrator.broker.failing import failed
from orchestrator.broker.wish import Wish
from orchestrator.core.calls import CallMethod
from orchestrator.core.content import UntrustedContent

__all__ = ["read_answer"]

_LIMITS: Final = ClientLimits()
_TOOL: Final = CallMethod.TOOL
_Block = Mapping[str, object]


def read_answer(wish: Wish, result: object, text_bytes_max: int) -> UntrustedContent:
    """Return what a server answered, its text within the bound.

    Raises CallFailedError for what is no answer to this kind of call.
    """
    structured: object = None
    is_error = False
    server = wish.ref.server
    blocks: tuple[_Block, ...]
    method = wish.call.method
    try:
        if method is _TOOL:  # most calls, and the others' names cost as much to look up as a call
            members, blocks, is_error = checked_result(result, _LIMITS, server)
            structured = members.get("structuredContent")
        else:
            match method:
                case CallMethod.READ:
                    blocks = _contents(result, server)
                case CallMethod.PROMPT:
                    blocks, structured = _messages(result, server)
                case CallMethod.COMPLETE:
                    blocks, structured = _candidates(result, server)
                case _:
                    assert_never(method)
    except McpError as error:
        raise failed(wish, error) from error
    bounded, truncated = within_bound(blocks, text_bytes_max)
    return UntrustedContent(wish.origin, bounded, structured, is_error, truncated)


def _contents(result: object, server: str) -> tuple[_Block, ...]:
    """Return the parts of a resource: texts as text blocks, blobs as they came, each with its URI."""
    read = read_resource_result(result, _LIMITS, server=server)
    return tuple(
        {"type": "text", "text": part.text, "uri": part.uri, "mimeType": part.mime_type}
        if part.text is not None
        else {"type": "blob", "blob": part.blob, "uri": part.uri, "mimeType": part.mime_type}
        for part in read.contents
    )


def _messages(result: object, server: str) -> tuple[tuple[_Block, ...], object]:
    """Return the messages of a prompt as blocks that know whose they are."""
    prompt = read_prompt_result(result, _LIMITS, server=server)
    blocks = tuple({**message.block, "role": message.role.value} for message in prompt.messages)
    return blocks, {"description": prompt.description}


def _candidates(result: object, server: str) -> tuple[tuple[_Block, ...], object]:
    found = read_completion(result, _LIMITS, server=server)
    structured = {"values": list(found.values), "total": found.total, "hasMore": found.has_more}
    return ({"type": "text", "text": "\n".join(found.values)},), structured
