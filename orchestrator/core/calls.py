"""A call as an agent wishes it, and what may be called as it is shown. Knows no model and no client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from orchestrator.core.capability import CapabilityKind

__all__ = [
    "Call", "CallMethod", "ProgressListener", "PromptSpec", "ResourceSpec", "Spec", "ToolSpec",
]  # fmt: skip

ProgressListener: TypeAlias = "Callable[[float, float | None], None]"
"""Is told how far a call has come, and of how much if the server says so, in the server's own measure;
must not block and must not raise."""


class CallMethod(Enum):
    """What a call asks of a server, by MCP's own name of the request."""

    TOOL = "tools/call"
    READ = "resources/read"
    PROMPT = "prompts/get"
    COMPLETE = "completion/complete"


@dataclass(frozen=True, slots=True)
class Call:
    """What an agent wants to call: a server's label, a tool's name, its arguments.

    `id` is the model's own name for the call, where it has one. Resources, prompts and completions
    are asked for by `Call.read`, `Call.prompt` and `Call.completion`: they go the same road. With
    `progress` the server is asked to tell how far it has come (MCP, progress); the time that the call
    has stays what it is.
    """

    server: str
    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str = ""
    method: CallMethod = CallMethod.TOOL
    kind: CapabilityKind = CapabilityKind.TOOL
    progress: ProgressListener | None = field(default=None, compare=False, repr=False)

    @classmethod
    def read(cls, server: str, uri: str) -> Call:
        """Read one resource: one that the server lists, or that a template of it can mean."""
        return cls(server, uri, {"uri": uri}, "", CallMethod.READ, CapabilityKind.RESOURCE)

    @classmethod
    def prompt(cls, server: str, name: str, arguments: Mapping[str, str] | None = None) -> Call:
        """Get one prompt by its exact name. Its arguments are texts."""
        return cls(
            server, name, dict(arguments or {}), "", CallMethod.PROMPT, CapabilityKind.PROMPT
        )

    @classmethod
    def completion(
        cls,
        server: str,
        name: str,
        *,
        argument: str,
        value: str,
        kind: CapabilityKind = CapabilityKind.PROMPT,
        context: Mapping[str, str] | None = None,
    ) -> Call:
        """Ask for values of one argument of a prompt, or of one variable of a resource template.

        `name` is the prompt's name or the template, by `kind`; `context` holds what is filled in
        already.
        """
        wanted = {"argument": argument, "value": value, "context": dict(context or {})}
        return cls(server, name, wanted, "", CallMethod.COMPLETE, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is shown it: the model-facing name and what it stands for.

    `description` and `input_schema` are a server's own, bounded, untrusted.
    """

    model_name: str
    server: str
    tool: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec:
    """A resource, or a template of resources, as an agent is shown it. All text is a server's own."""

    server: str
    uri: str
    name: str
    description: str
    mime_type: str = ""
    is_template: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSpec:
    """A prompt as an agent is shown it: its arguments, and which of them are required."""

    server: str
    name: str
    description: str
    arguments: Mapping[str, bool] = field(default_factory=dict[str, bool])


Spec = ToolSpec | ResourceSpec | PromptSpec
"""Anything that may be called, as it is shown."""
