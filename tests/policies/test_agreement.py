"""The engine beside the naive one, on pairs that are the same in each run: quick, and the first to fail."""

from __future__ import annotations

import pytest

from tests.policies import agree


@pytest.mark.parametrize("seed", range(2))
def test_two_engines_agree_on_the_same_thousand_pairs_each_time(seed: int):
    assert agree.main(["--pairs", "1000", "--seed", str(seed)]) == 0
