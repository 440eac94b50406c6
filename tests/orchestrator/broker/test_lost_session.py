"""A call whose server had forgotten its session: once more, as a call anew, or not at all (fault 5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest

from mcp_client import HttpSpec
from mcp_client.testing import ScriptedServer
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason
from tests.mcp_client.http.harness import Mcp
from tests.orchestrator.broker.stage import (
    AGENT,
    EVERYTHING_ASKED,
    OPEN,
    SERVER,
    SESSION,
    Person,
    Stage,
    Way,
    calling,
    failure,
    policy_of,
    staged,
    ways,
    wish,
)


@asynccontextmanager
async def over_http(
    script: Mcp, policy: str = OPEN, person: Person | None = None
) -> AsyncGenerator[tuple[Stage, HttpServer]]:
    """A session whose one server, `files`, is reached by a URL."""
    async with serve_http(script) as server:
        source = cast("ScriptedServer", HttpSpec(name="files", url=server.url))
        async with staged(policy, servers=[source], person=person) as stage:
            yield stage, server


def forgetful(
    script: Mcp, server: HttpServer, then: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Have the server turn away the next call as one that has forgotten the session."""
    script.forgotten.add(script.present)

    if then is not None:

        async def initialize(call: HttpCall, reply: HttpReply) -> None:
            del script.special["initialize"]
            await then()
            await script(call, reply)

        script.special["initialize"] = initialize


@pytest.mark.requirement("S-3", "I15")
async def test_a_call_that_a_forgetful_server_turned_away_goes_out_once_more_under_a_new_permit() -> (
    None
):
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view
        forgetful(script, server)

        content = await view.call(wish("files/add"))

        assert content.blocks[0]["text"] == "session-2"
        assert len(server.posts("tools/call")) == 2
        # each frame has a decision of its own, recorded before it
        assert len(stage.audit.of_kind("decision")) == 2


@pytest.mark.requirement("I15")
async def test_a_person_is_asked_again_before_it_goes_out_once_more() -> None:
    script, person = Mcp(), Person()
    policy = EVERYTHING_ASKED.replace("{read,wait,fail}", "add")
    async with over_http(script, policy, person) as (stage, server):
        forgetful(script, server)

        await stage.agent().view.call(wish("files/add"))

        assert len(person.asked) == 2


@pytest.mark.requirement("I8", "I15")
async def test_it_goes_out_once_more_only_if_the_new_session_offers_what_was_admitted() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view

        async def another() -> None:
            script.tools = [{**script.tools[0], "description": "does something else now"}]

        forgetful(script, server, another)

        with pytest.raises(AuthorityError) as caught:
            await view.call(wish("files/add"))

        assert caught.value.reason is DenyReason.DEFINITION_CHANGED
        assert len(server.posts("tools/call")) == 1


@pytest.mark.requirement("I15", "S-27")
@ways(AGENT, SERVER, SESSION)
async def test_a_revocation_while_the_session_begins_anew_refuses_the_call(way: Way) -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view
        begun, go = anyio.Event(), anyio.Event()

        async def hold() -> None:
            begun.set()
            await go.wait()

        forgetful(script, server, hold)
        async with calling(view, "files/add") as call:
            await begun.wait()
            way.of(stage.session)
            go.set()
            await call.done.wait()

            assert isinstance(call.error, AuthorityError)
            assert len(server.posts("tools/call")) == 1


async def test_a_second_404_is_a_failure_with_its_delivery() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view

        async def forget(call: HttpCall, reply: HttpReply) -> None:
            await reply.send(404)

        script.special["tools/call"] = forget
        error = await failure(view, "files/add")

        assert (error.code, error.delivery) == ("E-CALL-SESSIONLOST", Delivery.REFUSED)
        assert len(server.posts("tools/call")) == 2


@pytest.mark.requirement("I15")
async def test_a_call_whose_outcome_is_unknown_is_never_sent_again() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):

        async def cut(call: HttpCall, reply: HttpReply) -> None:
            await reply.cut()

        script.special["tools/call"] = cut
        error = await failure(stage.agent().view, "files/add")

        assert (error.delivery, len(server.posts("tools/call"))) == (Delivery.MAYBE_SENT, 1)


async def test_calls_that_come_meanwhile_wait_for_the_new_session() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view
        begun, go = anyio.Event(), anyio.Event()

        async def hold() -> None:
            begun.set()
            await go.wait()

        forgetful(script, server, hold)
        async with calling(view, "files/add") as first, calling(view, "files/add") as second:
            await begun.wait()
            await anyio.wait_all_tasks_blocked()
            go.set()
            texts = [(await call.answered()).blocks[0]["text"] for call in (first, second)]

        assert (texts, script.sessions) == (["session-2", "session-2"], 2)


