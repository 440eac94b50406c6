"""A process of its own for each agent: nothing is shared, nothing outlives the agent, nothing falls back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import anyio.lowlevel
import pytest

from mcp_client.protocol.peer.elicitation import ElicitationAction, ElicitationAnswer
from mcp_client.testing.http_server import serve_http
from orchestrator import AuthorityError, Call, Grant
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
    IDLE,
    Person,
    calling,
    failure,
    nothing_sent,
    policy_of,
    refusal,
    until,
    wish,
)
from tests.orchestrator.sessions.isolated_stage import (
    ALL,
    DESK,
    Isolated,
    entry,
    entry_of,
    isolated,
    say,
)
from tests.orchestrator.sessions.login_stage import login_stage
from tests.orchestrator.sessions.test_logins import sent_with, with_login
from tests.servers.oauth.running import oauth_world

OTHER = ALL.replace("policy open v1", "policy other v1").replace(
    'permit "all"', 'forbid "not now" call on desk/put\n  permit "all"'
)
HANDED_ON = ALL.replace('permit "all"', 'permit "hand on" delegate on desk/*\n  permit "all"')


ACTS: Mapping[str, Callable[[Isolated], object]] = {
    "cancelled": lambda stage: stage.session.cancel_agent("one"),
    "killed": lambda stage: stage.session.cancel_agent("one", hard=True),
    "removed": lambda stage: stage.session.remove_server("desk"),
    "disabled": lambda stage: stage.session.disable_server("desk"),
    "reloaded": lambda stage: stage.session.reload([entry(stage.folder, timeout=1000)]),
    "gone": lambda stage: stage.session.reload([]),
    "closed": lambda stage: stage.session.close(),
}


TELLS_PROCESS = recipe(
    "from orchestrator import Call\n"
    "def main(task):\n"
    "    found = yield Call('desk', 'pid', {})\n"
    "    return found.text\n"
)


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(process: int) -> None:
    """Wait until a process is no more."""
    await until(lambda: not is_there(process))


async def held(stage: Isolated, process: int) -> None:
    """Wait until a process has read a call that it does not answer."""
    await until(lambda: any(_name(message) == "hold" for message in stage.read_by(process)))


def _name(message: Mapping[str, object]) -> object:
    params = message.get("params", {})
    return cast("Mapping[str, object]", params).get("name")


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


# ------------------------------------------------------------------------------------- taking it back


@pytest.mark.requirement("S-40", "I1")
@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
async def test_nothing_reaches_an_agents_process_after_agent_or_server_was_taken_back(
    tmp_path: Path, act: Callable[[Isolated], object]
):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            before = len(stage.read_by(process))
            act(stage)
            error = await call.refused()
            later = await refusal(view, "desk/put", {"text": "late"})
            await gone(process)
        after = stage.read_by(process)

    assert error.delivery is Delivery.MAYBE_SENT
    assert nothing_sent(later)
    assert len(after) == before


@pytest.mark.requirement("S-40")
async def test_the_receipt_of_an_agents_end_tells_of_the_call_in_its_own_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            receipt = await stage.session.cancel_agent("one")
            await call.refused()

    assert (receipt.stopped, receipt.maybe_sent) == (1, 1)


@pytest.mark.requirement("S-40")
async def test_the_process_of_an_agent_is_gone_once_the_agent_is(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        agent, other = stage.agent("one"), stage.agent("two")
        process = int(await say(agent.view, "pid"))
        beside = int(await say(other.view, "pid"))
        agent.close()
        await gone(process)
        await until(lambda: [each.agent for each in stage.pattern.owned] == ["two"])
        still = await say(other.view, "pid")

    assert int(still) == beside


@pytest.mark.requirement("S-40")
async def test_the_processes_of_all_below_an_agent_end_with_it(tmp_path: Path):
    async with isolated(tmp_path, HANDED_ON) as stage:
        parent = stage.agent("one")
        child = stage.agent("below", parent=parent)
        processes = [int(await say(each.view, "pid")) for each in (parent, child)]
        parent.cancel()
        for process in processes:
            await gone(process)


@pytest.mark.requirement("S-40", "I4")
async def test_a_process_that_is_being_started_when_the_agent_ends_is_given_nothing(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        agent = stage.agent("one")
        async with calling(agent.view, "desk/put", {"text": "x"}) as call:
            await until(lambda: stage.pattern.owned)
            agent.cancel()
            error = await call.refused()
        await until(lambda: not stage.pattern.owned)
        read = [
            message.get("method") for each in stage.processes for message in stage.read_by(each)
        ]

    assert nothing_sent(error)
    assert "tools/call" not in read


@pytest.mark.requirement("S-40", "I9")
async def test_another_policy_reaches_a_call_in_an_agents_own_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            stage.session.replace_policy(policy_of(OTHER))
            error = await call.refused()
        forbidden = await refusal(view, "desk/put", {"text": "x"})
        still = await say(view, "pid")

    assert error.reason is DenyReason.POLICY_CHANGED
    assert forbidden.reason is DenyReason.FORBIDDEN
    assert int(still) == process


@pytest.mark.requirement("S-40", "I1")
async def test_whatever_step_an_agent_ends_in_a_refusal_that_says_unsent_was_unsent(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        for steps in range(16):
            agent = stage.agent(f"agent{steps}")
            process = int(await say(agent.view, "pid"))
            async with calling(agent.view, "desk/put", {"text": "x"}) as call:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                agent.cancel()
                await call.done.wait()
            await gone(process)
            unsent = isinstance(call.error, AuthorityError) and nothing_sent(call.error)
            read = [_name(message) for message in stage.read_by(process)]

            assert not (unsent and "put" in read), steps


@pytest.mark.requirement("S-40")
async def test_what_a_person_does_beside_their_assistant_is_done_in_its_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        assistant = stage.session.assistant(model=IDLE)
        await say(assistant.view, "put", text="said to it")
        kept = await say(stage.session.view, "get")

    assert kept == "said to it"


async def test_all_processes_are_gone_once_the_session_is(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        for name in ("one", "two"):
            await say(stage.agent(name).view, "get")
        processes = stage.processes

    assert len(processes) == 3
    for process in processes:
        assert not is_there(process)


# --------------------------------------------------------------------------------- what goes wrong


@pytest.mark.requirement("S-40")
async def test_the_crash_of_one_agents_process_leaves_the_others_alone_and_starts_no_other(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(two, "put", text="safe")
        await failure(one, "desk/quit")
        await until(lambda: len(stage.pattern.owned) == 1)
        lost = await refusal(one, "desk/get")
        kept = await say(two, "get")
        fresh = await say(stage.agent("three").view, "get")
        records = stage.audit.fields("server_lost")

    assert (lost.reason, nothing_sent(lost)) == (DenyReason.SERVER_DISCONNECTED, True)
    assert (kept, fresh) == ("safe", "nothing")
    assert [(one["server"], one["agent"], one["state"]) for one in records] == [
        ("desk", "one", "lost")
    ]


async def test_an_agent_whose_process_does_not_start_is_told_so(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        (tmp_path / "mute").touch()
        error = await failure(stage.agent("one").view, "desk/get")
        (tmp_path / "mute").unlink()
        other = await say(stage.agent("two").view, "get")

    assert error.delivery is Delivery.NOT_SENT
    assert error.code.startswith("E-SERVER-")
    assert other == "nothing"


@pytest.mark.requirement("S-40", "S-45")
async def test_a_definition_that_differs_from_what_was_shown_is_dead_in_that_process(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        (tmp_path / "odd").touch()
        view = stage.agent("one").view
        odd = await refusal(view, "desk/get")
        same = await say(view, "put", text="x")
        (record,) = stage.audit.fields("definition_changed")

    assert (odd.reason, nothing_sent(odd)) == (DenyReason.DEFINITION_CHANGED, True)
    assert same == "x"
    assert (record["agent"], record["tools"], record["count"]) == ("one", ["get"], 1)


@pytest.mark.requirement("S-40", "I8")
async def test_a_definition_that_changes_in_one_agents_process_is_dead_there_alone(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(two, "get")
        await say(one, "change")
        await until(lambda: stage.audit.fields("definition_changed"))
        changed = await refusal(one, "desk/get")
        still = await say(two, "get")

    assert changed.reason is DenyReason.DEFINITION_CHANGED
    assert still == "nothing"


@pytest.mark.requirement("S-40")
async def test_what_is_not_shown_any_more_is_dead_in_the_process_of_each_agent(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        await say(view, "get")
        listing = stage.pattern.listing
        assert listing is not None
        stage.session.admit(listing, {"put", "pid"})
        error = await refusal(view, "desk/get")
        stage.session.admit(listing)
        still = await refusal(view, "desk/get")
        fresh = await say(stage.agent("two").view, "get")

    assert nothing_sent(error)
    assert error.reason is still.reason is DenyReason.PIN_FORGOTTEN
    assert fresh == "nothing"


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
