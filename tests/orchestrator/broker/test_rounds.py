"""Calls that a modern server answers with questions: every round is decided and admitted anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import pytest

from mcp_client import UNGUARDED, connect
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.modern.extensions import TASKS
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.session import ClientSession
from mcp_client.testing import ScriptedRequest
from mcp_client.testing.modern_server import ModernServer
from orchestrator.broker.rounds import MoreInputError, answer_round
from orchestrator.broker.wire import Link
from orchestrator.broker.wish import Wish, unknown
from orchestrator.core.errors import CallFailedError, DenyReason
from orchestrator.core.ids import CallId
from tests.orchestrator.broker.stage import (
    EVERYTHING_ASKED,
    FILES,
    Person,
    Stage,
    Way,
    calling,
    calls_at,
    entry,
    policy_of,
    staged,
    until,
    ways,
    wish,
)

AGAIN = {"resultType": "input_required", "requestState": "state of the server"}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Asking(ModernServer):
    """A server whose `read` and `ok` want so many rounds; each is held until a test lets it go."""

    def __init__(self, rounds: int) -> None:
        super().__init__(FILES)
        self.left = rounds
        self.states: list[object] = []
        self.add_tool("ok", lambda _: DONE)
        self.add_tool("read", lambda _: DONE)
        self.on("tools/call", self._call)

    def _call(self, request: ScriptedRequest) -> None:
        self.states.append(request.params.get("requestState"))
        if request.params.get("name") == "read" and self.left:
            self.left -= 1
            request.answer(AGAIN)
        else:
            request.answer(DONE)


ANEW = Dialect(opening=Opening.MODERN)
MODERN = [entry(FILES, protocol="2026-07-28")]


def decisions(stage: Stage) -> int:
    return sum(item["tool"] == "read" for item in stage.audit.fields("decision"))


def sends(stage: Stage) -> int:
    return sum(bool(item["call"]) for item in stage.audit.fields("sent"))


async def test_a_call_goes_on_with_the_servers_own_state_until_it_is_answered() -> None:
    server = Asking(2)
    async with staged(servers=[server], entries=MODERN) as stage:
        content = await stage.agent().view.call(wish("files/read", {"path": "x"}))

    assert content.text == "done"
    assert server.states == [None, "state of the server", "state of the server"]


@pytest.mark.requirement("I15", "I23")
async def test_each_round_is_decided_recorded_and_sent_under_a_permit_of_its_own() -> None:
    async with staged(servers=[Asking(2)], entries=MODERN) as stage:
        await stage.agent().view.call(wish("files/read"))

        assert decisions(stage) == 3
        assert sends(stage) == 3


@pytest.mark.requirement("I15", "I19")
async def test_a_person_is_asked_again_for_each_round() -> None:
    person = Person()
    async with staged(
        EVERYTHING_ASKED, servers=[Asking(1)], entries=MODERN, person=person
    ) as stage:
        await stage.agent().view.call(wish("files/read"))

    assert len(person.asked) == 2


@pytest.mark.requirement("I1", "I15", "S-27")
@ways()
async def test_what_is_taken_back_between_two_rounds_stops_the_next(way: Way) -> None:
    server = Asking(1)
    async with staged(servers=[server], entries=MODERN) as stage:
        server.on("tools/call", server.held.append)
        async with calling(stage.agent().view, "files/read") as call:
            await until(lambda: server.held)
            server.held[0].answer(AGAIN)
            await until(lambda: stage.audit.fields("answered")[-1]["call"])
            way.of(stage.session)

            assert (await call.refused()).reason is way.reason
        assert sends(stage) == 1


@pytest.mark.requirement("I15")
async def test_a_policy_that_forbids_it_meanwhile_stops_the_next_round() -> None:
    server = Asking(1)
    async with staged(servers=[server], entries=MODERN) as stage:
        server.on("tools/call", server.held.append)
        async with calling(stage.agent().view, "files/read") as call:
            await until(lambda: server.held)
            server.held[0].answer(AGAIN)
            await until(lambda: stage.audit.fields("answered")[-1]["call"])
            stage.session.replace_policy(policy_of('policy p v1 { forbid "no" call on files/* }'))

            assert (await call.refused()).reason in (
                DenyReason.FORBIDDEN,
                DenyReason.POLICY_CHANGED,
            )
        assert sends(stage) == 1


@dataclass
class OnlySession:
    """As much of a link as a round looks at."""

    session: ClientSession


async def test_rounds_without_an_end_end() -> None:
    async with connect(ModernServer(FILES), guard=UNGUARDED, dialect=ANEW) as client:
        one_past = InputRequired(
            owner=client.session.owner,
            method="tools/call",
            params=b"{}",
            requests={},
            state="s",
            round=client.session.bounds.input_rounds_max + 1,
        )
        async with staged() as stage:
            view = stage.agent().view
        asked = Wish(CallId("c1"), view, wish("files/read"), unknown(wish("files/read")))
        link = cast("Link", OnlySession(client.session))

        with pytest.raises(CallFailedError, match="came to no end"):
            await answer_round(asked, MoreInputError(one_past, link))


async def test_a_question_that_was_not_declared_ends_the_call() -> None:
    server = Asking(0)
    asks = {
        "resultType": "input_required",
        "inputRequests": {"name": {"method": "roots/list"}},
    }
    server.on("tools/call", lambda request: request.answer(asks))
    async with staged(servers=[server], entries=MODERN) as stage:
        with pytest.raises(CallFailedError) as caught:
            await stage.agent().view.call(wish("files/read"))

    assert caught.value.code == "E-CALL-UNDECLAREDINPUT"
    assert len(calls_at(server)) == 1


async def test_a_call_that_became_a_task_is_not_taken_for_a_result() -> None:
    server = ModernServer(FILES, capabilities={"tools": {}, "extensions": {TASKS: {}}})
    server.add_tool("read", lambda _: DONE)
    task = {"resultType": "task", "taskId": "t", "status": "working"}
    server.on("tools/call", lambda request: request.answer(task))
    async with staged(servers=[server], entries=MODERN) as stage:
        with pytest.raises(CallFailedError) as caught:
            await stage.agent().view.call(wish("files/read"))

    assert caught.value.code == "E-CALL-REMOTEPROTOCOL"


async def test_the_questions_of_a_round_are_laid_to_the_agent_whose_call_it_is() -> None:
    server = Asking(0)
    form: dict[str, object] = {
        "mode": "form",
        "message": "which branch?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    asks: dict[str, object] = {
        "resultType": "input_required",
        "inputRequests": {"branch": {"method": "elicitation/create", "params": form}},
    }
    replies: list[Mapping[str, object]] = [asks, DONE]
    server.on("tools/call", lambda request: request.answer(replies.pop(0)))
    async with staged(servers=[server], entries=MODERN) as stage:
        await stage.agent("worker").view.call(wish("files/read"))
        asked = stage.audit.fields("elicitation")

    assert [item["agent"] for item in asked] == ["worker"]
