"""Between a server that answers and tools that can be granted: shown, approved, pinned.

Shows nothing itself and starts nothing; whoever settles the questions is handed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from orchestrator.catalog.listing import ServerListing
from orchestrator.core.ports import AuditSink
from orchestrator.sessions.approvals import Item
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper

__all__ = ["Pinned", "admit_servers", "tell_nobody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The tools of a server that were pinned without a question, for somebody to print."""

    server: str
    tools: tuple[str, ...]


def tell_nobody(pinned: Pinned) -> None:
    """Print nothing."""


async def admit_servers(
    session: ParentSession,
    entries: Sequence[ServerEntry],
    *,
    pins: PinKeeper,
    settle: Callable[[Sequence[Item]], Awaitable[None]],
    audit: AuditSink,
    on_pinned: Callable[[Pinned], None] = tell_nobody,
    keep_pins: bool = True,
) -> None:
    """Have every listing that was not shown before shown, and let its tools be granted.

    `settle` returns once all items are approved. With `keep_pins` False what was shown now is not
    remembered. Raises what `settle` raises; then nothing was admitted.
    """
    seen: list[tuple[ServerEntry, ServerListing]] = []
    for entry in entries:
        listing = session.servers[entry.name].listing
        if listing is not None:
            seen.append((entry, listing))
    questions = [pins.question(entry, listing) for entry, listing in seen]
    await settle([item for item in questions if item is not None])
    for (entry, listing), question in zip(seen, questions, strict=True):
        if question is None and not pins.report(entry, listing).clean:
            _record(entry, listing, audit)
            on_pinned(Pinned(server=entry.name, tools=tuple(tool.name for tool in listing.tools)))
        session.admit(listing)
    if keep_pins:
        pins.pin(seen)


def _record(entry: ServerEntry, listing: ServerListing, audit: AuditSink) -> None:
    for tool in listing.tools:
        audit.append(
            "definition_pinned",
            {"server": entry.name, "tool": tool.name, "definition": tool.digest},
        )
