"""What servers ask of people: whose it is, who decides, who is asked, and what is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest

from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    DECLINE,
    ElicitationAction,
    ElicitationAnswer,
)
from mcp_client.testing import ScriptedServer
from orchestrator.agents.events import AgentEvent, InputMissing, VisitEnded
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.sessions.asks import Ask, AskKind
from orchestrator.sessions.configuration.entry import ROOTS_MAX
from orchestrator.sessions.elicitations import Elicitation, ElicitationMode, SamplingWish
from orchestrator.sessions.lanes import ServerCap
from orchestrator.sessions.visits import VISITS_MAX, Visits
from orchestrator.testing import CountingIds
from tests.orchestrator.broker.stage import (
    OPEN,
    Calling,
    Person,
    Stage,
    entry,
    policy_of,
    staged,
    until,
    wish,
)

FORM: Mapping[str, object] = {
    "mode": "form",
    "message": "which branch?",
    "requestedSchema": {
        "type": "object",
        "properties": {"branch": {"type": "string", "maxLength": 20}},
        "required": ["branch"],
    },
}
URL: Mapping[str, object] = {
    "mode": "url",
    "message": "log in there",
    "url": "https://example.com/consent?x=1",
    "elicitationId": "e1",
}


@dataclass
class Somebody:
    """A person at a terminal, who answers at once, or not at all."""

    answer: ElicitationAnswer | None = CANCEL
    interactive: bool = True
    asked: list[Elicitation] = field(default_factory=list[Elicitation])
    before: Callable[[], object] = lambda: None

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        self.asked.append(elicitation)
        self.before()
        if self.answer is None:
            await anyio.sleep_forever()
            raise AssertionError
        return self.answer

    async def sample(self, wish: SamplingWish) -> str | None:
        return None


def answers(server: ScriptedServer, request_id: str = "q1") -> list[Mapping[str, object]]:
    return [item for item in server.received if item.get("id") == request_id]


async def answer_of(server: ScriptedServer, request_id: str = "q1") -> Mapping[str, object]:
    await until(lambda: answers(server, request_id))
    return cast("Mapping[str, object]", answers(server, request_id)[0]["result"])


def declared_to(server: ScriptedServer) -> Mapping[str, object]:
    (hello,) = server.requests("initialize")
    params = cast("Mapping[str, object]", hello["params"])
    return cast("Mapping[str, object]", params["capabilities"])


async def asked_in_call(
    stage: Stage,
    params: Mapping[str, object],
    *,
    during: Callable[[], object] | None = None,
    name: str = "worker",
) -> Mapping[str, object]:
    """Have a server ask while a call of an agent is under way; return what it is answered."""
    answer: Mapping[str, object] = {}
    call = Calling(stage.agent(name).view, wish("files/wait"))
    async with anyio.create_task_group() as group:
        group.start_soon(call.run)
        await until(lambda: stage.files.held)
        stage.files.ask("q1", "elicitation/create", params)
        if during is not None:
            during()
        answer = await answer_of(stage.files)
        stage.files.held[0].answer({"content": []})
        await call.answered()
    return answer


@pytest.mark.requirement("C-22")
@pytest.mark.requirement("S-10")
async def test_what_a_person_fills_in_is_what_the_server_gets() -> None:
    filled = ElicitationAnswer(ElicitationAction.ACCEPT, {"branch": "main"})
    person = Somebody(filled)
    async with staged(host=person) as stage:
        answer = await asked_in_call(stage, FORM)

    assert answer == {"action": "accept", "content": {"branch": "main"}}
    (seen,) = person.asked
    assert (seen.server, seen.agent, seen.mode) == ("files", "worker", ElicitationMode.FORM)


@pytest.mark.requirement("C-22")
@pytest.mark.requirement("S-10")
@pytest.mark.parametrize("decided", [DECLINE, CANCEL], ids=["decline", "cancel"])
@pytest.mark.parametrize("params", [FORM, URL], ids=["form", "url"])
async def test_a_no_and_no_decision_are_told_apart(
    decided: ElicitationAnswer, params: Mapping[str, object]
) -> None:
    async with staged(host=Somebody(decided)) as stage:
        answer = await asked_in_call(stage, params)

    assert answer == {"action": decided.action.value}


def told(server: ScriptedServer, visit: object = "e1") -> None:
    server.notify("notifications/elicitation/complete", {"elicitationId": visit})


def visits_ended(stage: Stage) -> list[VisitEnded]:
    return [event for event in stage.events if isinstance(event, VisitEnded)]


@pytest.mark.requirement("C-26")
async def test_that_a_visit_is_over_is_told_once_by_the_name_that_the_person_was_asked_with() -> (
    None
):
    person = Somebody(ElicitationAnswer(ElicitationAction.ACCEPT))
    async with staged(host=person) as stage:
        await asked_in_call(stage, URL)
        told(stage.files)
        told(stage.files)
        await stage.settled()
        (ended,) = visits_ended(stage)

    assert (ended.agent, ended.server, ended.visit) == ("worker", "files", person.asked[0].visit)
    assert ended.visit not in ("", "e1")


@pytest.mark.requirement("C-26")
@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
async def test_of_a_visit_that_nobody_agreed_to_no_end_is_told(answer: ElicitationAnswer) -> None:
    async with staged(host=Somebody(answer)) as stage:
        await asked_in_call(stage, URL)
        told(stage.files)
        told(stage.files, "e2")
        await stage.settled()

        assert visits_ended(stage) == []


def test_of_one_visit_more_than_is_kept_the_first_ones_end_is_not_told() -> None:
    heard: list[AgentEvent] = []
    visits = Visits(ServerName("files"), new_id=CountingIds().new, emit=heard.append)
    names = [f"e{number}" for number in range(VISITS_MAX + 1)]

    ours = [visits.begin(name, None) for name in names]
    for name in names:
        visits.ended(name)

    assert [event.visit for event in heard if isinstance(event, VisitEnded)] == ours[1:]


@pytest.mark.requirement("S-10")
async def test_an_address_is_shown_whole_and_its_host_apart() -> None:
    person = Somebody(ElicitationAnswer(ElicitationAction.ACCEPT))
    async with staged(host=person) as stage:
        assert await asked_in_call(stage, URL) == {"action": "accept"}

    (seen,) = person.asked
    assert (seen.url, seen.host) == ("https://example.com/consent?x=1", "example.com")


@pytest.mark.requirement("S-10")
async def test_an_address_in_the_clear_is_shown_to_nobody() -> None:
    person = Somebody(ElicitationAnswer(ElicitationAction.ACCEPT))
    async with staged(host=person) as stage:
        stage.files.ask("q1", "elicitation/create", {**URL, "url": "http://example.com/"})
        await until(lambda: answers(stage.files))

    assert "error" in answers(stage.files)[0]
    assert person.asked == []


@pytest.mark.requirement("S-12")
async def test_where_nobody_can_be_asked_the_server_is_told_at_once_and_it_is_kept() -> None:
    async with staged() as stage:
        answer = await asked_in_call(stage, FORM)
        missing = [event for event in stage.events if isinstance(event, InputMissing)]

    assert answer == {"action": "cancel"}
    (event,) = missing
    assert (event.agent, event.server, event.mode) == ("worker", "files", "form")
    assert event.message == "which branch?"
    assert event.schema["properties"] == {"branch": {"type": "string", "maxLength": 20}}


async def test_what_cannot_be_laid_to_one_agent_is_the_sessions() -> None:
    person = Somebody(CANCEL)
    async with staged(host=person) as stage:
        other = Calling(stage.agent("other").view, wish("files/wait"))
        async with anyio.create_task_group() as group:
            group.start_soon(other.run)
            await until(lambda: stage.files.held)
            call = Calling(stage.agent("worker").view, wish("files/wait"))
            group.start_soon(call.run)
            await until(lambda: len(stage.files.held) == 2)
            stage.files.ask("q1", "elicitation/create", FORM)
            await answer_of(stage.files)
            for held in stage.files.held:
                held.answer({"content": []})

    assert [item.agent for item in person.asked] == [""]


async def test_a_question_is_not_laid_to_an_agent_whose_call_waits_for_a_yes() -> None:
    asks = 'policy p v1 { ask "wait" call on files/wait }'
    host, approver = Somebody(CANCEL), Person(lambda _: None)
    async with staged(asks, person=approver, host=host) as stage:
        call = Calling(stage.agent("worker").view, wish("files/wait"))
        async with anyio.create_task_group() as group:
            group.start_soon(call.run)
            await approver.until_asked()
            stage.files.ask("q1", "elicitation/create", FORM)
            await answer_of(stage.files)
            group.cancel_scope.cancel()

    assert [item.agent for item in host.asked] == [""]


@asynccontextmanager
async def at_work_and_behind(
    stage: Stage, wait: Callable[[], object] = lambda: None
) -> AsyncGenerator[None]:
    """A call of `worker` at the server, and one of `other` that has come as far as it can.

    `wait` is done between the two. Both are given up at the end.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(Calling(stage.agent("worker").view, wish("files/wait")).run)
        await until(lambda: stage.files.held)
        wait()
        group.start_soon(Calling(stage.agent("other").view, wish("files/wait")).run)
        await anyio.wait_all_tasks_blocked()
        assert len(stage.files.held) == 1
        yield
        group.cancel_scope.cancel()


