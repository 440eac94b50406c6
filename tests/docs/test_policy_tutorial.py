"""The tutorial on policies, done as it says, with the three servers that it names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import Block, blocks
from tests.docs.test_tutorial import follow

PAGE = ROOT / "docs" / "tutorial" / "first-policy.md"
STEPS = tuple(step for step in blocks(PAGE) if step.file or step.language == "console")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, and `remit` and `python3` on the path, as after the first step."""
    home = tmp_path_factory.mktemp("home")
    folder, tools = home / "notes", home / "bin"
    folder.mkdir()
    tools.mkdir()
    for name, words in (("remit", "-m orchestrator.cli"), ("python3", "")):
        command = tools / name
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" {words} "$@"\n')
        command.chmod(0o755)
    return folder


# each step stands on those before it: together they take longer than one test may
@pytest.mark.subprocess
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_each_step_of_the_policy_tutorial_is_true(project: Path, step: Block):
    assert "\n".join(follow(step, project)) == ""
