"""What a person does with policies while a session runs: reload them, take labels off. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from orchestrator.authority.standing import Standing
from orchestrator.broker import Revocation
from orchestrator.catalog.listing import Catalog
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.core.ports import AuditSink
from orchestrator.sessions.policing import refuse_keeping, tested_policy
from policies import Label, PolicyError, PolicySet, Source

__all__ = ["PolicyDesk"]


class _Session(Protocol):
    @property
    def policy(self) -> PolicySet: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def servers(self) -> Mapping[ServerName, object]: ...

    def replace_policy(self, policy: PolicySet) -> Revocation: ...


class PolicyDesk:
    """Acts on the policies of one session; each is on record."""

    def __init__(
        self, session: _Session, standing_of: Callable[[str], Standing], audit: AuditSink
    ) -> None:
        self._session = session
        self._standing_of = standing_of
        self._audit = audit

    def reload(
        self, sources: Iterable[Source], parameters: Mapping[str, str] | None = None
    ) -> Revocation:
        """Read policies anew: they hold in one step, or those before them still hold.

        They must parse, fit the servers that there are, and pass their own tests. What runs is
        bound by the old and the new (`ParentSession.replace_policy`). What the policy is bounded by,
        a person's own beside a project's, stays.

        Raises:
            PolicyError: they cannot be read. Nothing has changed.
            ConfigError: they name something that there is not (`E-POLICY-…`), or do not pass their
                own tests (`E-POLICY-TEST`). Nothing has changed.
        """
        session = self._session
        try:
            policy = tested_policy(sources, parameters or {}, session.catalog, session.servers)
            if session.policy.bounds is not None:  # it takes the place of a project's
                refuse_keeping(policy)
            policy = policy.bounded_by(session.policy.bounds)
        except (PolicyError, ConfigError) as error:
            self._audit.append(
                "policy_kept", {"policy": session.policy.digest, "why": type(error).__name__}
            )
            raise
        self._audit.append("policy_replaced", {"policy": policy.digest})
        return session.replace_policy(policy)

    def declassify(self, agent: str, labels: Iterable[Label], *, by: str, why: str) -> None:
        """Take labels off an agent: a person's act, recorded with who did it and why (I20).

        Raises ConfigError if there is no such agent.
        """
        taken = sorted(labels)
        standing = self._standing_of(agent)
        self._audit.append(
            "declassified",
            {
                "agent": agent,
                "labels": [f"{label.name} from {label.server}" for label in taken],
                "by": by,
                "why": why,
            },
        )
        standing.declassify(taken)
