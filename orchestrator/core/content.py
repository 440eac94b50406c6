"""Content that came from a server: untrusted, without authority, with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from orchestrator.core.display import safe_text
from orchestrator.core.ids import CallId, ServerName

__all__ = ["AUTHORITY", "TRUST", "Origin", "UntrustedContent"]

TRUST: Final = "untrusted_external"
"""How far content from a server is trusted; the word that models, audit and `--json` show."""

AUTHORITY: Final = "none"
"""What content from a server may permit."""


# Both are made for each result, and frozen, by keywords, they take three times as long to make:
# nothing stands or falls with them, so it is the type checker that keeps them as they are.
@dataclass(frozen=TYPE_CHECKING, slots=True)
class Origin:
    """Where content came from: the host's label of the server, the kind and name that was used."""

    server: ServerName
    kind: str
    name: str
    call: CallId


@dataclass(frozen=TYPE_CHECKING, slots=True)
class UntrustedContent:
    """A result, as its caller may have it. It can inform; it can never permit.

    `blocks` are the content blocks as decoded (`{"type": "text", "text": …}`), `structured` the
    structured content if the server sent any. `is_error` keeps a tool's failure a failure.
    """

    origin: Origin
    blocks: tuple[Mapping[str, object], ...]
    structured: object = None
    is_error: bool = False
    truncated: bool = False
    trust: ClassVar[str] = TRUST
    authority: ClassVar[str] = AUTHORITY

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines; other blocks are left out."""
        parts = (block.get("text") for block in self.blocks if block.get("type") == "text")
        return "\n".join(part for part in parts if isinstance(part, str))

    @property
    def shown(self) -> str:
        """The same for a terminal: nothing in it moves one, and what a reader cannot see is gone."""
        return safe_text(self.text)
