"""Resources, templates and prompts as servers list them: our own frozen values. Believes none of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.core.calls import PromptSpec, ResourceSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import ServerName

__all__ = ["CatalogPrompt", "CatalogResource", "ServerData"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogResource:
    """A resource by its URI, or a template of resources. `digest` is over its definition."""

    server: ServerName
    uri: str
    name: str = field(compare=False)
    digest: str
    description: str = field(default="", compare=False)
    mime_type: str = field(default="", compare=False)
    is_template: bool = False

    @property
    def ref(self) -> CapabilityRef:
        """Its identity, for snapshots and the ledger."""
        kind = CapabilityKind.RESOURCE_TEMPLATE if self.is_template else CapabilityKind.RESOURCE
        return CapabilityRef(self.server, kind, self.uri, self.digest)

    @property
    def spec(self) -> ResourceSpec:
        """What an agent is shown of it."""
        return ResourceSpec(
            server=self.server,
            uri=self.uri,
            name=self.name,
            description=self.description,
            mime_type=self.mime_type,
            is_template=self.is_template,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPrompt:
    """A prompt by its exact name. `arguments` says of each whether it is required."""

    server: ServerName
    name: str
    digest: str
    description: str = field(default="", compare=False)
    arguments: Mapping[str, bool] = field(default_factory=dict[str, bool], compare=False)

    @property
    def ref(self) -> CapabilityRef:
        """Its identity, for snapshots and the ledger."""
        return CapabilityRef(self.server, CapabilityKind.PROMPT, self.name, self.digest)

    @property
    def spec(self) -> PromptSpec:
        """What an agent is shown of it."""
        return PromptSpec(
            server=self.server,
            name=self.name,
            description=self.description,
            arguments=self.arguments,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerData:
    """What one server listed beside its tools. `completions` says whether it completes arguments."""

    resources: tuple[CatalogResource, ...] = ()
    prompts: tuple[CatalogPrompt, ...] = ()
    completions: bool = False

    @property
    def refs(self) -> tuple[CapabilityRef, ...]:
        """The identities of all of it."""
        return (*(item.ref for item in self.resources), *(item.ref for item in self.prompts))
