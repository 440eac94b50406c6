"""The frozen view: found by exact names, told by a digest, shared by all agents of one grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import FrozenInstanceError, is_dataclass, replace
from hashlib import sha256
from importlib import import_module

import pytest

from orchestrator.authority.admission import Grant
from orchestrator.authority.ceilings import Pin
from orchestrator.authority.ledger import CellKind
from orchestrator.authority.snapshot import TableDiff
from orchestrator.core.capability import CapabilityRef
from orchestrator.core.errors import DenyReason
from policies import Effect, Principal
from tests.orchestrator.authority.admitting import OPEN, Shop, found, names


def test_a_capability_is_found_by_its_exact_server_and_name() -> None:
    table = Shop().table()

    assert table.find("git", "log") is not None
    for server, name in (("git", "LOG"), ("Git", "log"), ("git", "lo"), ("", "log"), ("git", "")):
        assert table.find(server, name) is None


def test_what_no_call_can_change_is_known_before_one_is_made() -> None:
    text = (
        'policy p v1 { permit "all" call on git/* permit "read" call on files/* when arg(/n) > 1 }'
    )
    table = Shop().table(text)
    log, read = found(table, "git", "log"), found(table, "files", "read")

    assert log.constant is not None
    assert log.constant.effect is Effect.PERMIT
    assert read.constant is None
    assert replace(log, pins=(Pin(tool="git/*", pointer="/x", value=1),)).constant is None


def test_two_servers_may_have_a_tool_of_the_same_name() -> None:
    table = Shop(names=(("a", "read"), ("b", "read"))).table(
        'policy p v1 { permit "a" call on a/read }'
    )

    assert names(table) == ["a/read"]


def test_the_models_are_shown_what_the_table_holds_and_no_more() -> None:
    table = Shop().table(grant=Grant(("git/*",)))

    assert [spec.model_name for spec in table.specs] == ["mcp_git_log", "mcp_git_push"]
    assert len(table) == 2


@pytest.mark.requirement("I7")
def test_the_same_offers_policy_and_role_have_the_same_digest_in_any_order() -> None:
    shop = Shop()
    backwards = shop.table(offers=list(reversed(shop.offers())))

    assert shop.table().digest == backwards.digest == Shop().table().digest


@pytest.mark.parametrize(
    "other",
    [
        Shop(digest="d2").table(),
        Shop(names=(("git", "log"), ("git", "push"))).table(),
        Shop().table(grant=Grant(("git/*",))),
        Shop().table(principal=Principal(role="another")),
        Shop().table(OPEN.replace('"all"', '"every"')),
        Shop().table('policy open v1 { ask "all" call on any server/* }'),
    ],
    ids=["definition", "offer", "grant", "role", "policy", "effect"],
)
def test_whatever_changes_what_may_be_reached_changes_the_digest(other: object) -> None:
    assert Shop().table().digest != getattr(other, "digest", "")


def test_the_digest_does_not_depend_on_which_agent_holds_it() -> None:
    shop = Shop()
    table = shop.table()

    assert shop.snapshot(table, "a").digest == shop.snapshot(table, "b").digest == table.digest


def test_a_thousand_snapshots_share_one_table() -> None:
    shop = Shop()
    table = shop.table()

    snapshots = [shop.snapshot(table, f"a{number}") for number in range(1_000)]

    assert all(snapshot.table is table for snapshot in snapshots)


@pytest.mark.requirement("I7")
def test_a_snapshot_cannot_be_changed() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())

    with pytest.raises(FrozenInstanceError):
        snapshot.table = Shop().table()  # type: ignore[misc]


def test_nothing_is_lost_from_a_new_snapshot() -> None:
    shop = Shop()

    assert shop.snapshot(shop.table()).changes() == ()


def test_a_dead_definition_is_lost_alone() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.tools["git", "log"], DenyReason.DEFINITION_CHANGED)

    assert [(str(lost.ref), lost.reason) for lost in snapshot.changes()] == [
        ("git/log", DenyReason.DEFINITION_CHANGED)
    ]


def test_with_a_dead_server_all_its_capabilities_are_lost_and_no_other() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.servers["git"], DenyReason.SERVER_REMOVED)

    assert [(str(lost.ref), lost.reason) for lost in snapshot.changes()] == [
        ("git/log", DenyReason.SERVER_REMOVED),
        ("git/push", DenyReason.SERVER_REMOVED),
    ]


def test_with_a_dead_agent_everything_is_lost_for_its_cause() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(snapshot.cell, DenyReason.AGENT_CANCELLED)

    assert {lost.reason for lost in snapshot.changes()} == {DenyReason.AGENT_CANCELLED}
    assert len(snapshot.changes()) == len(snapshot.refs) == 3


@pytest.mark.parametrize("cause", ["login", "definition", "server"])
def test_each_thing_that_a_capability_depends_on_is_told_as_what_it_was_lost_by(cause: str) -> None:
    shop = Shop(names=[("git", "log")])
    # none stands under another, so that each has to be looked at by itself
    cells = {
        "login": shop.ledger.open(CellKind.LOGIN, "git"),
        "definition": shop.ledger.open(CellKind.DEFINITION, "git/log"),
        "server": shop.ledger.open(CellKind.SERVER, "git"),
    }
    (offer,) = shop.offers()
    offer = replace(offer, login=cells["login"], target=cells["definition"], link=cells["server"])
    snapshot = shop.snapshot(shop.table(offers=[offer]))
    assert snapshot.changes() == ()

    shop.ledger.revoke(cells[cause], DenyReason.LOGGED_OUT)

    assert [(str(lost.ref), lost.reason) for lost in snapshot.changes()] == [
        ("git/log", DenyReason.LOGGED_OUT)
    ]


def test_what_was_lost_is_still_named_among_what_was_admitted() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.servers["git"], DenyReason.SERVER_REMOVED)

    assert [str(ref) for ref in snapshot.refs] == ["git/log", "git/push", "files/read"]


@pytest.mark.parametrize(
    ("effects", "granted", "visible"),
    [
        ("permit", True, True),
        ("ask", True, True),
        ("forbid", True, False),
        ("permit", False, False),
    ],
)
def test_a_row_is_visible_if_it_is_granted_and_some_call_could_be_made(
    effects: str, granted: bool, visible: bool
) -> None:
    table = Shop().table(f'policy p v1 {{ {effects} "r" call on any server/* }}')
    row = replace(table.rows[0], granted=granted)

    assert row.visible is visible


# ------------------------------------------------------------------------ told, narrowed, compared


def test_what_was_lost_is_told_with_what_it_means_and_how_to_get_it_back() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.servers["files"], DenyReason.SERVER_DISABLED)

    (lost,) = snapshot.changes()

    assert (str(lost.ref), lost.reason) == ("files/read", DenyReason.SERVER_DISABLED)
    assert "enable the server" in str(lost)


def test_what_happens_at_one_server_takes_nothing_of_another() -> None:
    shop = Shop()
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.tools["git", "push"], DenyReason.DEFINITION_CHANGED)

    assert [str(item.ref) for item in snapshot.changes()] == ["git/push"]


@pytest.mark.parametrize("where", ["added", "removed", "changed"])
def test_a_difference_of_either_kind_is_one(where: str) -> None:
    (ref, *_) = Shop().snapshot(Shop().table()).refs
    none = TableDiff(added=(), removed=(), changed=())

    assert not none
    assert replace(none, **{where: (ref,)})


@pytest.mark.requirement("I6")
def test_an_attenuated_table_has_what_is_kept_and_nothing_else() -> None:
    whole = Shop().table()

    less = whole.attenuate(lambda ref: ref.server == "git")

    assert names(less) == ["git/log", "git/push"]
    assert less.digest != whole.digest
    assert [row.visible for row in less.rows] == [True, True, False]
    assert names(less.attenuate(lambda _: True)) == names(less)


def test_a_table_differs_from_an_earlier_one_by_name_definition_and_effects() -> None:
    shop = Shop()
    before = shop.table()
    changed = Shop(digest="d2").table()
    asked = shop.table('policy p v1 { permit "a" call on git/* ask "b" call on git/push }')

    assert not before.diff(shop.table())
    assert names_of(changed.diff(before).changed) == ["git/log", "git/push", "files/read"]
    diff = asked.diff(before)
    assert (names_of(diff.removed), names_of(diff.changed)) == (["files/read"], ["git/push"])
    assert names_of(before.diff(asked).added) == ["files/read"]


def test_the_digest_is_over_the_canonical_bytes_whatever_the_order() -> None:
    shop = Shop()
    turned = shop.table(offers=list(reversed(shop.offers())))

    assert shop.table().canonical() == turned.canonical()
    assert shop.table().canonical().isascii()
    assert shop.table().digest == sha256(turned.canonical()).hexdigest()


def test_a_person_sees_what_lives_and_what_does_not_and_no_hidden_character() -> None:
    shop = Shop(names=(("git", "log"), ("git", "pu\u202esh")))
    snapshot = shop.snapshot(shop.table())
    shop.ledger.revoke(shop.tools["git", "log"], DenyReason.DEFINITION_CHANGED)

    first, second = snapshot.lines()

    assert first.startswith("git/log  permit")
    assert first.endswith("lost: definition_changed")
    assert "<U+202E>" in second
    assert second.endswith("in force")


def test_a_person_sees_the_effects_that_are_possible_and_the_rule_where_one_decides() -> None:
    text = """policy p v1 {
      permit "log" call on git/log
      permit "some" call on git/push when arg(/n) > 1
      ask "more" call on git/push when arg(/n) > 9
    }"""
    shop = Shop()

    log, push = shop.snapshot(shop.table(text)).lines()

    assert log == 'git/log  permit  "log" (test.policy:2)  in force'
    assert push == "git/push  ask/forbid/permit  -  in force"


def names_of(refs: Iterable[CapabilityRef]) -> list[str]:
    return [str(ref) for ref in refs]


@pytest.mark.requirement("I7")
@pytest.mark.parametrize("module", ["admission", "ceilings", "ledger", "snapshot"])
def test_every_value_of_authority_is_frozen(module: str) -> None:
    found = [
        value
        for value in vars(import_module(f"orchestrator.authority.{module}")).values()
        if isinstance(value, type) and is_dataclass(value)
    ]

    assert found
    assert all(value.__dataclass_params__.frozen for value in found)  # type: ignore[attr-defined]
