"""What is refused before anything is sent: each cause, in its order, with zero bytes on the wire."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator.core.calls import Call
from orchestrator.core.errors import AuthorityError, DenyReason, ExitCode
from orchestrator.core.limits import OrchestratorLimits
from tests.orchestrator.broker.stage import OPEN, nothing_sent, refusal, staged

GUARDED = """
policy guarded v1 {
  permit "ok" call on any server/ok
  permit "short" call on files/read when arg(/path) under "/home"
  permit "any" call on files/wait
  forbid "shut" call on files/wait when arg(/n) > 3
}
"""
LIMITS = OrchestratorLimits(argument_bytes_max=64, argument_depth_max=4)


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.requirement("I28", "S-22")
async def test_without_an_admitted_snapshot_the_lists_are_empty() -> None:
    async with staged() as stage:
        blind = replace(stage.agent(), outfit=None)

    assert blind.snapshot is None
    assert list(blind.view.tools) == []


@pytest.mark.requirement("I28", "S-22")
@pytest.mark.parametrize("tool", ["files/read", "remit/list_capabilities", "nowhere/nothing"])
async def test_without_an_admitted_snapshot_every_call_is_refused_though_the_parent_may(
    tool: str,
) -> None:
    async with staged() as stage:
        blind = replace(stage.agent(), outfit=None)

        error = await refusal(blind.view, tool)

        assert error.reason is DenyReason.NO_VIEW
        assert nothing_sent(error)
        assert await stage.settled() == []


@pytest.mark.requirement("I28")
async def test_a_refusal_for_want_of_a_view_comes_before_any_look_at_the_arguments() -> None:
    async with staged() as stage:
        blind = replace(stage.agent(), outfit=None)

        assert (await refusal(blind.view, "files/read", [1])).reason is DenyReason.NO_VIEW


@pytest.mark.parametrize("tool", ["files/nothing", "elsewhere/read", "files/READ", "/", "remit/x"])
async def test_what_is_not_in_the_snapshot_cannot_be_called(tool: str) -> None:
    async with staged() as stage:
        error = await refusal(stage.agent().view, tool, {"path": "x"})

        assert error.reason is DenyReason.NOT_IN_SNAPSHOT
        assert nothing_sent(error)
        assert await stage.settled() == []


async def test_what_the_grant_leaves_out_is_not_in_the_snapshot() -> None:
    async with staged() as stage:
        agent = stage.agent(tools=("files/read",))

        assert (await refusal(agent.view, "files/ok")).reason is DenyReason.NOT_IN_SNAPSHOT
        assert [tool.tool for tool in agent.view.tools] == ["read"]


async def test_a_name_as_long_as_a_book_is_refused_and_recorded_short() -> None:
    async with staged() as stage:
        error = await refusal(stage.agent().view, "files/" + "x" * 1_000_000)

        assert error.reason is DenyReason.NOT_IN_SNAPSHOT
        assert len(error.message) < 1_000
        assert len(str(stage.audit.fields("refused")[0]["tool"])) < 1_000


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([1], id="a list"),
        pytest.param("text", id="a text"),
        pytest.param({1: "x"}, id="a key that is a number"),
        pytest.param({"n": math.nan}, id="not a number"),
        pytest.param({"n": math.inf}, id="infinity"),
        pytest.param({"o": object()}, id="an object"),
        pytest.param({"b": b"x"}, id="bytes"),
        pytest.param({"t": "\ud800"}, id="a lone surrogate"),
        pytest.param({"\udfff": 1}, id="a lone surrogate in a key"),
        pytest.param(deep(LIMITS.argument_depth_max + 1), id="one too deep"),
        pytest.param({"p": "x" * (LIMITS.argument_bytes_max - 7)}, id="one byte too large"),
    ],
)
async def test_arguments_that_are_no_bounded_json_object_reach_nobody(arguments: object) -> None:
    async with staged(limits=LIMITS) as stage:
        error = await refusal(stage.agent().view, "files/read", arguments)

        assert error.reason is DenyReason.BAD_ARGUMENTS
        assert nothing_sent(error)
        assert await stage.settled() == []


async def test_a_dictionary_that_holds_itself_reaches_nobody() -> None:
    knot: dict[str, object] = {}
    knot["again"] = knot
    async with staged() as stage:
        error = await refusal(stage.agent().view, "files/read", knot)

    assert error.reason is DenyReason.BAD_ARGUMENTS


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(deep(LIMITS.argument_depth_max), id="as deep as may be"),
        pytest.param({"p": "x" * (LIMITS.argument_bytes_max - 8)}, id="as large as may be"),
    ],
)
async def test_arguments_at_the_bound_are_sent(arguments: dict[str, object]) -> None:
    async with staged(limits=LIMITS) as stage:
        await stage.agent().view.call(Call("files", "read", arguments))

        assert await stage.settled() == [{"name": "read", "arguments": arguments}]


async def test_what_a_rule_forbids_for_these_arguments_is_refused_with_the_rule() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/wait", {"n": 4})

        assert error.reason is DenyReason.FORBIDDEN
        assert error.rule == '"shut" (test.policy:6)'
        assert nothing_sent(error)
        assert await stage.settled() == []


@pytest.mark.requirement("I10")
async def test_a_forbid_whose_condition_has_no_value_forbids() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/wait", {"n": "many"})

    assert error.reason is DenyReason.FORBIDDEN


async def test_what_no_rule_permits_names_the_nearest_permit_and_what_it_lacked() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/read", {"path": "/etc/passwd"})

        assert error.reason is DenyReason.NO_PERMIT
        assert error.rule == 'nearest "short" (test.policy:4)'
        assert "/path" in error.why
        assert nothing_sent(error)
        assert await stage.settled() == []


async def test_an_explanation_does_not_repeat_the_value_that_was_refused() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/read", {"path": "/etc/passwd"})

    assert "/etc/passwd" not in f"{error} {error.why} {error.rule} {error.fix}"


async def test_a_refusal_carries_the_exit_code_of_a_denial() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/wait", {"n": 4})

    assert (error.exit_code, error.code) == (ExitCode.DENIED, "E-AUTHORITY-FORBIDDEN")


async def test_arguments_are_looked_at_before_the_policy_is_asked() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.agent().view, "files/wait", {"n": math.nan})

    assert error.reason is DenyReason.BAD_ARGUMENTS


async def test_what_is_dead_is_told_before_what_is_forbidden() -> None:
    async with staged(GUARDED) as stage:
        view = stage.agent().view
        stage.session.remove_server("files")

        error = await refusal(view, "files/wait", {"n": 4})

    assert error.reason is DenyReason.SERVER_REMOVED


@pytest.mark.requirement("S-48")
async def test_without_a_policy_and_without_a_person_every_call_is_refused_with_what_mends_it() -> (
    None
):
    async with staged('policy p v1 { ask "each" call on any server/* }') as stage:
        error = await refusal(stage.agent().view, "files/read", {"path": "x"})

        assert error.reason is DenyReason.ASK_UNANSWERED
        assert error.exit_code is ExitCode.INPUT_REQUIRED
        assert "remit init --policy" in error.fix
        assert nothing_sent(error)


async def test_each_refusal_leaves_one_record_with_its_reason_rule_and_bytes() -> None:
    async with staged(GUARDED) as stage:
        await refusal(stage.agent().view, "files/wait", {"n": 4})

        assert stage.audit.of_kind("decision") == ()
        assert [dict(fields) for fields in stage.audit.fields("refused")] == [
            {
                "call": "id00000001",
                "agent": "worker",
                "server": "files",
                "tool": "wait",
                "arguments": "digest of 7 bytes",
                "reason": "forbidden",
                "rule": '"shut" (test.policy:6)',
                "delivery": "not_sent",
                "bytes_sent": 0,
            }
        ]


async def test_a_refusal_whose_record_the_disk_does_not_take_is_still_a_refusal() -> None:
    async with staged(GUARDED) as stage:
        view = stage.agent().view
        stage.audit.full = True

        error = await refusal(view, "files/wait", {"n": 4})

    assert error.reason is DenyReason.FORBIDDEN


@pytest.mark.requirement("S-26")
async def test_the_parents_own_agent_is_refused_by_the_same_rules() -> None:
    async with staged(GUARDED) as stage:
        error = await refusal(stage.session.view, "files/wait", {"n": 4})

        assert error.reason is DenyReason.FORBIDDEN
        assert stage.audit.fields("refused")[0]["agent"] == "parent"
        assert await stage.settled() == []


async def test_a_caller_that_changes_its_arguments_afterwards_changes_nothing() -> None:
    async with staged(OPEN) as stage:
        arguments: dict[str, object] = {"path": "a"}
        view = stage.agent().view
        awaiting = view.call(Call("files", "read", arguments))
        content = await awaiting
        arguments["path"] = "b"

        assert content.text == "content of a"
        assert await stage.settled() == [{"name": "read", "arguments": {"path": "a"}}]


def test_a_refusal_is_no_error_of_the_connection() -> None:
    assert not issubclass(AuthorityError, OSError)
