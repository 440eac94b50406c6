"""The tables of a session: shared by agents of one role and grant, and no more of them than there may be."""

from __future__ import annotations

from orchestrator.sessions.tables import TABLES_MAX
from tests.orchestrator.broker.stage import IDLE, OPEN, staged


async def test_agents_of_one_role_and_grant_share_their_table() -> None:
    async with staged(OPEN) as stage:
        one, other = (stage.session.subagent(name, role="r", model=IDLE) for name in "ab")

        assert one.table is other.table


async def test_there_are_no_more_tables_than_there_may_be() -> None:
    async with staged(OPEN) as stage:
        first = stage.agent("first")
        for number in range(TABLES_MAX - 1):
            stage.agent(f"a{number}").close()
        assert stage.session.subagent("second", role="first", model=IDLE).table is first.table

        stage.agent("one-more")

        assert stage.session.subagent("third", role="first", model=IDLE).table is not first.table
