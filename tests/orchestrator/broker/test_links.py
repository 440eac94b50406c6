"""The broker's connections: each serves one incarnation of a server, and no other's snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import anyio
import pytest

from mcp_client.client import Client, connect
from mcp_client.ports import UNGUARDED
from mcp_client.testing import ScriptedServer
from orchestrator.authority.ledger import Cell, CellKind
from orchestrator.authority.snapshot import Capability
from orchestrator.broker import AgentView, Broker, Link, OwnCells, WireObserver
from orchestrator.broker.wire import DROPPED_RECORDS_MAX
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Peer
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.authority.admitting import Shop
from tests.orchestrator.broker.stage import Shelf, calls_at, refusal, scripted, wish

FILES = ServerName("files")


@dataclass
class Wired:
    """A broker with two connections that have the same label: an old one, and its successor."""

    broker: Broker
    shop: Shop
    old: Link
    new: Link
    old_server: ScriptedServer
    new_server: ScriptedServer

    def view(self) -> AgentView:
        """Return the view of an agent that was admitted for the old connection."""
        snapshot = self.shop.snapshot(self.shop.table())
        return AgentView(
            agent=snapshot.agent, cell=snapshot.cell, snapshot=snapshot, road=self.broker.call
        )


async def aborted() -> None:
    """End nothing."""


@contextlib.asynccontextmanager
async def wired() -> AsyncGenerator[Wired]:
    shop, shelf, clock = Shop(names=(("files", "ok"),)), Shelf(), HandClock()
    broker = Broker(
        ledger=shop.ledger,
        policy=shop.table().policy,
        policy_cell=shop.policy_cell,
        ports=SessionPorts(
            clock=clock,
            ids=CountingIds(),
            approver=NobodyToAsk(),
            audit=shelf,
            telemetry=NO_TELEMETRY,
            emit=lambda _: None,
            digest_arguments=lambda data: f"{len(data)} bytes",
        ),
        limits=OrchestratorLimits(),
        builtins={},
    )
    servers = scripted("files"), scripted("files")
    with anyio.fail_after(30):
        async with (
            connect(servers[0], guard=UNGUARDED) as first,
            connect(servers[1], guard=UNGUARDED) as second,
        ):

            def link(client: Client, cell: Cell) -> Link:
                return Link(
                    server=FILES,
                    session=client.session,
                    cell=cell,
                    observer=WireObserver(
                        peer=Peer(server=FILES), audit=shelf, telemetry=NO_TELEMETRY
                    ),
                    cancel_guard=UNGUARDED,
                    seconds=5.0,
                    abort=aborted,
                    kill=lambda: None,
                    is_fresh=lambda: True,
                    catch_up=aborted,
                )

            successor = shop.ledger.open(CellKind.SERVER, "files", under=shop.session)
            yield Wired(
                broker=broker,
                shop=shop,
                old=link(first, shop.servers["files"]),
                new=link(second, successor),
                old_server=servers[0],
                new_server=servers[1],
            )


async def test_a_call_reaches_the_server_that_it_was_admitted_for() -> None:
    async with wired() as stage:
        stage.broker.attach(stage.old)

        assert (await stage.view().call(wish("files/ok"))).text == "ok"
        assert len(calls_at(stage.old_server)) == 1


@pytest.mark.requirement("I17", "I4")
async def test_an_old_snapshot_never_reaches_the_successor_of_its_server() -> None:
    async with wired() as stage:
        stage.broker.attach(stage.old)
        view = stage.view()
        stage.broker.detach(stage.old)
        stage.broker.attach(stage.new)

        error = await refusal(view, "files/ok")

        assert error.reason is DenyReason.SERVER_DISCONNECTED
        assert calls_at(stage.old_server) == calls_at(stage.new_server) == []


@pytest.mark.requirement("I17")
async def test_the_clean_up_of_an_old_connection_leaves_its_successor() -> None:
    async with wired() as stage:
        view = stage.view()
        stage.broker.attach(stage.new)
        stage.broker.attach(stage.old)
        stage.broker.detach(stage.new)

        assert (await view.call(wish("files/ok"))).text == "ok"


@pytest.mark.requirement("S-40")
async def test_a_connection_that_another_agent_has_for_itself_carries_no_call() -> None:
    async with wired() as stage:
        other = stage.shop.ledger.open(CellKind.AGENT, "other", under=stage.shop.session)
        stage.broker.attach(replace(stage.old, owner=other))

        error = await refusal(stage.view(), "files/ok")

        assert error.reason is DenyReason.SERVER_DISCONNECTED
        assert calls_at(stage.old_server) == []


@pytest.mark.requirement("S-40")
async def test_where_each_agent_has_its_own_no_call_goes_over_any_other() -> None:
    async with wired() as stage:
        asked: list[AgentView] = []

        async def elsewhere(view: AgentView, capability: Capability) -> OwnCells:
            asked.append(view)
            return OwnCells(link=stage.new.cell, target=capability.target)

        view = stage.view()
        stage.broker.isolate(stage.old.cell, elsewhere)
        stage.broker.attach(replace(stage.new, owner=view.owner))

        assert (await view.call(wish("files/ok"))).text == "ok"
        stage.broker.rejoin(stage.old.cell)
        error = await refusal(view, "files/ok")

        assert asked == [view]
        assert error.reason is DenyReason.SERVER_DISCONNECTED
        assert (len(calls_at(stage.old_server)), len(calls_at(stage.new_server))) == (0, 1)


async def test_without_a_connection_a_call_is_refused() -> None:
    async with wired() as stage:
        stage.broker.attach(stage.old)
        stage.broker.detach(stage.old)

        error = await refusal(stage.view(), "files/ok")

        assert error.reason is DenyReason.SERVER_DISCONNECTED
        assert error.bytes_sent == 0


def test_answers_that_nobody_may_have_are_recorded_up_to_a_bound_and_then_told_by_doubling() -> (
    None
):
    shelf = Shelf()
    observer = WireObserver(peer=Peer(server=FILES), audit=shelf, telemetry=NO_TELEMETRY)

    for number in range(DROPPED_RECORDS_MAX * 4):
        observer.answer_dropped(number)

    counts = [fields["count"] for fields in shelf.fields("answer_dropped")]
    assert counts[:DROPPED_RECORDS_MAX] == list(range(1, DROPPED_RECORDS_MAX + 1))
    assert counts[DROPPED_RECORDS_MAX:] == [DROPPED_RECORDS_MAX * 2, DROPPED_RECORDS_MAX * 4]


def test_notices_are_recorded_each_and_answers_up_to_a_bound_and_then_by_doubling() -> None:
    shelf = Shelf()
    observer = WireObserver(peer=Peer(server=FILES), audit=shelf, telemetry=NO_TELEMETRY)

    observer.notice_sent("notifications/cancelled")
    for _ in range(DROPPED_RECORDS_MAX * 2):
        observer.notice_sent("")

    assert shelf.fields("notice_sent") == [
        {"server": FILES, "method": "notifications/cancelled"},
    ]
    counts = [fields["count"] for fields in shelf.fields("answer_sent")]
    assert counts == [*range(1, DROPPED_RECORDS_MAX + 1), DROPPED_RECORDS_MAX * 2]


def test_a_record_that_cannot_be_kept_refuses_the_flush() -> None:
    shelf = Shelf()
    shelf.full = True

    with pytest.raises(AuthorityError) as caught:
        WireObserver(peer=Peer(server=FILES), audit=shelf, telemetry=NO_TELEMETRY).flushing()

    assert caught.value.reason is DenyReason.NOT_RECORDED
