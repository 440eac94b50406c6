"""What a person was shown of each server, kept between runs. A server offers nothing before that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.catalog.listing import ServerListing
from orchestrator.catalog.pins import (
    PinReport,
    PinSet,
    ServerPins,
    compare,
    listing_digest,
    render_listing,
)
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.entries import DescriptionTrust, ServerEntry
from orchestrator.sessions.shown_texts import ShownTexts, TextStore
from orchestrator.sessions.state import read_own, replace_json

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
        self._texts = TextStore(path.with_name("pins"))
        self._limits = limits
        self._pins = self._read()

    def known_tools(self, entry: ServerEntry) -> frozenset[str] | None:
        """Return the names that were shown of this very configuration; None if none ever were."""
        pins = self._pins.of(entry.digest)
        return frozenset(pins.tools) if pins is not None else None

    def pinned(self, entry: ServerEntry) -> ServerPins | None:
        """Return what was approved of this very configuration; None if nothing ever was."""
        return self._pins.of(entry.digest)

    def texts(self, entry: ServerEntry) -> ShownTexts | None:
        """Return the words that were approved with it; None where they were not kept."""
        return self._texts.load(entry.digest)

    def forget(self, entry: ServerEntry) -> int:
        """Take back what was approved of this configuration; return of how many tools.

        Raises ConfigError if that cannot be kept.
        """
        found = self._pins.of(entry.digest)
        if found is None:
            return 0
        pins = self._pins.without(entry.digest)
        replace_json(self._path, pins.to_json())
        self._pins = pins
        self._texts.forget(entry.digest)
        return len(found.tools)

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
            description_lines=self._lines(entry, listing, report),
        )

    def _lines(
        self, entry: ServerEntry, listing: ServerListing, report: PinReport
    ) -> tuple[str, ...]:
        shown = self._texts.load(entry.digest)
        if shown is None:
            return render_listing(listing, report)
        return render_listing(
            listing,
            report,
            before=shown.definitions,
            instructions_before=shown.instructions,
        )

    def pin(self, seen: Sequence[tuple[ServerEntry, ServerListing]]) -> None:
        """Keep these listings as what a person has seen. Raises ConfigError if it cannot."""
        pins = self._pins
        for entry, listing in seen:
            if not self.report(entry, listing).clean or pins.of(entry.digest) is None:
                pins = pins.with_listing(entry.digest, listing, limits=self._limits)
                self._texts.keep(entry.digest, ShownTexts.of(listing))
        if pins is not self._pins:
            replace_json(self._path, pins.to_json())
            self._pins = pins
            self._texts.prune(lambda configuration: pins.of(configuration) is not None)

    def _read(self) -> PinSet:
        document = read_own(self._path, bytes_max=_FILE_BYTES_MAX)
        return PinSet() if document is None else PinSet.from_json(document)
