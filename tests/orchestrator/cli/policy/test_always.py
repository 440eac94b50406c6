"""`remit policy always`: what is let through always is shown and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.always import AlwaysFile
from orchestrator.sessions.state import StatePaths
from tests.orchestrator.cli.running import Remit


@pytest.fixture
def kept(home: Path) -> str:
    """The id of a permit that is kept."""
    paths = StatePaths.from_environment({"REMIT_HOME": str(home)})
    book = AlwaysFile(paths, Path.cwd())
    book.keep(
        ApprovalRequest(
            agent=AgentId("a"),
            ref=CapabilityRef(ServerName("mail"), CapabilityKind.TOOL, "send", "d1"),
            call=CallId("c1"),
            arguments={"to": "me"},
        )
    )
    return book.all()[0].id


def test_permits_are_shown_as_they_stand_in_the_file(remit: Remit, kept: str):
    shown = remit("policy", "always", "list")
    listed = remit("policy", "always", "list", "--json")

    assert 'arg("/to") == "me"' in shown.out
    (permit,) = cast("list[dict[str, str]]", listed.json["permits"])
    assert permit["id"] == kept


def test_a_permit_is_taken_back_once(remit: Remit, kept: str):
    assert remit("policy", "always", "revoke", kept).code == 0
    assert remit("policy", "always", "revoke", kept, "--json").code == 2
    assert remit("policy", "always", "list", "--json").json == {"permits": []}
