"""The package from outside: its names, its weight, its documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import policies
from policies import Source, load
from policies.parsing import GRAMMAR
from tests.policies.support import OUT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "policy.md").read_text("utf-8")
BLOCKS = re.findall(r"```policy\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name", policies.__all__)
def test_each_public_name_is_there(name: str):
    assert getattr(policies, name) is getattr(policies, name)
    assert name in dir(policies)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'prase'"):
        policies.__getattr__("prase")


def test_importing_and_deciding_needs_no_parser():
    code = (
        "import sys, policies; assert 'policies.model' not in sys.modules\n"
        "policies.ASK_ALL, policies.decide, policies.load\n"
        "print('lark' in sys.modules)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert finished.stdout.strip() == "False"


@pytest.mark.parametrize("block", BLOCKS)
def test_each_policy_in_the_reference_loads(block: str):
    assert load([Source("policy.md", block)], OUT).policies


def test_the_reference_has_the_grammar_as_it_is():
    assert f"```lark\n{GRAMMAR.strip()}\n```" in PAGE
