"""The policies of one session, the present one last. An agent is bound by all since it started."""

from __future__ import annotations

from copy import copy
from typing import Final

from policies import PolicySet

__all__ = ["POLICIES_KEPT_MAX", "PolicyHistory"]

POLICIES_KEPT_MAX: Final = 64
"""Policies of one session that agents can still be bound by; older agents are refused then."""


class PolicyHistory:
    """Every policy since the oldest that is kept.

    An agent's rights are those of its start and of every policy since: what one of them took away,
    none gives back.

    Attributes:
        present: the policy that new agents start under.
    """

    __slots__ = ("_policies", "present")

    def __init__(self, policy: PolicySet) -> None:
        self._policies = [policy]
        self.present = policy

    def replace(self, policy: PolicySet) -> None:
        """Let another policy hold from now on, besides those before it."""
        if any(each is policy for each in self._policies):
            # told from itself at an earlier time: who started then is bound by all in between
            policy = copy(policy)
        self._policies = [*self._policies, policy][-POLICIES_KEPT_MAX:]
        self.present = policy

    def since(self, policy: PolicySet) -> tuple[PolicySet, ...]:
        """Return a policy and all after it; none if it is too old to be known."""
        known = self._policies
        at = next((n for n, each in enumerate(known) if each is policy), None)
        if at is None:  # the earliest that says the same: then nothing since is left out
            at = next((n for n, each in enumerate(known) if _same(each, policy)), len(known))
        return tuple(known[at:])


def _same(one: PolicySet, other: PolicySet) -> bool:
    # a set without a source has no digest to be told by
    return bool(one.sources) and one.digest == other.digest
