"""Sampling: a server's wish for a model's turn, checked whole, and the answer; it asks no model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.sampling_turns import fault_of_turns
from mcp_client.protocol.surfaces.content import fault_of_block
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.prompts import Role
from mcp_client.protocol.surfaces.tools import Tool, read_tool
from mcp_client.protocol.texts import cut_text, short_text, text_of

__all__ = [
    "ModelPreferences",
    "SamplingMessage",
    "SamplingRefused",
    "SamplingRequest",
    "SamplingResult",
    "fault_of_sampling_block",
    "read_sampling",
    "sampling_result",
]

_CHOICES: Final = frozenset({"auto", "required", "none"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingMessage:
    """One message: blocks as decoded, each of a known kind and well formed."""

    role: Role
    blocks: tuple[Mapping[str, object], ...] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPreferences:
    """What a server would like of a model. Hints: the host chooses the model. From 0 to 1, or None."""

    hints: tuple[str, ...] = ()
    cost: float | None = None
    speed: float | None = None
    intelligence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRequest:
    """A server wants a model's turn. Show it for approval; all of it may be changed or refused.

    Attributes:
        server: the host's label of the server.
        messages: untrusted.
        max_tokens: the answer must not be longer.
        system_prompt: untrusted, cut at `description_chars_max`; empty if there is none.
        temperature: None if the server does not say.
        stop_sequences: where the answer is to end.
        preferences: hints for the choice of a model.
        include_context: what the server would like to see of other servers, in its own word.
            Carried to be shown, and never heeded: sessions are not merged.
        tools: what the model may ask the server for; empty unless that was negotiated.
        tool_choice: auto, required or none.
        metadata: for the model's provider, as decoded; untrusted.
        meta: `_meta`, as decoded.
    """

    server: str
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    system_prompt: str = ""
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    preferences: ModelPreferences = ModelPreferences()
    include_context: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    metadata: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingResult:
    """A model's turn, for the server that asked.

    Attributes:
        blocks: content blocks; one, unless tools were negotiated.
        model: a label that the host chooses; the server needs no provider's name.
        stop_reason: endTurn, stopSequence, maxTokens, toolUse or another word.
    """

    blocks: tuple[Mapping[str, object], ...] = field(hash=False)
    model: str = "unspecified"
    stop_reason: str = "endTurn"


@dataclass(frozen=True, slots=True)
class SamplingRefused:
    """A person, or a rule of the host, said no. The server learns no reason."""


def read_sampling(
    params: Mapping[str, object], limits: ClientLimits, *, server: str, with_tools: bool
) -> SamplingRequest | str:
    """Read the params of `sampling/createMessage`, or return what is wrong with them.

    `with_tools` says whether tools were negotiated: without, a request that has any is wrong.
    """
    tools = _read_tools(params, limits, with_tools=with_tools)
    if isinstance(tools, str):
        return tools
    messages = _read_messages(params.get("messages"), limits, with_tools=with_tools)
    if isinstance(messages, str):
        return messages
    tokens = params.get("maxTokens")
    if type(tokens) is not int or not 0 < tokens <= limits.sampling_tokens_max:
        return f"maxTokens is a whole number from 1 to {limits.sampling_tokens_max}"
    stops = _read_stops(params.get("stopSequences", []), limits)
    if isinstance(stops, str):
        return stops
    if not isinstance(params.get("systemPrompt"), str | None):
        return "a systemPrompt is a text"
    return SamplingRequest(
        server=server,
        messages=messages,
        max_tokens=tokens,
        system_prompt=short_text(params, "systemPrompt", limits.description_chars_max),
        temperature=_number(params.get("temperature")),
        stop_sequences=stops,
        preferences=_read_preferences(params.get("modelPreferences"), limits),
        include_context=short_text(params, "includeContext", limits.name_chars_max),
        tools=tools,
        tool_choice=_tool_choice(params),
        metadata=as_object(params.get("metadata")) or {},
        meta=as_object(params.get("_meta")) or {},
    )


def sampling_result(result: SamplingResult, *, with_tools: bool) -> Mapping[str, object]:
    """Return the result of `sampling/createMessage`.

    Raises LocalProtocolError for blocks that are malformed or that the server cannot take.
    """
    if not result.blocks or (len(result.blocks) > 1 and not with_tools):
        raise LocalProtocolError("a model's turn is one content block", stage="send")
    for block in result.blocks:
        fault = fault_of_sampling_block(block, with_tools=with_tools)
        if not fault and block.get("type") == "tool_result":
            fault = "a model's turn has no result of a tool"
        if fault:
            raise LocalProtocolError(fault, stage="send")
    blocks = [dict(block) for block in result.blocks]
    return {
        "role": "assistant",
        "content": blocks[0] if len(blocks) == 1 else blocks,
        "model": result.model,
        "stopReason": result.stop_reason,
    }


def fault_of_sampling_block(block: object, *, with_tools: bool) -> str:
    """Return what is wrong with a block of a sampling message; empty if nothing is."""
    members = as_object(block) or {}
    match members.get("type"):
        case "text" | "image" | "audio":
            return fault_of_block(block)
        case "tool_use" if with_tools:
            texts = isinstance(members.get("id"), str) and isinstance(members.get("name"), str)
            if texts and as_object(members.get("input")) is not None:
                return ""
            return "a use of a tool has an id, a name and an input"
        case "tool_result" if with_tools:
            content = members.get("content")
            if not isinstance(members.get("toolUseId"), str) or not isinstance(content, list):
                return "a result of a tool has the id of its use, and content"
            faults = [fault_of_block(each) for each in cast("list[object]", content)]
            return next((fault for fault in faults if fault), "")
        case _:
            return "a content block of a kind that sampling does not have"


def _read_messages(
    value: object, limits: ClientLimits, *, with_tools: bool
) -> tuple[SamplingMessage, ...] | str:
    if not isinstance(value, list):
        return "messages are an array"
    messages = cast("list[object]", value)
    if len(messages) > limits.sampling_messages_max:
        return f"there are more than {limits.sampling_messages_max} messages"
    read: list[SamplingMessage] = []
    for message in messages:
        members = as_object(message)
        role = None if members is None else _ROLES.get(text_of(members, "role"))
        if members is None or role is None:
            return "a message is the user's or the assistant's"
        content = members.get("content")
        # MCP 2025-11-25: a message may hold several blocks
        blocks = cast("list[object]", content) if isinstance(content, list) else [content]
        if len(blocks) > limits.sampling_messages_max:
            return f"a message has more than {limits.sampling_messages_max} blocks"
        for block in blocks:
            fault = fault_of_sampling_block(block, with_tools=with_tools)
            if fault:
                return fault
        read.append(
            SamplingMessage(role=role, blocks=tuple(cast("list[Mapping[str, object]]", blocks)))
        )
    fault = fault_of_turns([(message.role, message.blocks) for message in read])
    return fault or tuple(read)


def _read_tools(
    params: Mapping[str, object], limits: ClientLimits, *, with_tools: bool
) -> tuple[Tool, ...] | str:
    value = params.get("tools")
    if not with_tools:
        # MCP 2025-11-25: an error if it is there and the capability is not
        wants = value is not None or params.get("toolChoice") is not None
        return "tools in sampling were not declared" if wants else ()
    if value is None:
        return ()
    if not isinstance(value, list):
        return "tools are an array"
    tools = cast("list[object]", value)
    if len(tools) > limits.sampling_tools_max:
        return f"there are more than {limits.sampling_tools_max} tools"
    read: dict[str, Tool] = {}
    for definition in tools:
        tool = read_tool(definition, limits)
        if isinstance(tool, Quarantined):
            return f"a tool cannot be used: {tool.reason}"
        if tool.name in read:
            return "two tools have one name"
        read[tool.name] = tool
    return tuple(read.values())


def _read_stops(value: object, limits: ClientLimits) -> tuple[str, ...] | str:
    if not isinstance(value, list):
        return "stopSequences are an array"
    stops = cast("list[object]", value)
    if len(stops) > limits.sampling_stops_max:
        return f"there are more than {limits.sampling_stops_max} stopSequences"
    texts = [stop for stop in stops if isinstance(stop, str) and len(stop) <= limits.name_chars_max]
    return tuple(texts) if len(texts) == len(stops) else "stopSequences are short texts"


def _tool_choice(params: Mapping[str, object]) -> str:
    mode = (as_object(params.get("toolChoice")) or {}).get("mode")
    return mode if isinstance(mode, str) and mode in _CHOICES else "auto"


def _read_preferences(value: object, limits: ClientLimits) -> ModelPreferences:
    members = as_object(value) or {}
    listed = members.get("hints")
    hints = cast("list[object]", listed) if isinstance(listed, list) else []
    names = [(as_object(hint) or {}).get("name") for hint in hints[: limits.sampling_hints_max]]
    return ModelPreferences(
        hints=tuple(
            cut_text(name, limits.name_chars_max) for name in names if isinstance(name, str)
        ),
        cost=_number(members.get("costPriority")),
        speed=_number(members.get("speedPriority")),
        intelligence=_number(members.get("intelligencePriority")),
    )


def _number(value: object) -> float | None:
    return value if type(value) is int or type(value) is float else None


_ROLES: Final[Mapping[str, Role]] = {role.value: role for role in Role}
