"""What a person was shown of a server, word for word, for showing what has changed. Decides nothing.

Pins are digests; these are the texts behind them. Without one a change is shown whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.catalog.listing import ServerListing
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.state import make_folder, read_own, refuse_shared, replace_json

__all__ = ["ShownTexts", "TextStore"]

_FILE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Room for all definitions of one server, escaped."""
_CONFIGURATION: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTexts:
    """The definitions and the instructions of one server as they were approved; all of it untrusted.

    `definitions` are objects by tool name, as the server had sent them.
    """

    server: str
    instructions: str
    definitions: Mapping[str, Mapping[str, object]] = field(hash=False)

    @classmethod
    def of(cls, listing: ServerListing) -> ShownTexts:
        """Return what a listing shows."""
        return cls(
            server=listing.server,
            instructions=listing.instructions,
            definitions={tool.name: tool.definition for tool in listing.tools},
        )


class TextStore:
    """A folder with one file for each server configuration, for its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, configuration: str) -> ShownTexts | None:
        """Return what was shown; None where nothing was kept, or what is there cannot be read.

        What is shown to compare decides nothing: the digests do.
        """
        path = self._path(configuration)
        try:
            document = read_own(path, bytes_max=_FILE_BYTES_MAX)
            if document is None:
                return None
            root = document.table()
            tools = root.table("tools")
            return ShownTexts(
                server=root.text("server"),
                instructions=root.text("instructions"),
                definitions={name: _definition(tools.text(name), path) for name in tools},
            )
        except ConfigError:
            return None

    def keep(self, configuration: str, texts: ShownTexts) -> None:
        """Replace what is kept of a configuration. Raises ConfigError if it cannot be written."""
        make_folder(self._folder)
        refuse_shared(self._folder)
        # as texts: a definition may hold numbers that a file of ours may not
        tools = {name: json.dumps(value) for name, value in texts.definitions.items()}
        replace_json(
            self._path(configuration),
            {"server": texts.server, "instructions": texts.instructions, "tools": tools},
        )

    def forget(self, configuration: str) -> None:
        """Remove what is kept of a configuration. Raises ConfigError if it cannot be removed."""
        path = self._path(configuration)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot remove {path}: {error.strerror}", code="E-STATE-IO"
            ) from error

    def prune(self, known: Callable[[str], bool]) -> None:
        """Remove what is kept of configurations that are not known any more."""
        for path in self._folder.glob("*.json"):
            if not known(path.stem):
                self.forget(path.stem)

    def _path(self, configuration: str) -> Path:
        if not _CONFIGURATION.fullmatch(configuration):
            raise ConfigError("not the digest of a configuration", code="E-STATE-IO")
        return self._folder / f"{configuration}.json"


def _definition(text: str, path: Path) -> Mapping[str, object]:
    return dict(read_json(text, str(path)).root)