async def test_a_question_is_laid_to_the_call_at_the_server_and_not_to_one_that_waits_for_a_place() -> (
    None
):
    person = Somebody(CANCEL)
    async with (
        staged(host=person, caps={"files": ServerCap(parallel=1)}) as stage,
        at_work_and_behind(stage),
    ):
        stage.files.ask("q1", "elicitation/create", FORM)
        await answer_of(stage.files)

    assert [item.agent for item in person.asked] == ["worker"]


async def test_a_question_is_not_laid_to_a_call_of_which_no_byte_has_left() -> None:
    person = Somebody(CANCEL)
    async with staged(host=person) as stage:

        def block() -> None:
            stage.files.wire.block(after_bytes=0)

        async with at_work_and_behind(stage, block):
            stage.files.ask("q1", "elicitation/create", FORM)
            await until(lambda: person.asked)
            stage.files.wire.unblock()

    assert [item.agent for item in person.asked] == ["worker"]


async def test_what_was_answered_asks_for_nobody_any_more() -> None:
    person = Somebody(CANCEL)
    async with staged(host=person) as stage:
        await stage.agent("worker").view.call(wish("files/read"))
        stage.files.ask("q1", "elicitation/create", FORM)
        await answer_of(stage.files)

    assert [item.agent for item in person.asked] == [""]


