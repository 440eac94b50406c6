"""The parent's own agent: whom a person talks to, at depth 0, by the same rules as any other."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.records import MemoryRecords
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import staged
from tests.orchestrator.sessions.test_parent_agents import READS

OWN = """policy p v1 {
  role parent
  permit "own" call on files/* for role parent depth <= 0
}"""
SAYS = "def main(task):\n    yield []\n    return task.prompt\n"


async def test_the_parents_own_agent_works_by_the_rules_for_depth_0():
    async with staged(OWN) as stage:
        answer = await stage.session.assistant(model=recipe(READS)).run("a.txt")

    assert (answer.status, answer.answer) == (RunStatus.OK, "content of a.txt")


async def test_nobody_else_has_its_rights():
    async with staged(OWN) as stage:
        other = stage.session.subagent("helper", role="parent", model=recipe(READS))

        answer = await other.run("a.txt")

    assert answer.status is RunStatus.DENIED


async def test_it_does_task_after_task():
    async with staged(OWN) as stage:
        assistant = stage.session.assistant(model=recipe(SAYS))

        answers = [(await assistant.run(prompt)).answer for prompt in ("one", "two")]

    assert answers == ["one", "two"]


async def test_there_is_one_of_it():
    async with staged(OWN) as stage:
        stage.session.assistant(model=recipe(SAYS))

        with pytest.raises(ConfigError, match="already"):
            stage.session.assistant(model=recipe(SAYS))


async def test_no_other_agent_has_its_name():
    async with staged(OWN) as stage:
        with pytest.raises(ConfigError, match="already"):
            stage.session.subagent("parent", model=recipe(SAYS))


async def test_its_record_is_taken_up_by_a_later_session():
    records = MemoryRecords()
    async with staged(OWN, records=records) as stage:
        await stage.session.assistant(model=recipe(SAYS)).run("first")

    async with staged(OWN, records=records) as stage:
        again = stage.session.assistant(model=recipe(SAYS))

    assert again.incarnation == 2
    assert [task.order.prompt for task in again.tasks] == ["first"]


@pytest.mark.requirement("I20")
async def test_what_it_remembers_clings_to_it_in_a_later_session():
    records = MemoryRecords()
    async with staged(OWN, records=records) as stage:
        await stage.session.assistant(model=recipe(READS)).run("a.txt")

    async with staged(OWN, records=records) as stage:
        again = stage.session.assistant(model=recipe(SAYS))
        assert {label.name for label in again.standing.labels} == {"untrusted"}

    async with staged(OWN, records=records) as stage:
        third = stage.session.assistant(model=recipe(SAYS))
        assert third.standing.labels == again.standing.labels
