"""Approves the definitions of one server on request: starts it, lists, shows, asks, keeps. Calls no tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from orchestrator.catalog.pins import PinReport
from orchestrator.cli.terminal import person_here
from orchestrator.core.errors import ServerFailedError
from orchestrator.core.groups import ungrouped
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions import consent
from orchestrator.sessions.approvals import ApprovalStore, Item
from orchestrator.sessions.assembling import looking_ports
from orchestrator.sessions.entries import ServerEntry, server_item
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper, tools_name
from orchestrator.sessions.ports import SystemClock
from orchestrator.sessions.state import StatePaths
from policies import ASK_ALL

__all__ = ["approve_definitions"]


async def approve_definitions(entry: ServerEntry, project: Path, flags: Sequence[str]) -> PinReport:
    """Have what is new or changed of a server's definitions approved, and keep it; say what it was.

    Raises PendingApprovalError if a person would have to be asked, or said no; ConfigError for an
    entry that cannot be used; ServerFailedError if the server could not be connected.
    """
    if entry.problem is not None:
        raise entry.problem
    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    settle = _Settling(paths, project, flags)
    settle.refuse_unused({entry.name, tools_name(entry)})
    await settle([server_item(entry)])
    limits = OrchestratorLimits()
    keeper = PinKeeper(paths.pins, limits=limits)
    session = ParentSession(
        servers=(entry,),
        policy=ASK_ALL,
        limits=limits,
        ports=looking_ports(),
    )
    with ungrouped():
        async with session.running():
            connection = session.servers[entry.name]
            if connection.listing is None:
                raise connection.error or ServerFailedError(
                    f"server {entry.name!r} listed nothing",
                    code="E-SERVER-START",
                    server=entry.name,
                )
            report = keeper.report(entry, connection.listing)
            question = keeper.question(entry, connection.listing)
            if question is not None:
                await settle([question])
            keeper.pin([(entry, connection.listing)])
    return report


class _Settling:
    """Settles one lot of items after the other, on the terminal where there is one."""

    def __init__(self, paths: StatePaths, project: Path, flags: Sequence[str]) -> None:
        self._store = ApprovalStore(paths.approvals)
        self._book = self._store.book(project, flags)
        self._person = person_here(paths)

    def refuse_unused(self, names: set[str]) -> None:
        self._book.refuse_unused(names)

    async def __call__(self, items: Sequence[Item]) -> None:
        person = self._person
        self._book = await consent.settle(
            items,
            book=self._book,
            store=self._store,
            confirm=person.confirm_items if person.interactive else None,
            at=SystemClock().wall(),
        )
