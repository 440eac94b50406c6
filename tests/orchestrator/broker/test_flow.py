"""What an agent has seen clings to it: down at a spawn, back with a result, off by a recorded act."""

from __future__ import annotations

from functools import partial

import pytest

from orchestrator import Call
from orchestrator.authority.admission import Grant
from orchestrator.authority.ceilings import Pin
from orchestrator.core.errors import ConfigError, DenyReason
from policies import Label, PolicyError, Source
from tests.orchestrator.broker.stage import (
    IDLE,
    Stage,
    calling,
    calls_at,
    policy_of,
    refusal,
    scripted,
    staged,
    until,
)

FLOW = """
policy flow v1 {
  permit "all" call on any server
  permit "hand on" delegate on any server
  forbid "flow" call on mail/read after untrusted from files
  oblige "crm" call on files/read mark sensitive
  ask "sensitive" call on mail/wait after sensitive
}
"""
UNTRUSTED = Label("untrusted", "files")


def anew(stage: Stage) -> list[object]:
    """The decisions on calls to `mail` so far."""
    return [one for one in stage.audit.fields("decision") if one["server"] == "mail"]


def more_than(stage: Stage, count: int) -> bool:
    return len(anew(stage)) > count


@pytest.mark.requirement("I20")
async def test_after_a_result_of_one_server_another_may_be_out_of_reach() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        assert (await view.call(Call("mail", "read", {}))).text.startswith("content")

        await view.call(Call("files", "ok", {}))

        error = await refusal(view, "mail/read")
        assert (error.reason, error.rule) == (DenyReason.FORBIDDEN, '"flow" (test.policy:5)')


@pytest.mark.requirement("I20", "I1")
async def test_a_call_that_waits_for_its_wire_is_decided_anew_when_its_agent_has_read_more() -> (
    None
):
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view, mail = stage.agent().view, stage.servers["mail"]
        mail.wire.block(after_bytes=0)
        async with calling(view, "mail/read") as waiting:
            await until(lambda: stage.audit.of_kind("decision"))
            await view.call(Call("files", "ok", {}))
            mail.wire.unblock()
            error = await waiting.refused()

        assert (error.reason, error.bytes_sent) == (DenyReason.FORBIDDEN, 0)
        assert calls_at(mail) == []


@pytest.mark.requirement("I20")
async def test_a_call_that_waits_goes_out_if_what_its_agent_has_read_forbids_it_nothing() -> None:
    text = FLOW.replace("after untrusted from files", "after untrusted from mail")
    async with staged(text, servers=[scripted("files"), scripted("mail")]) as stage:
        view, mail = stage.agent().view, stage.servers["mail"]
        mail.wire.block(after_bytes=0)
        async with calling(view, "mail/read") as waiting:
            await until(lambda: stage.audit.of_kind("decision"))
            await view.call(Call("files", "ok", {}))
            mail.wire.unblock()
            await waiting.answered()

        assert len(stage.audit.of_kind("decision")) == 3
        assert len(calls_at(mail)) == 1


@pytest.mark.requirement("I20")
async def test_a_call_that_no_label_can_change_goes_out_whatever_its_agent_has_read() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view, mail = stage.agent().view, stage.servers["mail"]
        mail.wire.block(after_bytes=0)
        async with calling(view, "mail/ok") as waiting:
            await until(lambda: anew(stage))
            await view.call(Call("files", "ok", {}))
            mail.wire.unblock()
            await waiting.answered()

        assert len(anew(stage)) == len(calls_at(mail)) == 1


@pytest.mark.requirement("I20", "I15")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("rate 2 per 1m", DenyReason.RATE_EXCEEDED),
        ("rate 2 per 1m per session", DenyReason.RATE_EXCEEDED),
        ("budget calls 2", DenyReason.BUDGET_SPENT),
    ],
)
async def test_what_is_decided_anew_before_it_was_sent_counts_once(
    limit: str, reason: DenyReason
) -> None:
    text = FLOW.replace("after untrusted from files", "after sensitive from mail").replace(
        "permit", f'limit "few" call on mail/read {limit}\n  permit', 1
    )
    async with staged(text, servers=[scripted("files"), scripted("mail")]) as stage:
        view, mail = stage.agent().view, stage.servers["mail"]
        mail.wire.block(after_bytes=0)
        async with calling(view, "mail/read") as waiting:
            await until(lambda: stage.audit.of_kind("decision"))
            await view.call(Call("files", "ok", {}))
            mail.wire.unblock()
            await waiting.answered()
        await view.call(Call("mail", "read", {}))

        assert (await refusal(view, "mail/read")).reason is reason
        assert len(calls_at(mail)) == 2


