"""The gate: what it admits, under the generations of the decision, and what it refuses and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from orchestrator.authority.approval import Approval
from orchestrator.authority.gate import Gate, Permit, Stamp
from orchestrator.authority.ledger import CellKind
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason
from orchestrator.core.ids import CallId
from policies import Decision, Effect, Place, Reason
from tests.orchestrator.authority.admitting import Shop, found

PERMIT = Decision(effect=Effect.PERMIT)
ASK = Decision(effect=Effect.ASK)
DEFAULT_DENY = Decision(effect=Effect.FORBID)
FORBID = Decision(
    effect=Effect.FORBID,
    reasons=(Reason(rule="no", place=Place("p.policy", 3, 1), effect=Effect.FORBID),),
)
PARAMS = b'{"name":"read"}'


@dataclass
class World:
    """One agent with one snapshot, before one gate whose clock is moved by hand."""

    shop: Shop = field(default_factory=Shop)
    time: float = 0.0

    def __post_init__(self) -> None:
        self.gate = Gate(policy=self.shop.policy_cell, now=lambda: self.time)
        self.snapshot: CapabilitySnapshot = self.shop.snapshot(self.shop.table())
        self.log: Capability = found(self.snapshot.table, "git", "log")

    def stamp(self) -> Stamp:
        return self.gate.stamp(self.snapshot, self.log)

    def approval(self, stamp: Stamp, **other: object) -> Approval:
        fields: dict[str, object] = {
            "call": CallId("c1"),
            "agent_incarnation": stamp.agent.incarnation,
            "policy_generation": stamp.policy_generation,
            "definition_digest": self.log.ref.digest,
            "params": PARAMS,
            "expires": 10.0,
        }
        return Approval(**{**fields, **other})  # type: ignore[arg-type]

    def admit(
        self, stamp: Stamp, decision: Decision = PERMIT, approval: Approval | None = None
    ) -> Permit:
        return self.gate.admit(
            call=CallId("c1"),
            capability=self.log,
            stamp=stamp,
            decision=decision,
            approval=approval,
            params=PARAMS,
            deadline=100.0,
        )


def refused(act: Callable[[], object]) -> AuthorityError:
    with pytest.raises(AuthorityError) as caught:
        act()
    return caught.value


def test_a_permitted_call_gets_a_permit_for_exactly_that_call() -> None:
    world = World()

    permit = world.admit(world.stamp())

    assert permit.call == "c1"
    permit.check()


def test_each_admission_is_another_permit() -> None:
    world = World()
    first, second = world.admit(world.stamp()), world.admit(world.stamp())
    first.sent()

    second.check()


@pytest.mark.parametrize(
    ("decision", "reason", "rule"),
    [
        (FORBID, DenyReason.FORBIDDEN, '"no" (p.policy:3)'),
        (DEFAULT_DENY, DenyReason.NO_PERMIT, ""),
        (ASK, DenyReason.ASK_UNANSWERED, ""),
    ],
    ids=["forbid", "default", "ask"],
)
def test_what_is_not_permitted_gets_no_permit(
    decision: Decision, reason: DenyReason, rule: str
) -> None:
    world = World()

    error = refused(lambda: world.admit(world.stamp(), decision))

    assert (error.reason, error.rule) == (reason, rule)
    assert (error.delivery, error.bytes_sent) == (Delivery.NOT_SENT, 0)


@pytest.mark.parametrize("decision", [FORBID, DEFAULT_DENY], ids=["forbid", "default"])
def test_a_yes_of_a_person_does_not_help_against_a_forbid(decision: Decision) -> None:
    world = World()
    stamp = world.stamp()

    error = refused(lambda: world.admit(stamp, decision, world.approval(stamp)))

    assert error.reason in (DenyReason.FORBIDDEN, DenyReason.NO_PERMIT)


def kill_agent(world: World) -> None:
    world.shop.ledger.revoke(world.snapshot.cell, DenyReason.AGENT_CANCELLED)


def kill_tool(world: World) -> None:
    world.shop.ledger.revoke(world.log.target, DenyReason.DEFINITION_CHANGED)


def kill_server(world: World) -> None:
    world.shop.ledger.revoke(world.log.link, DenyReason.SERVER_REMOVED)


def kill_session(world: World) -> None:
    world.shop.ledger.revoke(world.shop.session, DenyReason.SESSION_CLOSED)


def change_policy(world: World) -> None:
    world.shop.ledger.void(world.shop.policy_cell, DenyReason.POLICY_CHANGED)


def reconnect(world: World) -> None:
    world.shop.ledger.void(world.log.link, DenyReason.SERVER_DISCONNECTED)


DEATHS = [
    (kill_agent, DenyReason.AGENT_CANCELLED),
    (kill_tool, DenyReason.DEFINITION_CHANGED),
    (kill_server, DenyReason.SERVER_REMOVED),
    (kill_session, DenyReason.SESSION_CLOSED),
]
MOVES = [
    (change_policy, DenyReason.POLICY_CHANGED),
    (reconnect, DenyReason.SERVER_DISCONNECTED),
]


@pytest.mark.requirement("S-27")
@pytest.mark.parametrize(("end", "reason"), DEATHS)
def test_no_stamp_is_made_of_what_is_dead(end: Callable[[World], None], reason: DenyReason) -> None:
    world = World()
    end(world)

    error = refused(world.stamp)

    assert error.reason is reason
    assert (error.delivery, error.bytes_sent) == (Delivery.NOT_SENT, 0)


@pytest.mark.requirement("S-27", "I1")
@pytest.mark.parametrize(("end", "reason"), DEATHS + MOVES)
def test_what_moves_between_decision_and_admission_voids_the_decision(
    end: Callable[[World], None], reason: DenyReason
) -> None:
    world = World()
    stamp = world.stamp()
    end(world)

    assert refused(lambda: world.admit(stamp)).reason is reason


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(("end", "reason"), DEATHS + MOVES)
def test_what_moves_after_admission_ends_the_permit(
    end: Callable[[World], None], reason: DenyReason
) -> None:
    world = World()
    permit = world.admit(world.stamp())
    end(world)

    assert refused(permit.check).reason is reason
    assert permit.lapsed() is reason


@pytest.mark.parametrize(("move", "_"), MOVES)
def test_after_a_mere_move_a_new_decision_is_admitted(
    move: Callable[[World], None], _: DenyReason
) -> None:
    world = World()
    move(world)

    world.admit(world.stamp()).check()


def test_another_agents_end_voids_nothing() -> None:
    world = World()
    other = world.shop.ledger.open(CellKind.AGENT, "other", under=world.shop.session)
    permit = world.admit(world.stamp())

    world.shop.ledger.revoke(other, DenyReason.AGENT_CANCELLED)
    world.shop.ledger.revoke(world.shop.servers["files"], DenyReason.SERVER_REMOVED)

    permit.check()


def test_a_permit_ends_with_its_deadline() -> None:
    world = World()
    permit = world.admit(world.stamp())
    world.time = 100.5

    assert refused(permit.check).reason is DenyReason.DEADLINE_PASSED


@pytest.mark.requirement("I19")
def test_a_fitting_approval_admits_an_asked_call() -> None:
    world = World()
    stamp = world.stamp()

    world.admit(stamp, ASK, world.approval(stamp)).check()


@pytest.mark.requirement("I19")
def test_an_approval_admits_once() -> None:
    world = World()
    stamp = world.stamp()
    approval = world.approval(stamp)
    world.admit(stamp, ASK, approval)

    assert refused(lambda: world.admit(stamp, ASK, approval)).reason is DenyReason.APPROVAL_USED


@pytest.mark.requirement("I19")
@pytest.mark.parametrize(
    "other",
    [
        {"call": CallId("c2")},
        {"agent_incarnation": 999},
        {"policy_generation": 999},
        {"definition_digest": "another"},
        {"params": b'{"name":"another"}'},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_approval_of_anything_else_is_stale(other: dict[str, object]) -> None:
    world = World()
    stamp = world.stamp()

    error = refused(lambda: world.admit(stamp, ASK, world.approval(stamp, **other)))

    assert error.reason is DenyReason.APPROVAL_STALE


@pytest.mark.requirement("I19")
def test_an_approval_that_was_not_used_in_time_admits_nothing() -> None:
    world = World()
    stamp = world.stamp()
    approval = world.approval(stamp)
    world.time = 10.5

    assert refused(lambda: world.admit(stamp, ASK, approval)).reason is DenyReason.APPROVAL_EXPIRED


def test_an_approval_holds_to_the_very_end_of_its_time() -> None:
    world = World()
    stamp = world.stamp()
    world.time = 10.0

    world.admit(stamp, ASK, world.approval(stamp))


@pytest.mark.requirement("I19")
def test_an_approval_that_did_not_fit_is_not_used_up() -> None:
    world = World()
    stamp = world.stamp()
    approval = world.approval(stamp)
    world.time = 11.0
    refused(lambda: world.admit(stamp, ASK, approval))
    world.time = 9.0

    world.admit(stamp, ASK, approval)


@pytest.mark.requirement("I19")
def test_an_approval_from_before_a_change_of_policy_does_not_fit_after_it() -> None:
    world = World()
    approval = world.approval(world.stamp())
    change_policy(world)
    stamp = world.stamp()

    error = refused(lambda: world.admit(stamp, ASK, approval))

    assert error.reason is DenyReason.APPROVAL_STALE
