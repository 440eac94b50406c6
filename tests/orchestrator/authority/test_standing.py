"""Standings: labels come down and only grow, what is used counts for all above, takings-off are explicit."""

from __future__ import annotations

from collections import deque

import pytest

from orchestrator.authority.standing import Standing
from policies import Label

SECRET, WEB = Label("secret", "files"), Label("web", "net")


@pytest.mark.requirement("I20")
def test_a_child_starts_with_what_clings_to_its_parent_and_what_it_is_given() -> None:
    parent = Standing(labels=[SECRET])

    assert Standing(parent).labels == {SECRET}
    assert Standing(parent, [WEB]).labels == {SECRET, WEB}
    assert parent.labels == {SECRET}


@pytest.mark.requirement("I20")
def test_labels_only_grow_by_what_an_agent_is_given() -> None:
    standing = Standing(labels=[SECRET])

    standing.add([WEB])
    standing.add([])

    assert standing.labels == {SECRET, WEB}


@pytest.mark.requirement("I20")
def test_a_label_that_comes_with_each_result_clings_again_after_it_was_taken_off() -> None:
    standing = Standing(labels=[SECRET])

    standing.carry(WEB)
    standing.carry(WEB)
    standing.carry(SECRET)
    assert standing.labels == {SECRET, WEB}

    standing.declassify([SECRET])
    standing.carry(SECRET)
    assert standing.labels == {SECRET, WEB}


def test_labels_are_taken_off_one_by_one_and_from_nobody_else() -> None:
    parent = Standing(labels=[SECRET, WEB])
    child = Standing(parent)

    parent.declassify([WEB])

    assert parent.labels == {SECRET}
    assert child.labels == {SECRET, WEB}


def test_a_lineage_is_an_agent_and_all_above_it_the_nearest_first() -> None:
    top = Standing()
    middle = Standing(top)
    low = Standing(middle)

    assert list(low.lineage()) == [low, middle, top]
    assert list(top.lineage()) == [top]


def test_what_an_agent_has_used_is_kept() -> None:
    standing = Standing()

    standing.calls["rule"] = 2
    standing.recent["rule", 1, 60.0] = deque([1.0])

    assert standing.calls == {"rule": 2}
    assert list(standing.recent["rule", 1, 60.0]) == [1.0]


def test_a_new_standing_has_used_nothing() -> None:
    standing = Standing()

    assert (standing.calls, standing.recent, standing.above) == ({}, {}, None)
    assert (standing.spending.left(), standing.spending.used()) == ({}, {})
