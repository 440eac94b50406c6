"""What the client says of itself: its name and what it may be asked. It keeps no state.

This is the one place for it: `initialize` sends it once, a version without `initialize` sends it
with each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp_client.protocol.versions import CLIENT_NAME, CLIENT_VERSION

__all__ = ["NOTHING_DECLARED", "ClientCapabilities", "client_info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCapabilities:
    """What a server may ask of this client: exactly what it has handlers for."""

    roots: bool = False
    sampling: bool = False
    sampling_tools: bool = False
    elicitation_form: bool = False
    elicitation_url: bool = False

    @property
    def elicitation(self) -> bool:
        """Whether a server may ask for input in any way."""
        return self.elicitation_form or self.elicitation_url

    def declared(self) -> Mapping[str, object]:
        """Return the `capabilities` of the client as the newest version has them."""
        members: dict[str, object] = {}
        if self.roots:
            members["roots"] = {"listChanged": True}
        if self.sampling:
            members["sampling"] = {"tools": {}} if self.sampling_tools else {}
        if self.elicitation:
            modes = {"form": self.elicitation_form, "url": self.elicitation_url}
            members["elicitation"] = {mode: {} for mode, has in modes.items() if has}
        return members

    def at(self, version: str) -> ClientCapabilities:
        """Return those that a version with `initialize` knows: no more was negotiated.

        Versions are dates, so they can be compared as texts.
        """
        return replace(
            self,
            sampling_tools=self.sampling_tools and version >= _TOOLS_IN_SAMPLING,
            elicitation_form=self.elicitation_form and version >= _FORMS,
            elicitation_url=self.elicitation_url and version >= _URLS,
        )


NOTHING_DECLARED: Final = ClientCapabilities()
"""A server may ask nothing but ping."""

_FORMS: Final = "2025-06-18"
_URLS: Final = "2025-11-25"
_TOOLS_IN_SAMPLING: Final = "2025-11-25"


def client_info() -> Mapping[str, object]:
    """Return what the client calls itself."""
    return {"name": CLIENT_NAME, "version": CLIENT_VERSION}
