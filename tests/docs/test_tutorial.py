"""The tutorial, done as it says: its files written, its commands typed, its questions answered."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import Block, blocks, commands, run_on_terminal, says

PAGE: Final = ROOT / "docs" / "tutorial" / "first-pipeline.md"
EXAMPLE: Final = ROOT / "examples" / "first_pipeline"
STEPS: Final = tuple(blocks(PAGE))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An empty folder with the server, and a `remit` on the path, as after the first step."""
    folder = tmp_path / "shop"
    folder.mkdir()
    shutil.copy(ROOT / "examples" / "servers" / "orders.py", folder)
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "remit"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m orchestrator.cli "$@"\n'
    )
    command.chmod(0o755)
    return folder


def environ(folder: Path) -> dict[str, str]:
    home = folder.parent
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "REMIT_HOME": str(home / "state"), "LANG": "C.UTF-8"}


def follow(step: Block, folder: Path) -> list[str]:
    """Do what a block says; return where the page and the truth differ."""
    if step.file:
        (folder / step.file).write_text(step.text)
    if step.language != "console":
        return []
    wrong: list[str] = []
    for command in commands(step):
        printed = run_on_terminal(command, folder=folder, environ=environ(folder))
        if not says(printed, command.output):
            wrong.append(f"{step}: $ {command.words}\n{printed}")
    return wrong


@pytest.mark.subprocess
def test_the_tutorial_is_true_to_its_last_line(shop: Path):
    differences = "\n".join(line for step in STEPS for line in follow(step, shop))

    assert differences == ""


@pytest.mark.subprocess
def test_a_page_that_says_something_else_is_found(shop: Path, tmp_path: Path):
    page = ROOT / "docs" / "page.md"
    step = Block(page=page, line=1, language="console", file="", text="$ echo one; echo two\none\n")

    assert follow(step, shop) == ["docs/page.md:1: $ echo one; echo two\none\ntwo\n"]


@pytest.mark.parametrize("name", ["shop.policy", "refunds.toml", "recipes.py", "orders.json"])
def test_the_tutorial_and_the_example_have_the_same_files(name: str):
    (step,) = [step for step in STEPS if step.file == name]

    assert step.text == (EXAMPLE / name).read_text("utf-8")
