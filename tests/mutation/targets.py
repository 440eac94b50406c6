"""Which modules are broken, and the tests that are to notice: the likely ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["AUTHORITY", "CHECKED", "EVALUATION", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Modules, and stages of tests: a later stage runs where an earlier one noticed nothing.

    `warm` are tests that may be tried before, in a fork of a process that has collected them and run
    the first: that one starts neither threads nor processes. `elsewhere`: processes that a test
    starts run these modules, too.
    """

    pattern: str
    stages: tuple[tuple[str, ...], ...]
    warm: tuple[str, ...] = ()
    elsewhere: bool = False


_SESSION_TESTS: Final = tuple(
    f"tests/orchestrator/sessions/test_{name}.py"
    for name in (
        *("parent", "parent_agents", "spawning", "logins", "logout_in_flight", "oauth"),
        *("isolation", "isolation_ends"),
    )
)
_AUTHORITY_TESTS: Final = (
    (
        "tests/orchestrator/authority",
        # what is broken is not covered either: that would notice everything, and prove nothing
        "--ignore=tests/orchestrator/authority/test_coverage.py",
    ),
    tuple(
        f"tests/orchestrator/broker/test_{name}.py"
        for name in ("taking_back", "frozen_view", "refusals", "flow")
    ),
)
_MODEL_TESTS: Final = ("tests/orchestrator/agents/test_model_egress.py",)
_BROKER_TESTS: Final = (("tests/orchestrator/broker",), _SESSION_TESTS, _MODEL_TESTS)
_NO_COVERAGE: Final = "--ignore=tests/mcp_client/auth/test_coverage.py"
_HTTP_TESTS: Final = (
    ("tests/mcp_client/net",),
    ("tests/mcp_client/http",),
    ("tests/mcp_client/auth", "tests/hostile/test_hostile_http.py", _NO_COVERAGE),
)
_STREAM_TESTS: Final = (
    ("tests/mcp_client/http", "tests/mcp_client/net"),
    (*_HTTP_TESTS[2], "tests/interaction"),
)
_WARM_HTTP_TESTS: Final = (
    *("tests/mcp_client/net", "tests/mcp_client/http", "tests/interaction"),
    *_HTTP_TESTS[2],
)
AUTHORITY: Final = (
    Target("orchestrator/authority/*.py", _AUTHORITY_TESTS, warm=sum(_AUTHORITY_TESTS, ())),
)
CHECKED: Final = (
    *AUTHORITY,
    Target("orchestrator/broker/*.py", _BROKER_TESTS, warm=sum(_BROKER_TESTS, ())),
    Target(
        "mcp_client/protocol/outbox.py",
        (
            ("tests/mcp_client/test_outbox.py", "tests/mcp_client/stdio/test_gate.py"),
            ("tests/mcp_client/test_session.py", "tests/mcp_client/stdio"),
        ),
        warm=(
            "tests/mcp_client/test_outbox.py",
            "tests/mcp_client/stdio/test_gate.py",
            "tests/mcp_client/test_session.py",
        ),
    ),
    Target(
        "mcp_client/transports/stdio/*.py",
        (("tests/mcp_client/stdio", "tests/mcp_client/test_client_stdio.py"),),
        warm=(
            "tests/mcp_client/stdio/test_environment.py",
            "tests/mcp_client/stdio",
            "tests/mcp_client/test_client_stdio.py",
        ),
        elsewhere=True,
    ),
    Target(
        "mcp_client/transports/memory.py",
        (
            ("tests/mcp_client/test_memory.py", "tests/mcp_client/test_testing.py"),
            ("tests/mcp_client/test_faults.py",),
            ("tests/mcp_client/test_session.py", "tests/mcp_client/test_outbox.py"),
            ("tests/orchestrator/broker",),
        ),
        warm=(
            "tests/mcp_client/test_memory.py",
            "tests/mcp_client/test_testing.py",
            "tests/mcp_client/test_session.py",
            "tests/mcp_client/test_outbox.py",
        ),
    ),
    Target("mcp_client/transports/http_sse.py", _STREAM_TESTS, warm=_WARM_HTTP_TESTS),
    Target("mcp_client/transports/streamable_http/*.py", _STREAM_TESTS, warm=_WARM_HTTP_TESTS),
    Target("mcp_client/net/posting.py", _STREAM_TESTS, warm=_WARM_HTTP_TESTS),
    Target("mcp_client/net/http/connection.py", _HTTP_TESTS, warm=_WARM_HTTP_TESTS),
    Target("mcp_client/net/http/dialing.py", _HTTP_TESTS, warm=_WARM_HTTP_TESTS),
)
_QUICK_POLICY_TESTS: Final = (
    *(f"tests/policies/test_{name}.py" for name in ("edges", "no_value", "listing", "decisions")),
    "tests/policies/test_language.py",
    # the rest of this file is about reading a text
    *(
        f"tests/policies/test_bounds.py::test_{name}"
        for name in (
            "one_past_a_bound_is_refused",
            "one_policy_too_many_is_refused_in_a_file_and_in_a_set",
            "one_rule_too_many_is_refused_across_files",
            "a_path_one_character_too_long_has_no_value",
            "beyond_the_bound_of_trying_a_tool_counts_as_visible",
            "what_is_remembered_is_bounded_and_right",
        )
    ),
    "tests/policies/test_agreement.py",
    "tests/policies/test_bounded.py",
)
"""In the order in which they are asked: what is drawn takes longest."""
_POLICY_TESTS: Final = (
    _QUICK_POLICY_TESTS,
    (
        "tests/policies/test_validation.py",
        *(
            f"tests/policies/test_laws.py::test_{name}"
            for name in (
                "visible_is_what_some_arguments_can_reach",
                "a_verdict_decides_as_the_set_does",
                "order_and_repetition_change_nothing",
                "the_digest_depends_on_what_is_written_and_not_on_order",
            )
        ),
    ),
)
EVALUATION: Final = (Target("policies/evaluation/*.py", _POLICY_TESTS, warm=_QUICK_POLICY_TESTS),)
