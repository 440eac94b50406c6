"""Every fuzz target over its seeds and some thousand mutations of them, the same ones each time."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.fuzz.mutating import inputs
from tests.fuzz.targets import SEEDS, TARGETS, WORDS_OF, seeds_of

EXECUTIONS = 1_500


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str) -> None:
    for data in islice(inputs(seeds_of(name), WORDS_OF[name], seed=7), EXECUTIONS):
        TARGETS[name](data)


def test_every_target_has_seeds_and_words() -> None:
    assert {path.name for path in SEEDS.iterdir()} == set(TARGETS) == set(WORDS_OF)
    assert all(seeds_of(name) for name in TARGETS)


def test_a_run_can_be_had_again() -> None:
    first, second = ([*islice(inputs([b"seed"], ("word",), seed=3), 200)] for _ in range(2))
    assert first == second
