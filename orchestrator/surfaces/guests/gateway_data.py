"""Resources, prompts and completion of a snapshot, as the official SDK's server has them.

A host lists them, and reads or gets one by an explicit request; nothing is read by being listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import mcp_types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server

from orchestrator.core.calls import Call, PromptSpec, ResourceSpec
from orchestrator.core.capability import CapabilityKind
from orchestrator.core.content import UntrustedContent
from orchestrator.surfaces.guests.answering import MARKED, as_protocol_error, mark_of, page, require
from orchestrator.surfaces.guests.qualifying import (
    completion_of,
    prompt_call,
    prompt_name,
    read_call,
    resource_uri,
)
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["add_data"]

_Context = ServerRequestContext[Any, Any]
_Paged = mcp_types.PaginatedRequestParams


def add_data(server: Server[dict[str, object]], view: SnapshotView) -> None:
    """Have a server answer for the resources and prompts of a view."""
    _add_resources(server, view)
    _add_prompts(server, view)


def _add_resources(server: Server[dict[str, object]], view: SnapshotView) -> None:
    async def listed(context: _Context, params: _Paged) -> mcp_types.ListResourcesResult:
        require(view)
        found = [_resource(spec) for spec in view.resources() if not spec.is_template]
        items, cursor = page(found, params.cursor)
        return mcp_types.ListResourcesResult.model_validate(
            {"resources": items, "nextCursor": cursor}, by_name=False
        )

    async def templates(context: _Context, params: _Paged) -> mcp_types.ListResourceTemplatesResult:
        require(view)
        found = [_template(spec) for spec in view.resources() if spec.is_template]
        items, cursor = page(found, params.cursor)
        return mcp_types.ListResourceTemplatesResult.model_validate(
            {"resourceTemplates": items, "nextCursor": cursor}, by_name=False
        )

    async def read(
        context: _Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        content = await _made(view, read_call(view, params.uri))
        return mcp_types.ReadResourceResult.model_validate(
            {"contents": [_part(content, block) for block in content.blocks], **mark_of(content)},
            by_name=False,
        )

    server.add_request_handler("resources/list", _Paged, listed)
    server.add_request_handler("resources/templates/list", _Paged, templates)
    server.add_request_handler("resources/read", mcp_types.ReadResourceRequestParams, read)


def _add_prompts(server: Server[dict[str, object]], view: SnapshotView) -> None:
    async def listed(context: _Context, params: _Paged) -> mcp_types.ListPromptsResult:
        require(view)
        items, cursor = page([_prompt(spec) for spec in view.prompts()], params.cursor)
        return mcp_types.ListPromptsResult.model_validate(
            {"prompts": items, "nextCursor": cursor}, by_name=False
        )

    async def got(
        context: _Context, params: mcp_types.GetPromptRequestParams
    ) -> mcp_types.GetPromptResult:
        require(view)
        content = await _made(view, prompt_call(view, params.name, params.arguments or {}))
        said = cast("Mapping[str, object]", content.structured or {})
        return mcp_types.GetPromptResult.model_validate(
            {
                "description": said.get("description"),
                "messages": [_message(block) for block in content.blocks],
                **mark_of(content),
            },
            by_name=False,
        )

    async def completed(
        context: _Context, params: mcp_types.CompleteRequestParams
    ) -> mcp_types.CompleteResult:
        require(view)
        ref = params.ref
        is_prompt = isinstance(ref, mcp_types.PromptReference)
        call = completion_of(
            view,
            ref.name if isinstance(ref, mcp_types.PromptReference) else ref.uri,
            kind=CapabilityKind.PROMPT if is_prompt else CapabilityKind.RESOURCE_TEMPLATE,
            argument=params.argument.name,
            value=params.argument.value,
            context=(params.context.arguments if params.context is not None else None) or {},
        )
        content = await _made(view, call)
        return mcp_types.CompleteResult.model_validate(
            {"completion": content.structured, **mark_of(content)}, by_name=False
        )

    server.add_request_handler("prompts/list", _Paged, listed)
    server.add_request_handler("prompts/get", mcp_types.GetPromptRequestParams, got)
    server.add_request_handler("completion/complete", mcp_types.CompleteRequestParams, completed)


async def _made(view: SnapshotView, call: Call) -> UntrustedContent:
    """Make a call; what becomes no content becomes the protocol's error, with why in its data."""
    require(view)
    with as_protocol_error():
        return await view.make(call)


def _resource(spec: ResourceSpec) -> dict[str, object]:
    return {
        "uri": resource_uri(spec.server, spec.uri),
        "name": spec.name,
        "description": f"{MARKED} {spec.description}",
        **({"mimeType": spec.mime_type} if spec.mime_type else {}),
    }


def _template(spec: ResourceSpec) -> dict[str, object]:
    shown = _resource(spec)
    return {"uriTemplate": shown.pop("uri"), **shown}


def _prompt(spec: PromptSpec) -> dict[str, object]:
    return {
        "name": prompt_name(spec.server, spec.name),
        "description": f"{MARKED} {spec.description}",
        "arguments": [
            {"name": name, "required": required} for name, required in spec.arguments.items()
        ],
    }


def _part(content: UntrustedContent, block: Mapping[str, object]) -> dict[str, object]:
    """Return one part of a resource as the protocol has it, its URI as a guest is told it."""
    kept = {key: value for key, value in block.items() if key != "type" and value is not None}
    return {**kept, "uri": resource_uri(content.origin.server, str(block.get("uri", "")))}


def _message(block: Mapping[str, object]) -> dict[str, object]:
    return {"role": block["role"], "content": {k: v for k, v in block.items() if k != "role"}}
