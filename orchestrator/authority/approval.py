"""What a person said yes to: bound to everything that they saw, good for one call."""

from __future__ import annotations

from orchestrator.core.ids import CallId

__all__ = ["Approval"]


class Approval:
    """One yes, for one call, as it was when the person was asked. Any difference voids it.

    `params` are the very bytes of the request that the person was asked about. `expires` is in the seconds of the clock that the gate is given.
    """

    __slots__ = (
        "_used",
        "agent_incarnation",
        "call",
        "definition_digest",
        "expires",
        "params",
        "policy_generation",
    )

    def __init__(
        self,
        *,
        call: CallId,
        agent_incarnation: int,
        policy_generation: int,
        definition_digest: str,
        params: bytes,
        expires: float,
    ) -> None:
        self.call = call
        self.agent_incarnation = agent_incarnation
        self.policy_generation = policy_generation
        self.definition_digest = definition_digest
        self.params = params
        self.expires = expires
        self._used = False

    def use(self) -> bool:
        """Return True the first time, False ever after."""
        first = not self._used
        self._used = True
        return first
