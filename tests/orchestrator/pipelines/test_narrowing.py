from __future__ import annotations

import pytest

from orchestrator.authority.admission import Grant
from orchestrator.authority.snapshot import Row
from orchestrator.core.calls import CallMethod
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import ServerName
from orchestrator.pipelines.narrowing import refuse_widened
from policies import Effect


def row(*effects: Effect, digest: str = "d", granted: bool = True) -> Row:
    ref = CapabilityRef(ServerName("git"), CapabilityKind.TOOL, "git_log", digest)
    return Row(ref=ref, effects=frozenset(effects), rule="", granted=granted)


PERMIT, ASK, FORBID = Effect.PERMIT, Effect.ASK, Effect.FORBID


@pytest.mark.parametrize(
    ("planned", "spawned"),
    [
        (row(PERMIT), row(PERMIT)),
        (row(PERMIT, ASK), row(ASK)),
        (row(PERMIT), row(ASK)),
        (row(PERMIT), row(FORBID)),
        (row(ASK), row(PERMIT, granted=False)),
    ],
)
def test_what_is_the_same_or_less_is_taken(planned: Row, spawned: Row):
    refuse_widened("a", [spawned], [planned], None)


@pytest.mark.parametrize(
    ("planned", "spawned"),
    [
        ([row(ASK)], row(PERMIT)),
        ([row(ASK)], row(PERMIT, ASK)),
        ([row(FORBID)], row(ASK)),
        ([row(PERMIT, granted=False)], row(PERMIT)),
        ([row(PERMIT, digest="another")], row(PERMIT)),
        ([], row(PERMIT)),
    ],
)
def test_what_is_more_than_was_planned_is_refused(planned: list[Row], spawned: Row):
    with pytest.raises(RemitError) as caught:
        refuse_widened("a", [spawned], planned, None)

    assert caught.value.code == "E-PIPELINE-WIDENED"


def test_what_lies_outside_of_the_border_is_refused_though_it_was_planned():
    with pytest.raises(RemitError):
        refuse_widened("a", [row(PERMIT)], [row(PERMIT)], Grant(tools=("git/git_show",)))


def test_what_was_planned_for_one_operation_is_none_for_another():
    def asked(method: CallMethod) -> Row:
        ref = CapabilityRef(ServerName("git"), CapabilityKind.RESOURCE, "git://log", "d")
        return Row(ref=ref, effects=frozenset({PERMIT}), rule="", granted=True, method=method)

    with pytest.raises(RemitError) as caught:
        refuse_widened("a", [asked(CallMethod.COMPLETE)], [asked(CallMethod.READ)], None)

    assert caught.value.code == "E-PIPELINE-WIDENED"