@pytest.mark.requirement("S-13")
async def test_a_server_is_told_the_ways_that_the_surface_has_and_no_others() -> None:
    async with staged(modes=frozenset({ElicitationMode.URL})) as stage:
        declared = declared_to(stage.files)

    assert declared["elicitation"] == {"url": {}}


@pytest.mark.requirement("S-13")
async def test_without_a_way_to_ask_elicitation_is_not_declared() -> None:
    async with staged(modes=frozenset()) as stage:
        declared = declared_to(stage.files)
        stage.files.ask("q1", "elicitation/create", FORM)
        await until(lambda: answers(stage.files))

    assert "elicitation" not in declared
    assert "error" in answers(stage.files)[0]


async def test_a_rule_that_forbids_answers_for_the_person() -> None:
    policy = OPEN[: OPEN.rindex("}")] + 'forbid "no" elicit on files/url }'
    person = Somebody(ElicitationAnswer(ElicitationAction.ACCEPT))
    async with staged(policy, host=person) as stage:
        assert await asked_in_call(stage, URL) == {"action": "decline"}

    assert person.asked == []


@pytest.mark.requirement("I15")
async def test_what_was_forbidden_while_somebody_thought_is_not_answered() -> None:
    forbids = policy_of(OPEN[: OPEN.rindex("}")] + 'forbid "no" elicit on files }')
    person = Somebody(ElicitationAnswer(ElicitationAction.ACCEPT, {"branch": "main"}))
    async with staged(host=person) as stage:
        person.before = lambda: stage.session.replace_policy(forbids)
        stage.files.ask("q1", "elicitation/create", FORM)

        assert await answer_of(stage.files) == {"action": "decline"}


@pytest.mark.requirement("I2")
async def test_the_end_of_the_agent_ends_the_question() -> None:
    person = Somebody(None)
    async with staged(host=person) as stage:
        call = Calling(stage.agent().view, wish("files/wait"))
        async with anyio.create_task_group() as group:
            group.start_soon(call.run)
            await until(lambda: stage.files.held)
            stage.files.ask("q1", "elicitation/create", FORM)
            await until(lambda: person.asked)
            stage.session.cancel_agent("worker")
            assert await answer_of(stage.files) == {"action": "cancel"}
            await call.refused()


