"""A process of its own for each agent: nothing is shared, nothing outlives the agent, nothing falls back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_client.protocol.peer.elicitation import ElicitationAction, ElicitationAnswer
from mcp_client.testing.http_server import serve_http
from orchestrator import Call, Grant
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.control.operations import ControlDesk
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.elicitations import Elicitation, SamplingWish
from orchestrator.surfaces.top.lines import inspected
from tests.mcp_client.http.harness import Mcp
from tests.orchestrator.agents.stage import HandClock, recipe
from tests.orchestrator.broker.stage import (
    Person,
    calling,
    failure,
    nothing_sent,
    refusal,
    until,
    wish,
)
from tests.orchestrator.sessions.isolated_stage import (
    ALL,
    DESK,
    HANDED_ON,
    entry_of,
    gone,
    held,
    isolated,
    say,
)
from tests.orchestrator.sessions.login_stage import login_stage
from tests.orchestrator.sessions.test_logins import sent_with, with_login
from tests.servers.oauth.running import oauth_world

TELLS_PROCESS = recipe(
    "from orchestrator import Call\n"
    "def main(task):\n"
    "    found = yield Call('desk', 'pid', {})\n"
    "    return found.text\n"
)


# ------------------------------------------------------------------------------------- nothing shared


@pytest.mark.requirement("S-40")
async def test_two_agents_do_not_see_what_the_other_keeps(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(one, "put", text="the secret of one")
        await say(two, "put", text="what two knows")

        kept = (await say(one, "get"), await say(two, "get"))
        processes = {await say(one, "pid"), await say(two, "pid")}

    assert kept == ("the secret of one", "what two knows")
    assert len(processes) == 2


@pytest.mark.requirement("S-40")
async def test_no_call_of_any_agent_goes_to_the_process_that_the_session_lists(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        (pattern,) = stage.processes
        await say(stage.agent("one").view, "put", text="x")
        await say(stage.session.view, "put", text="y")

        methods = {message.get("method") for message in stage.read_by(pattern)}

    assert "tools/call" not in methods
    assert "tools/list" in methods


@pytest.mark.requirement("S-40")
async def test_resources_templates_prompts_and_completions_are_of_the_agents_own_process(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(one, "put", text="of one")
        await say(two, "put", text="of two")
        answers = [
            await one.call(Call.read(DESK, "memory:///kept")),
            await one.call(Call.read(DESK, "memory:///anything")),
            await one.call(Call.prompt(DESK, "recall", {})),
            await one.call(Call.completion(DESK, "recall", argument="style", value="")),
        ]

    assert all("of one" in str(answer.blocks) + str(answer.structured) for answer in answers)
    assert not any("of two" in str(answer.blocks) for answer in answers)


@pytest.mark.requirement("S-40")
async def test_what_an_agent_does_at_one_time_finds_one_process_though_it_calls_twice_at_once(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        async with calling(view, "desk/pid") as first, calling(view, "desk/pid") as second:
            processes = {(await first.answered()).text, (await second.answered()).text}

    assert len(processes) == 1


async def test_a_child_has_a_process_of_its_own_beside_its_parents(tmp_path: Path):
    async with isolated(tmp_path, HANDED_ON) as stage:
        parent = stage.agent("one")
        child = stage.agent("below", parent=parent)
        processes = {await say(parent.view, "pid"), await say(child.view, "pid")}

    assert len(processes) == 2


@pytest.mark.requirement("S-40")
async def test_another_agent_of_the_same_name_finds_nothing_of_the_one_before(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        first = stage.agent("one")
        await say(first.view, "put", text="old")
        first.close()
        kept = await say(stage.agent("one").view, "get")

    assert kept == "nothing"


async def test_an_agent_that_stays_keeps_its_process_from_task_to_task(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        stays = stage.session.persistent("clerk", model=TELLS_PROCESS, grant=Grant(None))
        told = [(await stays.run("which?")).answer for _ in range(2)]
        between = await say(stays.view, "pid")

    assert told == [between, between]


# -------------------------------------------------------------------------------------- who has one


@pytest.mark.requirement("S-40")
async def test_who_may_not_call_has_no_process_started(tmp_path: Path):
    rules = ALL.replace(
        'permit "all"', 'forbid "x" call on desk/put when arg(/text) == "x"\n  permit "all"'
    )
    async with isolated(tmp_path, rules) as stage:
        view = stage.agent("one").view
        error = await refusal(view, "desk/put", {"text": "x"})
        owned, processes = stage.pattern.owned, stage.processes

    assert (error.reason, nothing_sent(error)) == (DenyReason.FORBIDDEN, True)
    assert owned == ()
    assert len(processes) == 1


@pytest.mark.requirement("S-40")
async def test_the_record_names_the_agent_beside_the_label(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        agent = stage.agent("one")
        await say(agent.view, "get")
        agent.close()
        connected, ended = (
            stage.audit.fields("server_connected"),
            stage.audit.fields("server_ended"),
        )
        sent = [record for record in stage.audit.fields("sent") if record.get("agent") == "one"]

    assert [(one["server"], one.get("agent", "")) for one in connected] == [
        ("desk", ""),
        ("desk", "one"),
    ]
    assert [(one["server"], one["agent"], one["reason"]) for one in ended] == [
        ("desk", "one", "parent_closed")
    ]
    assert {record["method"] for record in sent} >= {"initialize", "tools/list", "tools/call"}


async def test_who_looks_at_the_session_sees_the_agent_beside_the_label(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        await say(stage.agent("one").view, "get")
        stage.agent("two")
        clock = HandClock()
        desk = ControlDesk(
            session=stage.session,
            run=RunId("20261201-101500-a1b2c3"),
            watch=Watch(clock.now, lambda _: None),
            audit=stage.audit,
            clock=clock,
            answer_seconds=1.0,
        )
        told = [desk.servers({})["servers"], desk.agent({"agent": "one"})["servers"]]
        nothing = desk.agent({"agent": "two"})
        shown = inspected(desk.agent({"agent": "one"}))

    own = {"name": "desk", "agent": "one", "state": "connected", "problem": "", "tools": 7}
    assert told == [[{**own, "agent": ""}, own], [own]]
    assert nothing["servers"] == []
    assert "for itself  desk: connected" in shown


@pytest.mark.requirement("S-40")
async def test_one_agent_more_than_there_is_room_for_is_told_so_and_has_nothing_sent(
    tmp_path: Path,
):
    async with isolated(tmp_path, limits=OrchestratorLimits(agent_servers_max=2)) as stage:
        agents = [stage.agent(name) for name in ("one", "two", "three")]
        first = [await say(agent.view, "pid") for agent in agents[:2]]
        error = await failure(agents[2].view, "desk/get")
        agents[0].close()
        await gone(int(first[0]))
        await until(lambda: len(stage.pattern.owned) == 1)
        after = await say(agents[2].view, "get")

    assert (error.code, error.delivery) == ("E-SERVER-AGENTS", Delivery.NOT_SENT)
    assert error.server == "desk"
    assert after == "nothing"


# --------------------------------------------------------------------------------- sessions over HTTP


@pytest.mark.requirement("S-40")
async def test_over_http_each_agent_has_a_session_of_its_own(tmp_path: Path):
    async with serve_http(Mcp()) as server:
        raw = {"url": server.url, "type": "http", "headers": {"Authorization": "x"}}
        found = entry_of({**raw, "isolate": "agent"})
        async with isolated(tmp_path, found=found) as stage:
            agents = [stage.agent(name) for name in ("one", "two")]
            sessions = [(await agent.view.call(wish("desk/add"))).text for agent in agents]
            agents[0].close()
            later = await refusal(agents[0].view, "desk/add")
            still = (await agents[1].view.call(wish("desk/add"))).text
        named = [
            call.headers.get("mcp-session-id", "")
            for call in server.calls
            if call.rpc_method == "tools/call"
        ]

    assert sessions == ["session-2", "session-3"]  # the first is the session's own
    assert nothing_sent(later)
    assert still == "session-3"
    assert named == ["session-2", "session-3", "session-3"]


@pytest.mark.requirement("S-40", "S-23")
async def test_agents_sessions_share_one_login_and_a_logout_reaches_them_all():
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world), isolate="agent") as stage:
            one, two = stage.agent("one"), stage.agent("two")
            await one.view.call(wish("far/echo"))
            await two.view.call(wish("far/echo"))
            opened = sent_with(world, "initialize")
            async with calling(one.view, "far/hold") as held:
                await until(lambda: world.resource.held)
                before = len(world.resource_log)
                receipt = await stage.session.log_out("far")
                stopped = await held.refused()
            refused = await refusal(two.view, "far/echo")
            after = [seen for seen in world.resource_log[before:] if seen.rpc != "tools/call"]

    assert [status for _, status in opened] == [200, 200, 200]
    assert {token for token, _ in opened} == {"token 0"}
    assert receipt.stopped == 1
    assert stopped.reason is refused.reason is DenyReason.LOGGED_OUT
    assert nothing_sent(refused)
    assert after == []


@pytest.mark.requirement("S-40", "S-3")
async def test_a_token_that_ended_is_renewed_once_for_the_sessions_of_all_agents():
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world), isolate="agent") as stage:
            one, two = stage.agent("one").view, stage.agent("two").view
            await one.call(wish("far/echo"))
            await two.call(wish("far/echo"))
            world.realm.end_access_tokens()
            await one.call(wish("far/echo"))
            await two.call(wish("far/echo"))
            renewals = len(world.token_requests)

    assert renewals == 1


@pytest.mark.requirement("S-40", "I8")
async def test_what_is_not_shown_any_more_ends_a_call_of_it_in_an_agents_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        listing = stage.pattern.listing
        assert listing is not None
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            stage.session.admit(listing, {"pid"})
            error = await call.refused()
        still = await say(view, "pid")

    assert error.reason is DenyReason.PIN_FORGOTTEN
    assert int(still) == process


# ------------------------------------------------------------------------------------- who is asked


class Somebody:
    """A person who answers every form with the name of the agent that they were told it is for."""

    interactive = True

    def __init__(self) -> None:
        self.asked: list[Elicitation] = []

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        self.asked.append(elicitation)
        return ElicitationAnswer(ElicitationAction.ACCEPT, {"branch": elicitation.agent})

    async def sample(self, wish: SamplingWish) -> str | None:
        return None


@pytest.mark.requirement("S-40", "S-13")
async def test_what_a_process_asks_is_laid_to_its_agent_though_others_call_at_that_server(
    tmp_path: Path,
):
    person = Somebody()
    async with isolated(tmp_path, host=person) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        busy = int(await say(two, "pid"))
        async with calling(two, "desk/hold"):
            await held(stage, busy)
            answered = await say(one, "ask")

    assert answered == "one"
    assert [(asked.server, asked.agent) for asked in person.asked] == [("desk", "one")]


async def test_a_call_that_a_person_says_no_to_is_not_made_in_the_agents_process_either(
    tmp_path: Path,
):
    rules = ALL.replace('permit "all"', 'ask "put" call on desk/put\n  permit "all"')
    async with isolated(tmp_path, rules, person=Person(think=lambda _: False)) as stage:
        view = stage.agent("one").view
        error = await refusal(view, "desk/put", {"text": "x"})
        kept = await say(view, "get")

    assert nothing_sent(error)
    assert kept == "nothing"
