"""What comes with a decision is done: so many, so long, not these members of a result."""

from __future__ import annotations

import json

import pytest

from mcp_client.testing import ScriptedServer
from orchestrator import Call
from orchestrator.core.errors import DenyReason
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import (
    Person,
    calling,
    calls_at,
    policy_of,
    refusal,
    scripted,
    staged,
    until,
)

RATE = """
policy p v1 {
  permit "all" call on any server
  permit "hand on" delegate on any server
  limit "slow" call on files/ok rate 2 per 1m
}
"""


async def test_beyond_its_rate_a_call_is_refused_before_a_byte() -> None:
    async with staged(RATE) as stage:
        view = stage.agent().view
        for _ in range(2):
            await view.call(Call("files", "ok", {}))

        error = await refusal(view, "files/ok")

        assert (error.reason, error.rule) == (DenyReason.RATE_EXCEEDED, "slow")
        assert len(calls_at(stage.files)) == 2


async def test_after_its_stretch_a_rate_has_room_again() -> None:
    async with staged(RATE) as stage:
        view = stage.agent().view
        for _ in range(2):
            await view.call(Call("files", "ok", {}))
        stage.clock.time += 60

        assert (await view.call(Call("files", "ok", {}))).text == "ok"


async def test_what_a_child_uses_counts_for_its_parent() -> None:
    async with staged(RATE) as stage:
        parent = stage.agent()
        child = stage.agent("child", parent=parent).view
        for _ in range(2):
            await child.call(Call("files", "ok", {}))

        assert (await refusal(parent.view, "files/ok")).reason is DenyReason.RATE_EXCEEDED
        assert (await stage.agent("other").view.call(Call("files", "ok", {}))).text == "ok"


async def test_a_rate_of_the_session_counts_everybodys_calls() -> None:
    text = RATE.replace("per 1m", "per 1m per session")
    async with staged(text) as stage:
        for name in ("one", "two"):
            await stage.agent(name).view.call(Call("files", "ok", {}))

        error = await refusal(stage.agent("three").view, "files/ok")
        assert error.reason is DenyReason.RATE_EXCEEDED


async def test_a_budget_of_calls_is_spent_for_good() -> None:
    text = RATE.replace("rate 2 per 1m", "budget calls 1")
    async with staged(text) as stage:
        view = stage.agent().view
        await view.call(Call("files", "ok", {}))
        stage.clock.time += 86_400

        assert (await refusal(view, "files/ok")).reason is DenyReason.BUDGET_SPENT


async def test_a_policy_sees_what_the_agent_itself_has_used() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      limit "turns" call on files/ok budget turns 2
    }
    """
    source = """
def main(task):
    seen = []
    for _ in range(3):
        (found,) = yield [Call("files", "ok", {})]
        seen.append(found.error is None)
    return seen
"""
    async with staged(text) as stage:
        result = await stage.agent(model=recipe(source)).run("go")

    assert result.answer == [True, False, False]


async def test_a_person_is_waited_for_as_long_as_the_rule_says() -> None:
    person = Person(think=lambda _: None)
    text = 'policy p v1 { ask "quick" call on files/ok expires 10ms }'
    async with staged(text, person=person) as stage:
        error = await refusal(stage.agent().view, "files/ok")

    assert error.reason is DenyReason.ASK_UNANSWERED


def crm() -> ScriptedServer:
    server = scripted()
    people = [{"name": "Ada", "email": "ada@x"}, {"name": "Bob", "email": "bob@x"}]
    server.add_tool(
        "people",
        lambda _: {
            "content": [
                {"type": "text", "text": json.dumps({"people": people})},
                {"type": "text", "text": "mail ada@x"},
                {"type": "image", "data": "QUJD", "mimeType": "image/png"},
            ],
            "structuredContent": {"people": people, "count": 2},
        },
    )
    return server


async def test_what_a_policy_hides_is_in_no_part_of_a_result() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      oblige "hide" call on files/people redact /people/email
    }
    """
    async with staged(text, servers=[crm()]) as stage:
        content = await stage.agent().view.call(Call("files", "people", {}))

    assert "@x" not in json.dumps([list(map(dict, content.blocks)), content.structured])
    assert content.structured == {
        "people": [
            {"name": "Ada", "email": "[redacted]"},
            {"name": "Bob", "email": "[redacted]"},
        ],
        "count": 2,
    }
    assert [block["type"] for block in content.blocks] == ["text", "text", "text"]
    # what is data shows the rest of it; what is not shows nothing
    assert json.loads(str(content.blocks[0]["text"]))["people"][0]["name"] == "Ada"
    assert [str(block["text"])[:9] for block in content.blocks[1:]] == ["[redacted"] * 2


