"""Which modules are broken, and the tests that are to notice: the likely ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["AUTHORITY", "CHECKED", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Modules, and stages of tests: a later stage runs where an earlier one noticed nothing."""

    pattern: str
    stages: tuple[tuple[str, ...], ...]


_SESSION_TESTS: Final = tuple(
    f"tests/orchestrator/sessions/test_{name}.py"
    for name in ("parent", "parent_agents", "spawning", "logins", "logout_in_flight", "oauth")
)
_AUTHORITY_TESTS: Final = (("tests/orchestrator/authority",), ("tests/orchestrator/broker",))
_BROKER_TESTS: Final = (("tests/orchestrator/broker",), _SESSION_TESTS)
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
