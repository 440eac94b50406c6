"""What a person was shown of each server, kept between runs. A server offers nothing before that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.catalog.listing import ServerListing
from orchestrator.catalog.pins import PinReport, PinSet, compare, listing_digest, render_listing
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.entries import DescriptionTrust, ServerEntry
from orchestrator.sessions.state import refuse_shared, replace_json

__all__ = ["PinKeeper", "tools_name"]

_FILE_BYTES_MAX = 64 * 1024 * 1024
"""Room for the largest catalogues of all configurations that are kept."""


def tools_name(entry: ServerEntry) -> str:
    """Return the name by which what a server says of its tools is approved."""
    return f"{entry.name}.tools"


class PinKeeper:
    """pins.json, and the question that each listing puts to a person."""

    def __init__(self, path: Path, *, limits: OrchestratorLimits) -> None:
        self._path = path
        self._limits = limits
        self._pins = self._read()

    def known_tools(self, entry: ServerEntry) -> frozenset[str] | None:
        """Return the names that were shown of this very configuration; None if none ever were."""
        pins = self._pins.of(entry.digest)
        return frozenset(pins.tools) if pins is not None else None

    def report(self, entry: ServerEntry, listing: ServerListing) -> PinReport:
        """Return how a listing stands to what was shown before."""
        return compare(self._pins.of(entry.digest), listing)

    def question(self, entry: ServerEntry, listing: ServerListing) -> Item | None:
        """Return what a person must see before the server's tools may be granted; None if nothing.

        Where the descriptions of a server are trusted on first use, only what has changed since
        is a question.
        """
        report = self.report(entry, listing)
        first = self._pins.of(entry.digest) is None
        trusted = entry.description_trust is DescriptionTrust.FIRST_USE
        if report.clean or (first and trusted):
            return None
        return Item(
            name=tools_name(entry),
            kind=ItemKind.TOOLS,
            digest=listing_digest(listing),
            origin=Origin.PROJECT,  # whoever configured the server, its texts are a stranger's
            description_lines=render_listing(listing, report),
        )

    def pin(self, seen: Sequence[tuple[ServerEntry, ServerListing]]) -> None:
        """Keep these listings as what a person has seen. Raises ConfigError if it cannot."""
        pins = self._pins
        for entry, listing in seen:
            if not self.report(entry, listing).clean or pins.of(entry.digest) is None:
                pins = pins.with_listing(entry.digest, listing, limits=self._limits)
        if pins is not self._pins:
            replace_json(self._path, pins.to_json())
            self._pins = pins

    def _read(self) -> PinSet:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return PinSet()
        except OSError as error:
            raise ConfigError(
                f"cannot read {self._path}: {error.strerror}",
                code="E-STATE-IO",
                where=Where(str(self._path)),
            ) from error
        refuse_shared(self._path)
        return PinSet.from_json(read_json(content, str(self._path), bytes_max=_FILE_BYTES_MAX))
