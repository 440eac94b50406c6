"""Argument values on record: none, unless a policy keeps them; then these, bounded, without what is hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from orchestrator.audit.record import CHAIN_START, decode, encode
from orchestrator.broker.keeping import HIDDEN_VALUE, KEPT_BYTES_MAX, KEPT_COUNT_MAX, kept_of
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.limits import OrchestratorLimits
from policies import Decision, Effect
from policies.model import Keep, Redact
from tests.orchestrator.broker.stage import Person, policy_of, refusal, staged, wish

NAME_CHARS = OrchestratorLimits().tool_name_chars_max
OBLIGED = """
policy kept v1 {
  permit "all" call on any server/*
  oblige "evidence" call on files/read keep /amount, /to/0/iban, /none
}
"""
PAYMENT: Mapping[str, object] = {
    "amount": 12.5,
    "to": [{"iban": "DE02", "name": "Ada"}],
    "note": "secret",
}


def keeping(*duties: Keep | Redact) -> Decision:
    return Decision(effect=Effect.PERMIT, duties=duties)


async def test_without_such_a_rule_no_value_of_an_argument_is_on_record() -> None:
    async with staged() as stage:
        await stage.agent().view.call(wish("files/read", dict(PAYMENT)))

    said = json.dumps([dict(record.fields) for record in stage.audit.records])
    assert "DE02" not in said
    assert "secret" not in said


async def test_the_values_that_a_rule_names_are_on_record_before_the_call_goes_out() -> None:
    async with staged(OBLIGED) as stage:
        await stage.agent().view.call(wish("files/read", dict(PAYMENT)))

    (kept,) = stage.audit.fields("arguments_kept")
    (decision,) = stage.audit.fields("decision")
    assert kept == {
        **{name: decision[name] for name in ("call", "agent", "server", "tool")},
        "values": {"/amount": "12.5", "/to/0/iban": '"DE02"'},
        "left_out": 0,
    }
    kinds = [record.kind for record in stage.audit.records]
    assert kinds.index("decision") < kinds.index("arguments_kept") < kinds.index("call_ended")
    assert kinds.index("arguments_kept") < len(kinds) - 1 - kinds[::-1].index("sent")


async def test_calls_that_no_such_rule_is_about_are_on_record_as_ever() -> None:
    async with staged(OBLIGED) as stage:
        await stage.agent().view.call(wish("files/ok", dict(PAYMENT)))

    assert stage.audit.fields("arguments_kept") == []


async def test_a_call_that_is_refused_leaves_no_value_behind() -> None:
    text = OBLIGED.replace("permit", 'ask "read" call on files/read\n  permit', 1)
    async with staged(text, person=Person(lambda _: False)) as stage:
        error = await refusal(stage.agent().view, "files/read", dict(PAYMENT))

    assert error.reason is DenyReason.ASK_DECLINED
    assert stage.audit.fields("arguments_kept") == []


async def test_what_one_policy_keeps_and_what_a_later_one_keeps_is_kept() -> None:
    async with staged(OBLIGED) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(OBLIGED.replace("/amount, /to/0/iban", "/note")))
        await view.call(wish("files/read", dict(PAYMENT)))

    (kept,) = stage.audit.fields("arguments_kept")
    assert kept["values"] == {"/amount": "12.5", "/to/0/iban": '"DE02"', "/note": '"secret"'}


def test_a_rule_that_only_hides_makes_no_record() -> None:
    assert kept_of(PAYMENT, keeping(Redact(("/to",)))) is None


def test_where_all_is_kept_it_is_kept_member_by_member() -> None:
    kept = kept_of({"a/b": [1, {"z": None}], "c~": "ü"}, keeping(Keep(("",))))

    assert kept is not None
    assert kept.values == {"/a~1b": '[1,{"z":null}]', "/c~0": '"\\u00fc"'}


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("/to", {"/amount", "/note"}),
        ("/to/0/iban", {"/amount", "/note"}),
        ("/note", {"/amount", "/to"}),
        ("/amount/of", {"/to", "/note"}),
    ],
)
def test_what_the_policy_hides_in_results_is_hidden_on_record(hidden: str, shown: set[str]) -> None:
    kept = kept_of(PAYMENT, keeping(Keep(("",)), Redact((hidden,))))

    assert kept is not None
    assert set(kept.values) == {"/amount", "/to", "/note"}
    assert {name for name, text in kept.values.items() if text != HIDDEN_VALUE} == shown


def test_a_value_of_just_the_bound_is_kept_and_one_of_a_byte_more_is_left_out_whole() -> None:
    # `"/a":"\"…\""` in the record, with its colon and a comma
    room = KEPT_BYTES_MAX - len(json.dumps("/a")) - len(json.dumps('""')) - 2

    for size, there in ((room, True), (room + 1, False)):
        kept = kept_of({"a": "x" * size, "b": 1}, keeping(Keep(("",))))
        assert kept is not None
        assert ("/a" in kept.values, kept.left_out) == (there, 1)
        assert ("/b" in kept.values) is not there


def test_so_many_values_are_kept_and_the_next_is_left_out() -> None:
    for more in (0, 1):
        arguments = {f"a{number}": number for number in range(KEPT_COUNT_MAX + more)}
        kept = kept_of(arguments, keeping(Keep(("",))))
        assert kept is not None
        assert (len(kept.values), kept.left_out) == (KEPT_COUNT_MAX, more)


def test_what_is_kept_always_fits_a_record_whatever_it_is() -> None:
    worst: dict[str, object] = {f"\\\u2028{number}": '\\"\u2028' * 300 for number in range(80)}
    kept = kept_of(worst, keeping(Keep(("",))))

    assert kept is not None
    assert kept.left_out > 0
    ref = CapabilityRef(ServerName("s" * 64), CapabilityKind.TOOL, "t" * NAME_CHARS, "d1")
    fields = kept.record(CallId("c1"), AgentId("a" * NAME_CHARS), ref)
    line, _ = encode(1, 0.0, "arguments_kept", fields, CHAIN_START)
    assert decode(line[:-1]).fields["values"] == kept.values
