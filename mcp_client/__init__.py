"""An MCP client that sends nothing without leave; its public names, each loaded when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_client.client import (
        Client,
        Host,
        HttpKind,
        HttpSpec,
        PromptListing,
        ResourceListing,
        ServerSource,
        ServerSpec,
        TemplateListing,
        ToolListing,
        connect,
        open_host,
    )
    from mcp_client.ports import (
        SILENT,
        UNGUARDED,
        ClientObserver,
        FrameSink,
        Handlers,
        SendGuard,
        ServerRequestHandler,
        Ticket,
        Transport,
    )
    from mcp_client.protocol.challenges import Challenge
    from mcp_client.protocol.completion import Completion, PromptReference, TemplateReference
    from mcp_client.protocol.declaration import ClientCapabilities
    from mcp_client.protocol.elicitation import (
        CANCEL,
        DECLINE,
        ElicitationAction,
        ElicitationAnswer,
        FormElicitation,
        UrlElicitation,
        UrlElicitationRequiredError,
    )
    from mcp_client.protocol.errors import (
        CallCancelledError,
        CallTimeoutError,
        Delivery,
        FrameTooLargeError,
        HandshakeError,
        LocalProtocolError,
        McpError,
        PeerError,
        RemoteProtocolError,
        ResourceNotFoundError,
        ServerGoneError,
        StartError,
        UnsupportedVersionError,
    )
    from mcp_client.protocol.events import ListKind
    from mcp_client.protocol.forms import (
        BooleanField,
        Choice,
        ChoiceField,
        NumberField,
        TextField,
        TextFormat,
    )
    from mcp_client.protocol.http_errors import (
        AuthorizationRequiredError,
        HttpStatusError,
        SessionLostError,
    )
    from mcp_client.protocol.items import Quarantined
    from mcp_client.protocol.limits import ClientLimits
    from mcp_client.protocol.logs import LogLevel, LogMessage
    from mcp_client.protocol.progress import Progress
    from mcp_client.protocol.prompts import (
        Prompt,
        PromptArgument,
        PromptMessage,
        PromptResult,
        Role,
    )
    from mcp_client.protocol.resources import (
        Resource,
        ResourceContents,
        ResourceRead,
        ResourceTemplate,
    )
    from mcp_client.protocol.results import ToolResult
    from mcp_client.protocol.roots import Root
    from mcp_client.protocol.sampling import (
        ModelPreferences,
        SamplingMessage,
        SamplingRefused,
        SamplingRequest,
        SamplingResult,
    )
    from mcp_client.protocol.templates import expand_template, match_template, template_variables
    from mcp_client.protocol.tools import QuarantinedTool, Tool
    from mcp_client.protocol.urls import WebAddress
    from mcp_client.session import ClientSession, PendingRequest
    from mcp_client.transports.stdio import harden_process

__all__ = [
    "CANCEL",
    "DECLINE",
    "SILENT",
    "UNGUARDED",
    "AuthorizationRequiredError",
    "BooleanField",
    "CallCancelledError",
    "CallTimeoutError",
    "Challenge",
    "Choice",
    "ChoiceField",
    "Client",
    "ClientCapabilities",
    "ClientLimits",
    "ClientObserver",
    "ClientSession",
    "Completion",
    "Delivery",
    "ElicitationAction",
    "ElicitationAnswer",
    "FormElicitation",
    "FrameSink",
    "FrameTooLargeError",
    "Handlers",
    "HandshakeError",
    "Host",
    "HttpKind",
    "HttpSpec",
    "HttpStatusError",
    "ListKind",
    "LocalProtocolError",
    "LogLevel",
    "LogMessage",
    "McpError",
    "ModelPreferences",
    "NumberField",
    "PeerError",
    "PendingRequest",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptListing",
    "PromptMessage",
    "PromptReference",
    "PromptResult",
    "Quarantined",
    "QuarantinedTool",
    "RemoteProtocolError",
    "Resource",
    "ResourceContents",
    "ResourceListing",
    "ResourceNotFoundError",
    "ResourceRead",
    "ResourceTemplate",
    "Role",
    "Root",
    "SamplingMessage",
    "SamplingRefused",
    "SamplingRequest",
    "SamplingResult",
    "SendGuard",
    "ServerGoneError",
    "ServerRequestHandler",
    "ServerSource",
    "ServerSpec",
    "SessionLostError",
    "StartError",
    "TemplateListing",
    "TemplateReference",
    "TextField",
    "TextFormat",
    "Ticket",
    "Tool",
    "ToolListing",
    "ToolResult",
    "Transport",
    "UnsupportedVersionError",
    "UrlElicitation",
    "UrlElicitationRequiredError",
    "WebAddress",
    "connect",
    "expand_template",
    "harden_process",
    "match_template",
    "open_host",
    "template_variables",
]

_ERRORS = "mcp_client.protocol.errors"
_HTTP_ERRORS = "mcp_client.protocol.http_errors"

_HOMES = {
    "AuthorizationRequiredError": _HTTP_ERRORS,
    "BooleanField": "mcp_client.protocol.forms",
    "CANCEL": "mcp_client.protocol.elicitation",
    "CallCancelledError": _ERRORS,
    "CallTimeoutError": _ERRORS,
    "Challenge": "mcp_client.protocol.challenges",
    "Choice": "mcp_client.protocol.forms",
    "ChoiceField": "mcp_client.protocol.forms",
    "Client": "mcp_client.client",
    "ClientCapabilities": "mcp_client.protocol.declaration",
    "ClientLimits": "mcp_client.protocol.limits",
    "ClientObserver": "mcp_client.ports",
    "ClientSession": "mcp_client.session",
    "Completion": "mcp_client.protocol.completion",
    "DECLINE": "mcp_client.protocol.elicitation",
    "Delivery": _ERRORS,
    "ElicitationAction": "mcp_client.protocol.elicitation",
    "ElicitationAnswer": "mcp_client.protocol.elicitation",
    "FormElicitation": "mcp_client.protocol.elicitation",
    "FrameSink": "mcp_client.ports",
    "FrameTooLargeError": _ERRORS,
    "Handlers": "mcp_client.ports",
    "HandshakeError": _ERRORS,
    "Host": "mcp_client.client",
    "HttpKind": "mcp_client.client",
    "HttpSpec": "mcp_client.client",
    "HttpStatusError": _HTTP_ERRORS,
    "ListKind": "mcp_client.protocol.events",
    "LocalProtocolError": _ERRORS,
    "LogLevel": "mcp_client.protocol.logs",
    "LogMessage": "mcp_client.protocol.logs",
    "McpError": _ERRORS,
    "ModelPreferences": "mcp_client.protocol.sampling",
    "NumberField": "mcp_client.protocol.forms",
    "PeerError": _ERRORS,
    "PendingRequest": "mcp_client.session",
    "Progress": "mcp_client.protocol.progress",
    "Prompt": "mcp_client.protocol.prompts",
    "PromptArgument": "mcp_client.protocol.prompts",
    "PromptListing": "mcp_client.client",
    "PromptMessage": "mcp_client.protocol.prompts",
    "PromptReference": "mcp_client.protocol.completion",
    "PromptResult": "mcp_client.protocol.prompts",
    "Quarantined": "mcp_client.protocol.items",
    "QuarantinedTool": "mcp_client.protocol.tools",
    "RemoteProtocolError": _ERRORS,
    "Resource": "mcp_client.protocol.resources",
    "ResourceContents": "mcp_client.protocol.resources",
    "ResourceListing": "mcp_client.client",
    "ResourceNotFoundError": _ERRORS,
    "ResourceRead": "mcp_client.protocol.resources",
    "ResourceTemplate": "mcp_client.protocol.resources",
    "Role": "mcp_client.protocol.prompts",
    "Root": "mcp_client.protocol.roots",
    "SILENT": "mcp_client.ports",
    "SamplingMessage": "mcp_client.protocol.sampling",
    "SamplingRefused": "mcp_client.protocol.sampling",
    "SamplingRequest": "mcp_client.protocol.sampling",
    "SamplingResult": "mcp_client.protocol.sampling",
    "SendGuard": "mcp_client.ports",
    "ServerGoneError": _ERRORS,
    "ServerRequestHandler": "mcp_client.ports",
    "ServerSource": "mcp_client.client",
    "ServerSpec": "mcp_client.client",
    "SessionLostError": _HTTP_ERRORS,
    "StartError": _ERRORS,
    "TemplateListing": "mcp_client.client",
    "TemplateReference": "mcp_client.protocol.completion",
    "TextField": "mcp_client.protocol.forms",
    "TextFormat": "mcp_client.protocol.forms",
    "Ticket": "mcp_client.ports",
    "Tool": "mcp_client.protocol.tools",
    "ToolListing": "mcp_client.client",
    "ToolResult": "mcp_client.protocol.results",
    "Transport": "mcp_client.ports",
    "UNGUARDED": "mcp_client.ports",
    "UnsupportedVersionError": _ERRORS,
    "UrlElicitation": "mcp_client.protocol.elicitation",
    "UrlElicitationRequiredError": "mcp_client.protocol.elicitation",
    "WebAddress": "mcp_client.protocol.urls",
    "connect": "mcp_client.client",
    "expand_template": "mcp_client.protocol.templates",
    "harden_process": "mcp_client.transports.stdio",
    "match_template": "mcp_client.protocol.templates",
    "open_host": "mcp_client.client",
    "template_variables": "mcp_client.protocol.templates",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
