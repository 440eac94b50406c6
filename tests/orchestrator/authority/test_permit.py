"""Permits and the guards of the parent: leave that ends with its cells, its time, its one use."""

from __future__ import annotations

import pytest

from mcp_client.ports import ResumableGuard, SendGuard
from orchestrator.authority._mint import Permit, Stamp
from orchestrator.authority.guards import CancelGuard, SessionGuard
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.authority.standing import Standing
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason
from orchestrator.core.ids import CallId
from policies import Label

SECRET = Label("secret", "files")


class World:
    """One agent, one server with one tool, one policy, and a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 0.0
        self.ledger = Ledger(thread=lambda: 1)
        self.session = self.ledger.open(CellKind.SESSION, "s")
        self.agent = self.ledger.open(CellKind.AGENT, "a", under=self.session)
        self.server = self.ledger.open(CellKind.SERVER, "git", under=self.session)
        self.tool = self.ledger.open(CellKind.DEFINITION, "git/log", under=self.server)
        self.policy = self.ledger.open(CellKind.POLICY, "policy")

    def permit(self, standing: Standing | None = None) -> Permit:
        stamp = Stamp(agent=self.agent, target=self.tool, link=self.server, policy=self.policy)
        return Permit(
            call=CallId("c1"),
            stamp=stamp,
            deadline=10.0,
            now=lambda: self.time,
            standing=standing,
        )


def refusal(guard: SendGuard) -> AuthorityError:
    with pytest.raises(AuthorityError) as caught:
        guard.check()
    return caught.value


def test_a_permit_may_be_checked_any_number_of_times_before_it_is_spent() -> None:
    permit = World().permit()

    for _ in range(3):
        permit.check()

    assert not permit.spent


def test_a_permit_is_leave_to_send_once() -> None:
    permit = World().permit()
    permit.sent()

    assert refusal(permit).reason is DenyReason.PERMIT_SPENT


@pytest.mark.requirement("I20")
def test_what_an_agent_reads_ends_the_permits_that_were_decided_before_it() -> None:
    standing = Standing()
    before, begun = World().permit(standing), World().permit(standing)
    begun.sent()
    standing.add([SECRET])

    assert refusal(before).reason is DenyReason.LABEL_RAISED
    assert before.lapsed() is None
    # an answer to what went out before may come, and its rest be asked for
    assert begun.lapsed() is None
    begun.resumed().check()


@pytest.mark.requirement("I20")
def test_a_label_that_clings_already_or_is_taken_off_ends_no_permit() -> None:
    standing = Standing(labels=[SECRET])
    permit = World().permit(standing)

    standing.add([SECRET])
    permit.check()
    standing.declassify([SECRET])
    permit.check()


@pytest.mark.requirement("I15")
def test_leave_to_ask_for_the_rest_of_an_answer_is_a_permit_of_its_own() -> None:
    world = World()
    permit = world.permit()
    permit.sent()
    rest = permit.resumed()

    rest.check()
    rest.sent()

    assert refusal(rest).reason is DenyReason.PERMIT_SPENT
    assert isinstance(permit, ResumableGuard)


@pytest.mark.requirement("I15")
def test_what_was_taken_back_since_refuses_it() -> None:
    world = World()
    permit = world.permit()
    permit.sent()
    world.ledger.revoke(world.agent, DenyReason.AGENT_CANCELLED)

    assert refusal(permit.resumed()).reason is DenyReason.AGENT_CANCELLED


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("agent", DenyReason.AGENT_CANCELLED),
        ("session", DenyReason.SESSION_CLOSED),
        ("server", DenyReason.SERVER_REMOVED),
        ("server", DenyReason.LOGGED_OUT),
        ("tool", DenyReason.DEFINITION_CHANGED),
    ],
)
def test_a_permit_ends_with_each_cell_that_it_depends_on(cell: str, cause: DenyReason) -> None:
    world = World()
    permit = world.permit()
    target: Cell = getattr(world, cell)

    world.ledger.revoke(target, cause)

    error = refusal(permit)
    assert error.reason is cause
    assert (error.delivery, error.bytes_sent) == (Delivery.NOT_SENT, 0)


@pytest.mark.parametrize("cell", ["policy", "server"])
def test_a_permit_ends_when_its_policy_or_its_connection_moves_on(cell: str) -> None:
    world = World()
    permit = world.permit()

    world.ledger.void(getattr(world, cell), DenyReason.POLICY_CHANGED)

    assert refusal(permit).reason is DenyReason.POLICY_CHANGED
    world.permit().check()


@pytest.mark.parametrize("moved", ["link", "login"])
def test_where_a_server_has_a_login_the_permit_ends_when_either_moves_on(moved: str) -> None:
    world = World()
    cells = {
        "login": world.ledger.open(CellKind.LOGIN, "git", under=world.session),
        "link": world.server,
    }
    stamp = Stamp(agent=world.agent, target=world.tool, policy=world.policy, **cells)
    permit = Permit(call=CallId("c1"), stamp=stamp, deadline=10.0, now=lambda: 0.0)
    permit.check()

    world.ledger.void(cells[moved], DenyReason.SCOPE_CHANGED)

    assert refusal(permit).reason is DenyReason.SCOPE_CHANGED


def test_a_permit_ends_one_instant_past_its_deadline() -> None:
    world = World()
    permit = world.permit()
    world.time = 10.0
    permit.check()

    world.time = 10.001

    assert refusal(permit).reason is DenyReason.DEADLINE_PASSED


def test_a_refusal_can_not_be_taken_for_a_connection_error() -> None:
    assert not issubclass(AuthorityError, OSError)


@pytest.mark.parametrize("guard", [SessionGuard, CancelGuard])
@pytest.mark.parametrize("cell", ["session", "server"])
def test_the_leave_of_the_parent_ends_with_the_session_and_with_the_server(
    guard: type[SessionGuard], cell: str
) -> None:
    world = World()
    leave = guard(session=world.session, server=world.server)
    leave.check()

    world.ledger.revoke(getattr(world, cell), DenyReason.LOGGED_OUT)

    assert refusal(leave).reason is DenyReason.LOGGED_OUT


def test_a_cancellation_may_still_go_out_after_the_agent_lost_its_authority() -> None:
    world = World()
    leave = CancelGuard(session=world.session, server=world.server)

    world.ledger.revoke(world.agent, DenyReason.AGENT_CANCELLED)

    leave.check()
