"""What a server declared in `initialize`, and which messages that allows; it keeps no state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.jsonrpc import as_object

__all__ = ["ServerCapabilities", "notification_allowed", "requests_allowed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCapabilities:
    """The server capabilities that were negotiated. What is malformed counts as not declared."""

    tools: bool = False
    tools_list_changed: bool = False
    resources: bool = False
    resources_subscribe: bool = False
    resources_list_changed: bool = False
    prompts: bool = False
    prompts_list_changed: bool = False
    logging: bool = False
    completions: bool = False

    @classmethod
    def parse(cls, declared: Mapping[str, object], *, version: str) -> ServerCapabilities:
        """Read the `capabilities` member of an initialize result."""
        tools = as_object(declared.get("tools"))
        resources = as_object(declared.get("resources"))
        prompts = as_object(declared.get("prompts"))
        return cls(
            tools=tools is not None,
            tools_list_changed=_flag(tools, "listChanged"),
            resources=resources is not None,
            resources_subscribe=_flag(resources, "subscribe"),
            resources_list_changed=_flag(resources, "listChanged"),
            prompts=prompts is not None,
            prompts_list_changed=_flag(prompts, "listChanged"),
            logging=as_object(declared.get("logging")) is not None,
            # MCP 2024-11-05 has completion without a capability for it
            completions=version == "2024-11-05"
            or as_object(declared.get("completions")) is not None,
        )


def requests_allowed(capabilities: ServerCapabilities) -> frozenset[str]:
    """Return the methods for which the server declared what they need."""
    return frozenset(method for method, needs in _REQUESTS.items() if needs(capabilities))


def notification_allowed(method: str, capabilities: ServerCapabilities) -> bool:
    """Return whether a notification of the server was negotiated; False for an unknown one."""
    needs = _NOTIFICATIONS.get(method)
    return needs is not None and needs(capabilities)


def _flag(capability: Mapping[str, object] | None, name: str) -> bool:
    return capability is not None and capability.get(name) is True


_Needs = Callable[[ServerCapabilities], bool]

_REQUESTS: Final[Mapping[str, _Needs]] = {
    "ping": lambda _: True,
    "tools/list": lambda c: c.tools,
    "tools/call": lambda c: c.tools,
    "resources/list": lambda c: c.resources,
    "resources/templates/list": lambda c: c.resources,
    "resources/read": lambda c: c.resources,
    "resources/subscribe": lambda c: c.resources_subscribe,
    "resources/unsubscribe": lambda c: c.resources_subscribe,
    "prompts/list": lambda c: c.prompts,
    "prompts/get": lambda c: c.prompts,
    "completion/complete": lambda c: c.completions,
    "logging/setLevel": lambda c: c.logging,
}

_NOTIFICATIONS: Final[Mapping[str, _Needs]] = {
    "notifications/progress": lambda _: True,
    "notifications/cancelled": lambda _: True,
    "notifications/message": lambda c: c.logging,
    "notifications/tools/list_changed": lambda c: c.tools_list_changed,
    "notifications/resources/list_changed": lambda c: c.resources_list_changed,
    "notifications/resources/updated": lambda c: c.resources_subscribe,
    "notifications/prompts/list_changed": lambda c: c.prompts_list_changed,
}
