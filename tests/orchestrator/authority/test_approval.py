"""A person's yes: good for one use."""

from __future__ import annotations

import pytest

from orchestrator.authority.approval import Approval
from orchestrator.core.ids import CallId


@pytest.mark.requirement("I19")
def test_an_approval_can_be_used_once() -> None:
    approval = Approval(
        call=CallId("c1"),
        agent_incarnation=1,
        policy_generation=0,
        definition_digest="d",
        params=b"a",
        expires=10.0,
    )

    assert [approval.use() for _ in range(3)] == [True, False, False]