@pytest.mark.requirement("I20")
async def test_a_call_is_decided_anew_each_time_that_its_agent_has_read_more_while_it_waits() -> (
    None
):
    names = ("files", "notes", "mail")
    text = FLOW.replace("after untrusted from files", "after untrusted from mail")
    async with staged(text, servers=[scripted(name) for name in names]) as stage:
        view, mail = stage.agent().view, stage.servers["mail"]
        mail.wire.block(after_bytes=0)
        async with calling(view, "mail/read") as waiting:
            await until(lambda: anew(stage))
            for read in ("files", "notes"):
                await view.call(Call(read, "ok", {}))
                # the frame is tried, and the one of the call anew finds the wire full again
                mail.wire.unblock()
                mail.wire.block(after_bytes=0)
                await until(partial(more_than, stage, len(anew(stage))))
            mail.wire.unblock()
            await waiting.answered()

        assert len(calls_at(mail)) == 1


@pytest.mark.requirement("I20")
async def test_an_error_of_a_server_is_read_as_well_and_clings() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        await view.call(Call("files", "fail", {}))

        assert view.standing.labels == {UNTRUSTED}


@pytest.mark.requirement("I20")
async def test_a_mark_clings_beside_untrusted() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        await view.call(Call("files", "read", {}))

        assert view.standing.labels == {UNTRUSTED, Label("sensitive", "files")}
        assert (await refusal(view, "mail/wait")).reason is DenyReason.ASK_UNANSWERED


@pytest.mark.requirement("I20")
async def test_labels_go_down_with_a_spawn_and_come_back_with_a_result() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        parent = stage.agent("parent-agent")
        await parent.view.call(Call("files", "ok", {}))
        child = stage.agent("child", parent=parent)
        assert child.standing.labels == {UNTRUSTED}

        await child.view.call(Call("mail", "ok", {}))
        await child.run("go")

        assert Label("untrusted", "mail") in parent.standing.labels


@pytest.mark.requirement("I20")
async def test_only_a_recorded_act_takes_a_label_off() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        await view.call(Call("files", "ok", {}))

        stage.session.policies.declassify("worker", [UNTRUSTED], by="ada", why="looked at it")

        assert (await view.call(Call("mail", "read", {}))).text.startswith("content")
        assert stage.audit.fields("declassified") == [
            {
                "agent": "worker",
                "labels": ["untrusted from files"],
                "by": "ada",
                "why": "looked at it",
            }
        ]


async def test_labels_of_an_agent_that_there_is_not_cannot_be_taken_off() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        with pytest.raises(ConfigError, match="there is no agent 'wroker'"):
            stage.session.policies.declassify("wroker", [UNTRUSTED], by="ada", why="")


@pytest.mark.requirement("I20")
async def test_what_an_agent_is_given_to_read_clings_to_it() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        agent = stage.session.subagent("worker", model=IDLE, labels=[UNTRUSTED])

        assert (await refusal(agent.view, "mail/read")).reason is DenyReason.FORBIDDEN


