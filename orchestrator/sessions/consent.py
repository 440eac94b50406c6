"""Getting what needs a person's approval approved, or saying what is missing. Shows nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.sessions.approvals import (
    ApprovalBook,
    ApprovalState,
    ApprovalStore,
    Item,
    PendingApprovalError,
)

__all__ = ["Confirm", "settle"]

_CHANGED: Final = "CHANGED since it was approved"

Confirm = Callable[[Sequence[Item]], Awaitable[bool]]
"""Shows the items to a person and returns True only for a yes to all of them."""


async def settle(
    items: Sequence[Item],
    *,
    book: ApprovalBook,
    store: ApprovalStore,
    confirm: Confirm | None,
    at: float,
    by: str = "terminal",
) -> ApprovalBook:
    """Return a book in which all items are approved; what a person decided is kept in `store`.

    `by` says where they were asked.

    Raises PendingApprovalError if something is not approved and nobody can be asked, or the
    answer was no, or was no at an earlier time.
    """
    try:
        book.require(items)
    except PendingApprovalError as pending:
        waiting = [item for item, _ in pending.items]
        rejected = any(state is ApprovalState.REJECTED for _, state in pending.items)
        shown = [_marked(item, state) for item, state in pending.items]
        if confirm is None or rejected or not await confirm(shown):
            raise
        for item in waiting:
            book = book.decide(item, approved=True, at=at, by=by)
        store.save(book)
    return book


def _marked(item: Item, state: ApprovalState) -> Item:
    """Return an item that says of itself if a person said yes to another state of it."""
    if state is not ApprovalState.CHANGED:
        return item
    return replace(item, description_lines=(_CHANGED, *item.description_lines))