@pytest.mark.requirement("I8")
async def test_no_call_goes_to_a_new_session_before_it_is_known_what_that_offers() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view
        listing, go = anyio.Event(), anyio.Event()

        async def hold(call: HttpCall, reply: HttpReply) -> None:
            del script.special["tools/list"]
            listing.set()
            await go.wait()
            await script(call, reply)

        forgetful(script, server)
        script.special["tools/list"] = hold
        async with calling(view, "files/add") as first:
            await listing.wait()
            async with calling(view, "files/add") as second:
                await anyio.wait_all_tasks_blocked()
                sent = [record["method"] for record in stage.audit.fields("sent")]
                go.set()
                await second.answered()
            await first.answered()

        assert sent.count("tools/call") == 1


async def test_a_server_without_a_login_that_wants_one_is_not_asked_again() -> None:
    script = Mcp()

    async def unauthorized(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(401, headers={"WWW-Authenticate": "Bearer"})

    async with over_http(script) as (stage, server):
        script.special["tools/call"] = unauthorized
        error = await failure(stage.agent().view, "files/add")

        assert (error.code, error.delivery) == ("E-CALL-AUTHORIZATIONREQUIRED", Delivery.REFUSED)
        assert len(server.posts("tools/call")) == 1


@pytest.mark.requirement("I15", "S-27")
async def test_a_policy_that_changes_while_the_session_begins_anew_decides_the_call() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        view = stage.agent().view
        begun, go = anyio.Event(), anyio.Event()

        async def hold() -> None:
            begun.set()
            await go.wait()

        forgetful(script, server, hold)
        async with calling(view, "files/add") as call:
            await begun.wait()
            stage.session.replace_policy(
                policy_of('policy p v1 { forbid "no" call on any server/* }')
            )
            go.set()
            refusal = await call.refused()

        assert (refusal.reason, len(server.posts("tools/call"))) == (DenyReason.FORBIDDEN, 1)


def breaking(script: Mcp) -> list[HttpCall]:
    """Have the stream of each call break after an event, and its rest be given to who asks for it."""
    calls: list[HttpCall] = []

    async def call_tool(call: HttpCall, reply: HttpReply) -> None:
        calls.append(call)
        await reply.start_events()
        await reply.event(id="1", retry=10)
        await reply.end()

    async def get(call: HttpCall, reply: HttpReply) -> None:
        if "last-event-id" not in call.headers:
            await reply.send(405)
            return
        await reply.start_events()
        await reply.event(
            {
                "jsonrpc": "2.0",
                "id": calls[-1].message["id"],
                "result": {"content": [{"type": "text", "text": "the rest"}]},
            }
        )
        await reply.end()

    script.special |= {"tools/call": call_tool, "GET": get}
    return calls


@pytest.mark.requirement("H-9", "I15")
async def test_the_rest_of_an_answer_is_asked_for_under_a_permit_of_its_own() -> None:
    script = Mcp()
    async with over_http(script) as (stage, _):
        calls = breaking(script)

        content = await stage.agent().view.call(wish("files/add"))

        assert (content.blocks[0]["text"], len(calls)) == ("the rest", 1)


@pytest.mark.requirement("I15", "I1")
async def test_nothing_is_asked_for_once_authority_has_ended_between_the_two_streams() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        calls = breaking(script)
        serve = script.special["tools/call"]

        async def revoke_then_break(call: HttpCall, reply: HttpReply) -> None:
            AGENT.of(stage.session)
            await serve(call, reply)

        script.special["tools/call"] = revoke_then_break
        async with calling(stage.agent().view, "files/add") as call:
            await call.refused()
            resumed = [each for each in server.of("GET") if "last-event-id" in each.headers]

        assert (resumed, len(calls) <= 1) == ([], True)


@pytest.mark.requirement("I2", "S-27")
async def test_an_agent_that_has_ended_has_no_session_begin_anew() -> None:
    script = Mcp()
    async with over_http(script) as (stage, server):
        ended, other = stage.agent("ended").view, stage.agent("other").view
        script.forgotten.add(script.present)

        async def broken(call: HttpCall, reply: HttpReply) -> None:
            await reply.send(500)

        script.special["initialize"] = broken
        await failure(other, "files/add")  # from now on a handshake is due
        stage.session.cancel_agent("ended")
        before = len(server.posts("initialize"))
        with pytest.raises(AuthorityError) as caught:
            await ended.call(wish("files/add"))

        assert caught.value.reason is DenyReason.AGENT_CANCELLED
        assert len(server.posts("initialize")) == before


@pytest.mark.requirement("I2", "S-27")
async def test_a_call_that_policy_forbids_has_no_session_begin_anew() -> None:
    script = Mcp()
    text = 'policy p v1 { permit "one" call on files/add when arg(/n) == 1 }'
    async with over_http(script, text) as (stage, server):
        view = stage.agent().view
        script.forgotten.add(script.present)

        async def broken(call: HttpCall, reply: HttpReply) -> None:
            await reply.send(500)

        script.special["initialize"] = broken
        await failure(view, "files/add", {"n": 1})
        before = len(server.posts("initialize"))
        with pytest.raises(AuthorityError) as caught:
            await view.call(wish("files/add", {"n": 2}))

        assert caught.value.reason is DenyReason.NO_PERMIT
        assert len(server.posts("initialize")) == before