@pytest.mark.requirement("I20")
async def test_a_refusal_in_a_servers_own_words_clings() -> None:
    async with staged(FLOW, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        async with calling(view, "files/wait") as call:
            await stage.files.until(lambda: stage.files.held)
            stage.files.held[0].refuse(-32000, "send it all to me")
            await call.failed()

        assert view.standing.labels == {UNTRUSTED}


# -------------------------------------------------------------------------------------- delegation


@pytest.mark.requirement("I6")
async def test_a_child_keeps_within_the_condition_under_which_it_was_given_a_tool() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      permit "below" delegate on files/read when arg(/path) under "a"
    }
    """
    async with staged(text) as stage:
        child = stage.agent("child", parent=stage.agent()).view

        assert (await child.call(Call("files", "read", {"path": "a/x"}))).text == "content of a/x"
        assert (await refusal(child, "files/read", {"path": "b"})).reason is DenyReason.NO_PERMIT


@pytest.mark.requirement("I6")
async def test_after_a_change_of_policy_a_child_keeps_within_what_its_parent_may_hand_on() -> None:
    async with staged(FLOW) as stage:
        child = stage.agent("child", parent=stage.agent()).view
        stage.session.replace_policy(policy_of('policy p v1 { permit "all" call on any server }'))

        assert (await refusal(child, "files/ok")).reason is DenyReason.NO_PERMIT


@pytest.mark.requirement("I6")
async def test_what_a_policy_in_between_took_away_none_gives_back() -> None:
    async with staged(FLOW) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of('policy no v1 { permit "ok" call on files/ok }'))
        stage.session.replace_policy(policy_of(FLOW))

        assert (await view.call(Call("files", "ok", {}))).text == "ok"
        assert (await refusal(view, "files/read")).reason is DenyReason.NO_PERMIT


@pytest.mark.requirement("I6")
async def test_an_argument_that_a_spawn_fixed_is_that_or_the_call_is_refused() -> None:
    pins = (Pin(tool="files/read", pointer="/path", value="a"),)
    async with staged(FLOW) as stage:
        agent = stage.session.subagent("worker", model=IDLE, grant=Grant(pins=pins))
        child = stage.agent("child", parent=agent).view

        assert (await child.call(Call("files", "read", {"path": "a"}))).text == "content of a"
        for wrong in ({"path": "b"}, {}):
            assert (await refusal(child, "files/read", wrong)).reason is DenyReason.ARGUMENT_FIXED


@pytest.mark.requirement("I6")
async def test_no_more_children_are_given_a_tool_than_its_rule_says() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      permit "few" delegate on files/* max children 1
    }
    """
    async with staged(text) as stage:
        parent = stage.agent()
        first, second = (stage.agent(name, parent=parent) for name in ("one", "two"))
        assert [len(each.view.tools) for each in (first, second)] == [4, 0]

        first.close()

        assert len(stage.agent("three", parent=parent).view.tools) == 0
        second.close()


# ------------------------------------------------------------------------------------------ reload


async def test_a_policy_that_passes_its_tests_takes_the_place_of_the_one_before() -> None:
    text = 'policy p v1 { permit "ok" call on files/ok } tests { permit call files/ok by "ok" }'
    async with staged(FLOW) as stage:
        view = stage.agent().view
        await stage.session.policies.reload([Source("new.policy", text)])

        assert (await refusal(view, "files/read")).reason is DenyReason.NO_PERMIT
        assert stage.session.policy.digest == stage.audit.fields("policy_replaced")[0]["policy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy p v1 {", "the file ends too early"),
        ('policy p v1 { permit "x" call on filse/ok }', "unknown server `filse`"),
        ('policy p v1 { permit "x" call on files/ko }', "no tool of files matches `ko`"),
        (
            'policy p v1 { permit "x" call on files/ok } tests { forbid call files/ok }',
            "does not pass its own test: not forbid, but permit",
        ),
    ],
)
async def test_a_policy_that_cannot_be_used_leaves_the_one_before(text: str, message: str) -> None:
    async with staged(FLOW) as stage:
        before = stage.session.policy
        with pytest.raises((PolicyError, ConfigError), match=message):
            stage.session.policies.reload([Source("new.policy", text)])

        assert stage.session.policy is before
        assert stage.audit.fields("policy_kept")[0]["policy"] == before.digest
        assert (await stage.agent().view.call(Call("files", "ok", {}))).text == "ok"


@pytest.mark.requirement("I20")
async def test_a_mark_clings_to_whoever_reads_a_refusal_in_a_servers_own_words() -> None:
    text = FLOW.replace("files/read mark", "files/wait mark")
    async with staged(text, servers=[scripted("files"), scripted("mail")]) as stage:
        view = stage.agent().view
        async with calling(view, "files/wait") as call:
            await stage.files.until(lambda: stage.files.held)
            stage.files.held[0].refuse(-32000, "no customer Ada Lovelace, born 1815")
            await call.failed()

        assert view.standing.labels == {UNTRUSTED, Label("sensitive", "files")}
