"""The client's front: connect to one server and use what it offers; no permission is decided here."""

from __future__ import annotations

from mcp_client.client.client import Client
from mcp_client.client.connecting import connect, open_host
from mcp_client.client.http_source import HttpKind, HttpSpec
from mcp_client.client.keeping import keep_connected
from mcp_client.client.prompts import PromptListing
from mcp_client.client.resources import ResourceListing, TemplateListing
from mcp_client.client.skills import LoadedSkill, SkillListing
from mcp_client.client.spec import Host, ServerSource, ServerSpec
from mcp_client.client.standing import Standing
from mcp_client.client.tools import ToolListing
from mcp_client.ports import Handlers

__all__ = [
    "Client",
    "Handlers",
    "Host",
    "HttpKind",
    "HttpSpec",
    "LoadedSkill",
    "PromptListing",
    "ResourceListing",
    "ServerSource",
    "ServerSpec",
    "SkillListing",
    "Standing",
    "TemplateListing",
    "ToolListing",
    "connect",
    "keep_connected",
    "open_host",
]
