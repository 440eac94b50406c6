"""An MCP client that sends nothing without leave; its public names, each loaded when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_client.auth.errors import (
        AuthFault,
        AuthorizationFailedError,
        NeedsAuthorizationError,
    )
    from mcp_client.auth.files import FileTokenStore
    from mcp_client.auth.flow import (
        Profile,
    )
    from mcp_client.auth.limits import (
        AuthLimits,
    )
    from mcp_client.auth.registration import (
        ClientSettings,
    )
    from mcp_client.auth.settings import (
        AuthorizationStep,
        AuthSettings,
        EnterpriseSettings,
    )
    from mcp_client.auth.store import (
        MemoryTokenStore,
        TokenStore,
    )
    from mcp_client.auth.system_keyring import (
        KeyringTokenStore,
        find_keyring,
    )
    from mcp_client.client import (
        Client,
        Host,
        HttpKind,
        HttpSpec,
        LoadedSkill,
        PromptListing,
        ResourceListing,
        ServerSource,
        ServerSpec,
        SkillListing,
        Standing,
        TemplateListing,
        ToolListing,
        connect,
        keep_connected,
        open_host,
    )
    from mcp_client.client.authorizing import connect_authorized
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
    from mcp_client.protocol.declaration import ClientCapabilities
    from mcp_client.protocol.dialect import Dialect
    from mcp_client.protocol.eras import Era, EraMemory, Opening
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
    from mcp_client.protocol.http.challenges import Challenge
    from mcp_client.protocol.http.errors import (
        AuthorizationRequiredError,
        HttpStatusError,
        SessionLostError,
    )
    from mcp_client.protocol.limits import ClientLimits
    from mcp_client.protocol.logs import LogLevel, LogMessage
    from mcp_client.protocol.modern.caching import ResponseCache
    from mcp_client.protocol.modern.errors import (
        HeaderMismatchError,
        InputRefusedError,
        MissingCapabilityError,
        ModernServerError,
        SkillFault,
        SkillVerificationError,
        TaskCancelledError,
        UndeclaredInputError,
        VersionRefusedError,
    )
    from mcp_client.protocol.modern.limits import ModernLimits
    from mcp_client.protocol.modern.mrtr import (
        InputKind,
        InputRequest,
        InputRequired,
        InputRequiredError,
    )
    from mcp_client.protocol.owners import Owner
    from mcp_client.protocol.peer.elicitation import (
        CANCEL,
        DECLINE,
        ElicitationAction,
        ElicitationAnswer,
        FormElicitation,
        UrlElicitation,
        UrlElicitationRequiredError,
    )
    from mcp_client.protocol.peer.forms import (
        BooleanField,
        Choice,
        ChoiceField,
        NumberField,
        TextField,
        TextFormat,
    )
    from mcp_client.protocol.peer.roots import Root
    from mcp_client.protocol.peer.sampling import (
        ModelPreferences,
        SamplingMessage,
        SamplingRefused,
        SamplingRequest,
        SamplingResult,
    )
    from mcp_client.protocol.progress import Progress
    from mcp_client.protocol.surfaces.completion import (
        Completion,
        PromptReference,
        TemplateReference,
    )
    from mcp_client.protocol.surfaces.items import Quarantined
    from mcp_client.protocol.surfaces.prompts import (
        Prompt,
        PromptArgument,
        PromptMessage,
        PromptResult,
        Role,
    )
    from mcp_client.protocol.surfaces.resources import (
        Resource,
        ResourceContents,
        ResourceRead,
        ResourceTemplate,
    )
    from mcp_client.protocol.surfaces.results import ToolResult
    from mcp_client.protocol.surfaces.skills import Skill, SkillFile
    from mcp_client.protocol.surfaces.tasks import Task, TaskCreatedError, TaskShape, TaskStatus
    from mcp_client.protocol.surfaces.templates import (
        expand_template,
        match_template,
        template_variables,
    )
    from mcp_client.protocol.surfaces.tools import QuarantinedTool, Tool
    from mcp_client.protocol.urls import WebAddress
    from mcp_client.session import ClientSession, PendingRequest
    from mcp_client.transports.stdio import harden_process

__all__ = [
    "CANCEL",
    "DECLINE",
    "SILENT",
    "UNGUARDED",
    "AuthFault",
    "AuthLimits",
    "AuthSettings",
    "AuthorizationFailedError",
    "AuthorizationRequiredError",
    "AuthorizationStep",
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
    "ClientSettings",
    "Completion",
    "Delivery",
    "Dialect",
    "ElicitationAction",
    "ElicitationAnswer",
    "EnterpriseSettings",
    "Era",
    "EraMemory",
    "FileTokenStore",
    "FormElicitation",
    "FrameSink",
    "FrameTooLargeError",
    "Handlers",
    "HandshakeError",
    "HeaderMismatchError",
    "Host",
    "HttpKind",
    "HttpSpec",
    "HttpStatusError",
    "InputKind",
    "InputRefusedError",
    "InputRequest",
    "InputRequired",
    "InputRequiredError",
    "KeyringTokenStore",
    "ListKind",
    "LoadedSkill",
    "LocalProtocolError",
    "LogLevel",
    "LogMessage",
    "McpError",
    "MemoryTokenStore",
    "MissingCapabilityError",
    "ModelPreferences",
    "ModernLimits",
    "ModernServerError",
    "NeedsAuthorizationError",
    "NumberField",
    "Opening",
    "Owner",
    "PeerError",
    "PendingRequest",
    "Profile",
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
    "ResponseCache",
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
    "Skill",
    "SkillFault",
    "SkillFile",
    "SkillListing",
    "SkillVerificationError",
    "Standing",
    "StartError",
    "Task",
    "TaskCancelledError",
    "TaskCreatedError",
    "TaskShape",
    "TaskStatus",
    "TemplateListing",
    "TemplateReference",
    "TextField",
    "TextFormat",
    "Ticket",
    "TokenStore",
    "Tool",
    "ToolListing",
    "ToolResult",
    "Transport",
    "UndeclaredInputError",
    "UnsupportedVersionError",
    "UrlElicitation",
    "UrlElicitationRequiredError",
    "VersionRefusedError",
    "WebAddress",
    "connect",
    "connect_authorized",
    "expand_template",
    "find_keyring",
    "harden_process",
    "keep_connected",
    "match_template",
    "open_host",
    "template_variables",
]

_ERRORS = "mcp_client.protocol.errors"
_HTTP_ERRORS = "mcp_client.protocol.http.errors"

_HOMES = {
    "AuthFault": "mcp_client.auth.errors",
    "AuthorizationFailedError": "mcp_client.auth.errors",
    "NeedsAuthorizationError": "mcp_client.auth.errors",
    "AuthLimits": "mcp_client.auth.limits",
    "AuthSettings": "mcp_client.auth.settings",
    "AuthorizationStep": "mcp_client.auth.settings",
    "EnterpriseSettings": "mcp_client.auth.settings",
    "ClientSettings": "mcp_client.auth.registration",
    "Profile": "mcp_client.auth.flow",
    "FileTokenStore": "mcp_client.auth.files",
    "KeyringTokenStore": "mcp_client.auth.system_keyring",
    "find_keyring": "mcp_client.auth.system_keyring",
    "MemoryTokenStore": "mcp_client.auth.store",
    "TokenStore": "mcp_client.auth.store",
    "connect_authorized": "mcp_client.client.authorizing",
    "AuthorizationRequiredError": _HTTP_ERRORS,
    "BooleanField": "mcp_client.protocol.peer.forms",
    "CANCEL": "mcp_client.protocol.peer.elicitation",
    "CallCancelledError": _ERRORS,
    "CallTimeoutError": _ERRORS,
    "Challenge": "mcp_client.protocol.http.challenges",
    "Choice": "mcp_client.protocol.peer.forms",
    "ChoiceField": "mcp_client.protocol.peer.forms",
    "Client": "mcp_client.client",
    "ClientCapabilities": "mcp_client.protocol.declaration",
    "ClientLimits": "mcp_client.protocol.limits",
    "ClientObserver": "mcp_client.ports",
    "ClientSession": "mcp_client.session",
    "Completion": "mcp_client.protocol.surfaces.completion",
    "DECLINE": "mcp_client.protocol.peer.elicitation",
    "Delivery": _ERRORS,
    "ElicitationAction": "mcp_client.protocol.peer.elicitation",
    "ElicitationAnswer": "mcp_client.protocol.peer.elicitation",
    "FormElicitation": "mcp_client.protocol.peer.elicitation",
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
    "ModelPreferences": "mcp_client.protocol.peer.sampling",
    "NumberField": "mcp_client.protocol.peer.forms",
    "PeerError": _ERRORS,
    "PendingRequest": "mcp_client.session",
    "Progress": "mcp_client.protocol.progress",
    "Prompt": "mcp_client.protocol.surfaces.prompts",
    "PromptArgument": "mcp_client.protocol.surfaces.prompts",
    "PromptListing": "mcp_client.client",
    "PromptMessage": "mcp_client.protocol.surfaces.prompts",
    "PromptReference": "mcp_client.protocol.surfaces.completion",
    "PromptResult": "mcp_client.protocol.surfaces.prompts",
    "Quarantined": "mcp_client.protocol.surfaces.items",
    "QuarantinedTool": "mcp_client.protocol.surfaces.tools",
    "RemoteProtocolError": _ERRORS,
    "Resource": "mcp_client.protocol.surfaces.resources",
    "ResourceContents": "mcp_client.protocol.surfaces.resources",
    "ResourceListing": "mcp_client.client",
    "ResourceNotFoundError": _ERRORS,
    "ResourceRead": "mcp_client.protocol.surfaces.resources",
    "ResourceTemplate": "mcp_client.protocol.surfaces.resources",
    "Role": "mcp_client.protocol.surfaces.prompts",
    "Root": "mcp_client.protocol.peer.roots",
    "SILENT": "mcp_client.ports",
    "SamplingMessage": "mcp_client.protocol.peer.sampling",
    "SamplingRefused": "mcp_client.protocol.peer.sampling",
    "SamplingRequest": "mcp_client.protocol.peer.sampling",
    "SamplingResult": "mcp_client.protocol.peer.sampling",
    "SendGuard": "mcp_client.ports",
    "ServerGoneError": _ERRORS,
    "ServerRequestHandler": "mcp_client.ports",
    "ServerSource": "mcp_client.client",
    "ServerSpec": "mcp_client.client",
    "SessionLostError": _HTTP_ERRORS,
    "StartError": _ERRORS,
    "TemplateListing": "mcp_client.client",
    "TemplateReference": "mcp_client.protocol.surfaces.completion",
    "TextField": "mcp_client.protocol.peer.forms",
    "TextFormat": "mcp_client.protocol.peer.forms",
    "Ticket": "mcp_client.ports",
    "Tool": "mcp_client.protocol.surfaces.tools",
    "ToolListing": "mcp_client.client",
    "ToolResult": "mcp_client.protocol.surfaces.results",
    "Transport": "mcp_client.ports",
    "UNGUARDED": "mcp_client.ports",
    "UnsupportedVersionError": _ERRORS,
    "UrlElicitation": "mcp_client.protocol.peer.elicitation",
    "UrlElicitationRequiredError": "mcp_client.protocol.peer.elicitation",
    "WebAddress": "mcp_client.protocol.urls",
    "connect": "mcp_client.client",
    "expand_template": "mcp_client.protocol.surfaces.templates",
    "harden_process": "mcp_client.transports.stdio",
    "match_template": "mcp_client.protocol.surfaces.templates",
    "open_host": "mcp_client.client",
    "template_variables": "mcp_client.protocol.surfaces.templates",
    "LoadedSkill": "mcp_client.client",
    "SkillListing": "mcp_client.client",
    "Standing": "mcp_client.client",
    "keep_connected": "mcp_client.client",
    "ResponseCache": "mcp_client.protocol.modern.caching",
    "Dialect": "mcp_client.protocol.dialect",
    "Era": "mcp_client.protocol.eras",
    "EraMemory": "mcp_client.protocol.eras",
    "Opening": "mcp_client.protocol.eras",
    "Owner": "mcp_client.protocol.owners",
    "HeaderMismatchError": "mcp_client.protocol.modern.errors",
    "InputRefusedError": "mcp_client.protocol.modern.errors",
    "MissingCapabilityError": "mcp_client.protocol.modern.errors",
    "ModernServerError": "mcp_client.protocol.modern.errors",
    "SkillFault": "mcp_client.protocol.modern.errors",
    "SkillVerificationError": "mcp_client.protocol.modern.errors",
    "TaskCancelledError": "mcp_client.protocol.modern.errors",
    "UndeclaredInputError": "mcp_client.protocol.modern.errors",
    "VersionRefusedError": "mcp_client.protocol.modern.errors",
    "ModernLimits": "mcp_client.protocol.modern.limits",
    "InputKind": "mcp_client.protocol.modern.mrtr",
    "InputRequest": "mcp_client.protocol.modern.mrtr",
    "InputRequired": "mcp_client.protocol.modern.mrtr",
    "InputRequiredError": "mcp_client.protocol.modern.mrtr",
    "Skill": "mcp_client.protocol.surfaces.skills",
    "SkillFile": "mcp_client.protocol.surfaces.skills",
    "Task": "mcp_client.protocol.surfaces.tasks",
    "TaskCreatedError": "mcp_client.protocol.surfaces.tasks",
    "TaskShape": "mcp_client.protocol.surfaces.tasks",
    "TaskStatus": "mcp_client.protocol.surfaces.tasks",
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
