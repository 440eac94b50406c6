"""Which modules are broken, and the tests that are to notice: the likely ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["AUTHORITY", "CHECKED", "EVALUATION", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Modules, and stages of tests: a later stage runs where an earlier one noticed nothing.

    `warm` are tests that may be tried before, in a fork of a process that has collected them: they
    start neither threads nor processes.
    """

    pattern: str
    stages: tuple[tuple[str, ...], ...]
    warm: tuple[str, ...] = ()


_SESSION_TESTS: Final = tuple(
    f"tests/orchestrator/sessions/test_{name}.py"
    for name in ("parent", "parent_agents", "spawning", "logins", "logout_in_flight", "oauth")
)
_AUTHORITY_TESTS: Final = (
    ("tests/orchestrator/authority",),
    tuple(
        f"tests/orchestrator/broker/test_{name}.py"
        for name in ("taking_back", "frozen_view", "refusals", "flow")
    ),
)
_MODEL_TESTS: Final = ("tests/orchestrator/agents/test_model_egress.py",)
_BROKER_TESTS: Final = (("tests/orchestrator/broker",), _SESSION_TESTS, _MODEL_TESTS)
_HTTP_TESTS: Final = (
    ("tests/mcp_client/net",),
    ("tests/mcp_client/http",),
    ("tests/mcp_client/auth", "tests/hostile"),
)
_STREAM_TESTS: Final = (
    ("tests/mcp_client/http",),
    ("tests/mcp_client/auth", "tests/interaction", "tests/hostile"),
)
AUTHORITY: Final = (Target("orchestrator/authority/*.py", _AUTHORITY_TESTS),)
CHECKED: Final = (
    *AUTHORITY,
    Target("orchestrator/broker/*.py", _BROKER_TESTS),
    Target(
        "mcp_client/protocol/outbox.py",
        (
            ("tests/mcp_client/test_outbox.py", "tests/mcp_client/stdio/test_gate.py"),
            ("tests/mcp_client/test_session.py", "tests/mcp_client/stdio"),
        ),
    ),
    Target(
        "mcp_client/transports/stdio/*.py",
        (("tests/mcp_client/stdio",), ("tests/mcp_client/test_client_stdio.py", "tests/hostile")),
    ),
    Target(
        "mcp_client/transports/memory.py",
        (
            ("tests/mcp_client/test_faults.py", "tests/mcp_client/test_testing.py"),
            ("tests/mcp_client/test_session.py", "tests/mcp_client/test_outbox.py"),
            ("tests/orchestrator/broker",),
        ),
    ),
    Target("mcp_client/transports/http_sse.py", _STREAM_TESTS),
    Target("mcp_client/transports/streamable_http/*.py", _STREAM_TESTS),
    Target("mcp_client/net/http/connection.py", _HTTP_TESTS),
    Target("mcp_client/net/http/dialing.py", _HTTP_TESTS),
)
_POLICY_TESTS: Final = (
    ("tests/policies/test_agreement.py", "tests/policies/test_listing.py"),
    (
        "tests/policies/test_decisions.py",
        "tests/policies/test_language.py",
        "tests/policies/test_edges.py",
    ),
    (
        "tests/policies/test_bounds.py",
        "tests/policies/test_validation.py",
        "tests/policies/test_bounded.py",
    ),
    tuple(
        f"tests/policies/test_laws.py::test_{name}"
        for name in (
            "visible_is_what_some_arguments_can_reach",
            "a_verdict_decides_as_the_set_does",
            "order_and_repetition_change_nothing",
            "the_digest_depends_on_what_is_written_and_not_on_order",
        )
    ),
)
EVALUATION: Final = (
    Target(
        "policies/evaluation/*.py",
        _POLICY_TESTS,
        warm=tuple(test for stage in _POLICY_TESTS for test in stage),
    ),
)
