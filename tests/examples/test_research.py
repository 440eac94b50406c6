"""Research over fifty documents: the same end each time, and every claim with a line that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.examples.running import approved, copied, remit
from tests.orchestrator.cli.running import Finished

pytestmark = pytest.mark.subprocess


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Finished]:
    folder = copied(tmp_path_factory.mktemp("research"), "research")
    flags = approved(folder, "research.toml")
    return folder, remit(folder, "run", "research.toml", "--json", *flags)


def answers(finished: Finished) -> dict[str, Any]:
    return cast("dict[str, Any]", cast("dict[str, Any]", finished.json["result"])["value"])


def test_it_ends_well_by_itself(ended: tuple[Path, Finished]):
    assert (ended[1].code, ended[1].json["status"]) == (0, "ok")


def test_every_document_is_read_once_by_an_agent_of_its_own(ended: tuple[Path, Finished]):
    found = answers(ended[1])

    assert len(found["librarian"]) == len(found["reader"]) == 50
    assert [report["document"] for report in found["reader"] if report] == [
        name for name in found["librarian"] if name != "incident-17.md"
    ]


def test_the_document_that_says_nothing_is_counted_and_not_obeyed(ended: tuple[Path, Finished]):
    folder, finished = ended

    assert answers(finished)["analyst"]["unreadable"] == 1
    assert len(list((folder / "documents").iterdir())) == 50


def test_every_citation_is_a_line_of_its_document(ended: tuple[Path, Finished]):
    folder, finished = ended
    findings = answers(finished)["analyst"]["findings"]
    citations = [item for finding in findings for item in finding["citations"]]

    assert len(citations) == answers(finished)["checker"]["citations"] > 40
    for item in citations:
        lines = (folder / "documents" / item["document"]).read_text().splitlines()
        assert lines[item["line"] - 1] == item["quote"]
