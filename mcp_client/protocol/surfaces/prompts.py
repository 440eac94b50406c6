"""Prompts as a server lists them, and what getting one returns; it fills in and trusts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.content import checked_block, quarantined_block
from mcp_client.protocol.surfaces.items import (
    Item,
    Quarantined,
    fault_of_id,
    fault_of_texts,
    item_fields,
)
from mcp_client.protocol.texts import short_text

__all__ = [
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptResult",
    "Role",
    "read_prompt",
    "read_prompt_result",
]


class Role(Enum):
    """Whose turn a message is."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """An argument of a prompt: always a text. Whether one is missing is the server's to judge."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Item):
    """One prompt of one server.

    Attributes:
        name: the raw name, case-sensitive; unique in its listing.
        arguments: in the server's own order.
    """

    name: str
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt. A malformed block is `{"type": "quarantined", "reason": …}`."""

    role: Role
    block: Mapping[str, object] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """What getting a prompt returned: untrusted, whoever a message claims to be from."""

    messages: tuple[PromptMessage, ...]
    description: str = ""
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


def read_prompt(definition: object, limits: ClientLimits) -> Prompt | Quarantined:
    """Read one element of `prompts`, as decoded. Never raises for what a server sent."""
    members = as_object(definition)
    if members is None:
        return Quarantined("", "the definition is not an object")
    name = members.get("name")
    reason = fault_of_id("name", name, limits.name_chars_max)
    if reason or not isinstance(name, str):
        return Quarantined("", reason)
    arguments = _read_arguments(members.get("arguments"), limits)
    reason = fault_of_texts(members) or (arguments if isinstance(arguments, str) else "")
    if reason or isinstance(arguments, str):
        return Quarantined(name, reason)
    whole = canonical(members)
    if len(whole) > limits.definition_bytes_max:
        bound = limits.definition_bytes_max
        return Quarantined(name, f"its definition has more than {bound} bytes")
    return Prompt(name=name, arguments=arguments, **item_fields(members, limits, whole))


def read_prompt_result(result: object, limits: ClientLimits, *, server: str = "") -> PromptResult:
    """Check the result of `prompts/get`. Raises RemoteProtocolError if it is none."""
    members = as_object(result)
    messages = None if members is None else members.get("messages")
    if members is None or not isinstance(messages, list):
        raise _broken("the messages of a prompt are an array", server)
    found = cast("list[object]", messages)
    if len(found) > limits.content_blocks_max:
        raise _broken(f"a prompt has more than {limits.content_blocks_max} messages", server)
    return PromptResult(
        messages=tuple([_read_message(message) for message in found]),
        description=short_text(members, "description", limits.description_chars_max),
        meta=as_object(members.get("_meta")) or {},
    )


def _read_arguments(value: object, limits: ClientLimits) -> tuple[PromptArgument, ...] | str:
    """Read the arguments, or return what is wrong with them."""
    if value is None:
        return ()
    if not isinstance(value, list):
        return "its arguments are not an array"
    arguments = cast("list[object]", value)
    if len(arguments) > limits.prompt_arguments_max:
        return f"it has more than {limits.prompt_arguments_max} arguments"
    found: dict[str, PromptArgument] = {}
    for argument in arguments:
        members = as_object(argument)
        if members is None:
            return "one of its arguments is not an object"
        name = members.get("name")
        if fault_of_id("name", name, limits.name_chars_max) or not isinstance(name, str):
            return "one of its arguments has no name that can be used"
        if name in found:
            return "two of its arguments have one name"
        required = members.get("required")
        if fault_of_texts(members) or not isinstance(required, bool | None):
            return "one of its arguments is malformed"
        found[name] = PromptArgument(
            name=name,
            title=short_text(members, "title", limits.name_chars_max),
            description=short_text(members, "description", limits.description_chars_max),
            required=required is True,
        )
    return tuple(found.values())


def _read_message(message: object) -> PromptMessage:
    members = as_object(message)
    if members is None:
        return PromptMessage(Role.USER, quarantined_block("a message is an object"))
    match members.get("role"):
        case "user":
            role = Role.USER
        case "assistant":
            role = Role.ASSISTANT
        case _:
            reason = "a message is the user's or the assistant's"
            return PromptMessage(Role.USER, quarantined_block(reason))
    return PromptMessage(role, checked_block(members.get("content")))


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
