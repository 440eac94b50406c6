"""The page on the security model names tests that are there, and that try the law they stand by."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.architecture.sources import ROOT
from tests.marks import marks_in
from tests.requirements import Proven, requirements

PAGE: Final = (ROOT / "docs/explanation/security-model.md").read_text("utf-8")
ROWS: Final = re.findall(r"^\| (I\d+) \| .* \| (`.*`) \|$", PAGE, re.MULTILINE)
TRIED: Final = [(law, path) for law, cell in ROWS for path in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize(("law", "path"), TRIED)
def test_the_test_that_is_named_tries_the_law(law: str, path: str):
    source = (ROOT / path).read_text("utf-8")

    assert law in {mark.id for mark in marks_in(source, path) if mark.test}


def test_every_law_that_is_proven_has_its_line_and_no_other():
    proven = {
        line.id
        for line in requirements()
        if isinstance(line.state, Proven) and re.fullmatch(r"I\d+", line.id)
    }

    assert {law for law, _ in ROWS} == proven
