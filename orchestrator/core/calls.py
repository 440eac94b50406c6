"""A call as a model wishes it, and a tool as a model is shown it. Knows no model and no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Call", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class Call:
    """What a model wants to call: a server's label, a tool's name, its arguments.

    `id` is the model's own name for the call, where it has one.
    """

    server: str
    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str = ""


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