async def test_the_record_says_that_somebody_was_asked_and_nothing_that_they_filled_in() -> None:
    filled = ElicitationAnswer(ElicitationAction.ACCEPT, {"branch": "a secret"})
    async with staged(host=Somebody(filled)) as stage:
        await asked_in_call(stage, FORM)
        (record,) = stage.audit.fields("elicitation")

    assert record["answer"] == "accept"
    assert (record["server"], record["agent"], record["mode"]) == ("files", "worker", "form")
    assert "secret" not in str(stage.audit.fields("elicitation"))
    assert "branch" not in str(record)


# ------------------------------------------------------------------------------- asks of programs


async def next_ask(stage: Stage) -> Ask:
    async for ask in stage.session.asks():
        return ask
    raise AssertionError


@pytest.mark.requirement("S-10")
async def test_a_program_answers_by_the_stream_of_asks() -> None:
    result: Mapping[str, object] = {}
    async with staged() as stage, anyio.create_task_group() as group:

        async def answer() -> None:
            ask = await next_ask(stage)
            assert ask.kind is AskKind.ELICITATION
            assert ask.elicitation is not None
            await ask.accept({"branch": "main"})

        group.start_soon(answer)
        await anyio.lowlevel.checkpoint()
        result = await asked_in_call(stage, FORM)

    assert result == {"action": "accept", "content": {"branch": "main"}}


async def test_values_that_do_not_fit_are_refused_and_the_ask_stays_open() -> None:
    async with staged() as stage, anyio.create_task_group() as group:

        async def answer() -> None:
            ask = await next_ask(stage)
            with pytest.raises(ConfigError) as refused:
                await ask.accept({"branch": "x" * 21})
            assert refused.value.code == "E-ASK-FORM"
            assert ask.open
            await ask.decline()

        group.start_soon(answer)
        await anyio.lowlevel.checkpoint()
        assert await asked_in_call(stage, FORM) == {"action": "decline"}


# ------------------------------------------------------------------------------------------ roots


GRANTED = OPEN[: OPEN.rindex("}")] + 'permit "roots" list_roots on files }'
ROOTS = ["file:///home/me/docs"]


async def roots_of(stage: Stage) -> object:
    stage.files.ask("q1", "roots/list")
    return await answer_of(stage.files)


@pytest.mark.requirement("S-44")
async def test_a_root_takes_the_file_and_a_rule() -> None:
    async with staged(GRANTED, entries=[entry("files", roots=ROOTS)]) as stage:
        assert await roots_of(stage) == {"roots": [{"uri": ROOTS[0]}]}
        record = stage.audit.fields("roots")[-1]
        kinds = [each.kind for each in stage.audit.records]
        assert (record["server"], record["answer"], record["count"]) == ("files", "given", 1)
        assert ROOTS[0] not in repr(record)
        assert kinds.index("roots") < kinds.index("server_connected")


@pytest.mark.requirement("S-44")
async def test_without_a_rule_a_server_learns_of_no_root() -> None:
    async with staged(OPEN, entries=[entry("files", roots=ROOTS)]) as stage:
        assert await roots_of(stage) == {"roots": []}
        assert stage.audit.fields("roots")[-1]["answer"] == "forbidden"


@pytest.mark.requirement("S-44")
async def test_a_policy_that_takes_roots_back_holds_at_once() -> None:
    async with staged(GRANTED, entries=[entry("files", roots=ROOTS)]) as stage:
        stage.session.replace_policy(policy_of(OPEN))

        assert await roots_of(stage) == {"roots": []}
        await until(lambda: stage.files.requests("notifications/roots/list_changed"))


@pytest.mark.requirement("S-44")
async def test_roots_are_not_declared_to_a_server_whose_entry_has_none() -> None:
    async with staged(GRANTED) as stage:
        declared = declared_to(stage.files)

    assert "roots" not in declared


@pytest.mark.requirement("S-44")
@pytest.mark.parametrize("uri", ["https://example.com/", "file://host/x", "file:///a/../b", "x"])
def test_what_is_no_file_of_this_machine_makes_an_entry_unusable(uri: str) -> None:
    found = entry("files", roots=[uri])

    assert found.problem is not None
    assert found.roots == ()


def test_one_root_more_than_a_server_may_have_makes_its_entry_unusable() -> None:
    many = [f"file:///{number}" for number in range(ROOTS_MAX + 1)]

    assert entry("files", roots=many[:-1]).problem is None
    assert entry("files", roots=many).problem is not None
