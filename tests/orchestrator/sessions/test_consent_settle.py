"""Getting things approved: asked once, kept, never asked about again after a no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from orchestrator.sessions.approvals import (
    ApprovalBook,
    ApprovalState,
    ApprovalStore,
    Item,
    ItemKind,
    Origin,
    PendingApprovalError,
)
from orchestrator.sessions.consent import settle

SERVER = Item(name="git", kind=ItemKind.SERVER, digest="ab" * 32, origin=Origin.PROJECT)
RECIPE = Item(name="r.py", kind=ItemKind.RECIPE, digest="cd" * 32, origin=Origin.PROJECT)


@dataclass
class Person:
    """Somebody who is shown things and says yes or no; what was shown is kept."""

    answer: bool = True
    shown: list[Sequence[Item]] = field(default_factory=list[Sequence[Item]])

    async def confirm(self, items: Sequence[Item]) -> bool:
        self.shown.append(tuple(items))
        return self.answer


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals.json")


async def settled(
    store: ApprovalStore, items: Sequence[Item], person: Person | None, *flags: str
) -> ApprovalBook:
    return await settle(
        items,
        book=store.book(Path("/project"), flags),
        store=store,
        confirm=person.confirm if person else None,
        at=1.0,
    )


async def test_whoever_is_asked_again_is_told_that_it_changed(store: ApprovalStore) -> None:
    person = Person()
    await settled(store, [SERVER], person)

    await settled(store, [replace(SERVER, digest="ef" * 32), RECIPE], person)

    first = [item.description_lines for item in person.shown[0]]
    assert first == [()]
    again = [item.description_lines for item in person.shown[1]]
    assert again == [("CHANGED since it was approved",), ()]
    # what is kept is the item itself
    assert store.book(Path("/project"), ()).state(replace(SERVER, digest="ef" * 32)) is (
        ApprovalState.APPROVED
    )


async def test_what_needs_no_approval_is_not_asked_about(store: ApprovalStore) -> None:
    person = Person()

    await settled(store, [replace(SERVER, origin=Origin.BUILTIN)], person)
    await settled(store, [], person)

    assert person.shown == []


async def test_everything_that_waits_is_shown_at_once(store: ApprovalStore) -> None:
    person = Person()

    book = await settled(store, [SERVER, RECIPE], person)

    assert person.shown == [(SERVER, RECIPE)]
    assert book.state(SERVER) is book.state(RECIPE) is ApprovalState.APPROVED


async def test_a_yes_is_kept_for_the_next_run(store: ApprovalStore) -> None:
    await settled(store, [SERVER], Person())
    later = Person()

    await settled(store, [SERVER], later)
    await settled(store, [SERVER], None)

    assert later.shown == []


async def test_only_what_is_not_approved_yet_is_shown(store: ApprovalStore) -> None:
    await settled(store, [SERVER], Person())
    person = Person()

    await settled(store, [SERVER, RECIPE], person)

    assert person.shown == [(RECIPE,)]


async def test_a_no_raises_with_what_waits(store: ApprovalStore) -> None:
    with pytest.raises(PendingApprovalError) as caught:
        await settled(store, [SERVER, RECIPE], Person(answer=False))

    assert [item for item, _ in caught.value.items] == [SERVER, RECIPE]
    assert store.book(Path("/project")).state(SERVER) is ApprovalState.PENDING


async def test_where_nobody_can_be_asked_the_options_are_named(store: ApprovalStore) -> None:
    with pytest.raises(PendingApprovalError) as caught:
        await settled(store, [SERVER], None)

    assert caught.value.flags == (f"--approve git@{SERVER.digest}",)


async def test_an_option_approves_for_this_run_alone(store: ApprovalStore) -> None:
    await settled(store, [SERVER], None, f"git@{SERVER.digest}")

    with pytest.raises(PendingApprovalError):
        await settled(store, [SERVER], None)


async def test_what_was_rejected_is_not_asked_about_again(store: ApprovalStore) -> None:
    rejected = store.book(Path("/project")).decide(SERVER, approved=False, at=0.0, by="person")
    store.save(rejected)
    person = Person()

    with pytest.raises(PendingApprovalError) as caught:
        await settled(store, [SERVER], person)

    assert person.shown == []
    assert caught.value.items[0][1] is ApprovalState.REJECTED
