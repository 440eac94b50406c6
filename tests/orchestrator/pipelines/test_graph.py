from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from orchestrator.pipelines.graph import CycleError, generations


def test_each_stands_after_all_that_it_needs() -> None:
    assert generations({"w": ["h", "r"], "r": [], "h": [], "x": ["w", "h"]}) == (
        ("r", "h"),
        ("w",),
        ("x",),
    )


@given(st.lists(st.sets(st.integers(0, 9)), max_size=10))
def test_whatever_has_no_circle_comes_out_in_an_order_that_works(edges: list[set[int]]) -> None:
    # only towards smaller numbers: no circle
    needs = {
        str(n): [str(other) for other in sorted(others) if other < n]
        for n, others in enumerate(edges)
    }

    order = generations(needs)

    seen: set[str] = set()
    for layer in order:
        assert all(before in seen for name in layer for before in needs[name])
        seen |= set(layer)
    assert seen == set(needs)


@given(st.integers(1, 8))
def test_a_circle_is_found_and_begins_where_the_file_does(size: int) -> None:
    names = [f"n{number}" for number in range(size)]
    needs = {name: [names[(at + 1) % size]] for at, name in enumerate(names)}

    with pytest.raises(CycleError) as caught:
        generations(needs)

    assert caught.value.names == tuple(names)
