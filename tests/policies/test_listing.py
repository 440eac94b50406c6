"""What could be reached at all: of which kinds of values examples are tried, and when trying is not enough."""

from __future__ import annotations

from policies import Operation, Principal, Resource
from tests.policies.support import loaded


def reached(rules: str) -> set[str]:
    """The effects that some context leads to."""
    verdict = loaded(rules).verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))
    return {effect.value for effect in verdict.possible}


def test_a_permit_that_a_forbid_leaves_no_room_for_is_not_reached():
    rules = 'permit "p" call on a/t when arg(/n) <= 5\nforbid "f" call on a/t when arg(/n) <= 5'

    assert reached(rules) == {"forbid"}