async def test_a_result_that_nothing_hides_is_as_it_was() -> None:
    async with staged(servers=[crm()]) as stage:
        content = await stage.agent().view.call(Call("files", "people", {}))

    assert "ada@x" in content.text


@pytest.mark.parametrize("pointer", ["/people/0/email", "/people"])
async def test_one_element_or_all_of_a_member_can_be_hidden(pointer: str) -> None:
    text = f"""
    policy p v1 {{
      permit "all" call on any server
      oblige "hide" call on files/people redact {pointer}
    }}
    """
    async with staged(text, servers=[crm()]) as stage:
        content = await stage.agent().view.call(Call("files", "people", {}))

    assert "ada@x" not in json.dumps(content.structured)


async def test_what_a_policy_hides_in_results_is_in_no_refusal_of_the_servers_either() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      oblige "hide" call on files/wait redact /people/email
    }
    """
    async with staged(text) as stage, calling(stage.agent().view, "files/wait") as call:
        await stage.files.until(lambda: stage.files.held)
        stage.files.held[0].refuse(-32000, "ada@x is there already")
        error = await call.failed()

    assert "ada@x" not in error.untrusted_detail
    assert error.untrusted_detail.startswith("[redacted")


async def test_nothing_stands_beside_a_text_in_which_something_is_hidden() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      oblige "hide" call on files/one redact /email
    }
    """
    server = scripted()
    block = {"type": "text", "text": '{"email": "ada@x"}', "_meta": {"raw": "ada@x"}}
    server.add_tool("one", lambda _: {"content": [block]})
    async with staged(text, servers=[server]) as stage:
        content = await stage.agent().view.call(Call("files", "one", {}))

    assert "ada@x" not in json.dumps(list(map(dict, content.blocks)))


@pytest.mark.parametrize(("before", "after"), [(1, 3), (9, 3)])
async def test_after_a_change_a_rate_of_the_same_name_is_the_new_one(
    before: int, after: int
) -> None:
    def text(count: int) -> str:
        return RATE.replace("rate 2 per 1m", f"rate {count} per 1m per session")

    async with staged(text(before)) as stage:
        await stage.agent("old").view.call(Call("files", "ok", {}))
        stage.session.replace_policy(policy_of(text(after)))
        stage.clock.time += 61
        view = stage.agent("new").view
        for _ in range(after):
            await view.call(Call("files", "ok", {}))

        assert (await refusal(view, "files/ok")).reason is DenyReason.RATE_EXCEEDED


async def test_a_budget_of_a_rule_that_was_raised_counts_a_call_once() -> None:
    text = RATE.replace("rate 2 per 1m", "budget calls {0}")
    async with staged(text.replace("{0}", "4")) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(text.replace("{0}", "5")))
        for _ in range(4):
            await view.call(Call("files", "ok", {}))

        assert (await refusal(view, "files/ok")).reason is DenyReason.BUDGET_SPENT


@pytest.mark.parametrize("said", ["5s", "5s deadline 50s", "50s deadline 5s"])
async def test_a_call_that_has_not_begun_when_the_policys_time_for_it_is_over_never_does(
    said: str,
) -> None:
    first, _, second = said.partition(" deadline ")
    rules = [
        f'limit "l{at}" call on files deadline {each}'
        for at, each in enumerate((first, second or first))
    ]
    async with staged(RATE.replace("limit", "\n".join(rules) + "\nlimit")) as stage:
        view = stage.agent().view
        stage.files.wire.block(after_bytes=0)
        async with calling(view, "files/read") as waiting:
            await until(lambda: stage.audit.of_kind("decision"))
            stage.clock.time += 5.5
            stage.files.wire.unblock()
            error = await waiting.refused()

        assert (error.reason, error.bytes_sent) == (DenyReason.DEADLINE_PASSED, 0)


async def test_a_pointer_to_what_a_result_has_not_hides_nothing_of_it() -> None:
    text = """
    policy p v1 {
      permit "all" call on any server
      oblige "hide" call on files/people redact /people/phone, /count/of, /none
    }
    """
    async with staged(text, servers=[crm()]) as stage:
        content = await stage.agent().view.call(Call("files", "people", {}))

    assert content.structured == {
        "people": [{"name": "Ada", "email": "ada@x"}, {"name": "Bob", "email": "bob@x"}],
        "count": 2,
    }


@pytest.mark.requirement("I6")
async def test_after_a_change_of_policy_the_duties_of_both_are_done() -> None:
    one = 'policy p v1 { permit "all" call on any server oblige "a" call on files/people redact /people/email }'
    other = one.replace("/people/email", "/people/name")
    async with staged(one, servers=[crm()]) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(other))
        content = await view.call(Call("files", "people", {}))

    hidden = {"name": "[redacted]", "email": "[redacted]"}
    assert content.structured == {"people": [hidden, hidden], "count": 2}
