"""The replay's own parts that need no suite: what a task names, what is counted, that policies load."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from policies import Source, load
from policies.formatting import format_text

HERE = Path(__file__).parents[2] / "benchmarks" / "agentdojo"


def part(name: str) -> Any:
    """One module of the benchmark, which is no package: its program runs by its path."""
    label = f"agentdojo_replay_{name}"
    spec = spec_from_file_location(label, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[label] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("prompt", "name", "value"),
    [
        ("Her address is 'sarah.connor@gmail.com'.", "address_1", "sarah.connor@gmail.com"),
        ("refund GB29NWBK60161331926819 for it", "account_1", "GB29NWBK60161331926819"),
        ("Read www.a-b.com/alice!", "site_1", "www.a-b.com/alice"),
        ("the title should be 'Dinner at {restaurant}', please", "quoted_1", "Dinner at "),
        ("my friend's dog likes 'Good Dogs'", "quoted_1", "Good Dogs"),
        ("then Invite Dora to Slack", "word_2", "Dora"),
    ],
)
def test_a_policy_takes_what_the_task_names(prompt: str, name: str, value: str) -> None:
    assert part("naming").parameters_of(prompt)[name] == value


def test_what_a_task_does_not_name_is_nobody() -> None:
    naming = part("naming")
    assert set(naming.parameters_of("nothing here").values()) == {naming.NOT_NAMED}


def test_shares_are_counted_over_tasks_and_over_pairs() -> None:
    figures = part("figures")
    alone = {"suite": "s", "task": "t"}
    found = figures.count(
        [
            figures.Outcome(**alone, useful=True, asks=2),
            figures.Outcome(**alone, useful=False),
            figures.Outcome(**alone, injection="i", useful=True, reached=True, met=True),
            figures.Outcome(**alone, injection="j", useful=True, by_words=True, met=True),
        ]
    )
    assert (found.tasks, found.pairs, found.met, found.by_words) == (2, 2, 2, 1)
    assert (found.benign_utility, found.tasks_asked, found.asks_a_task) == (0.5, 0.5, 1.0)
    assert (found.attack_success, found.utility_under_attack) == (0.5, 1.0)
    assert set(figures.missed(found)) == {"attack_success", "benign_utility", "tasks_asked"}


@pytest.mark.parametrize("suite", ["banking", "slack", "travel", "workspace"])
def test_a_suite_s_policy_loads_and_is_in_its_one_layout(suite: str) -> None:
    text = (HERE / "policies" / f"{suite}.policy").read_text("utf-8")
    parameters = part("naming").parameters_of("")
    assert load([Source(suite, text)], parameters).rules
    assert format_text(text, suite) == text
