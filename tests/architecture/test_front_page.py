"""The first thing that a stranger reads and types."""

from __future__ import annotations

from tests.architecture.sources import ROOT

DEMO = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[demo]' && .venv/bin/remit demo"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"


def test_the_front_page_has_the_two_commands_each_on_a_line_of_its_own():
    lines = [line.strip() for line in (ROOT / "README.md").read_text("utf-8").splitlines()]

    assert lines.count(DEMO) == 1
    assert lines.count(TESTS) == 1
