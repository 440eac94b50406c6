"""What a server did wrong or in vain, counted by kind, and where that is too much; it ends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.events import PeerViolation, Violation
from mcp_client.protocol.limits import ClientLimits

__all__ = ["Tally", "malformed_answer"]

_NOISE: Final = (Violation.NOT_JSON, Violation.MALFORMED)


class Tally:
    """The violations of one connection."""

    def __init__(self, limits: ClientLimits, *, server: str) -> None:
        self._limits = limits
        self._server = server
        self._counts: Counter[Violation] = Counter()

    @property
    def counts(self) -> Mapping[Violation, int]:
        """A copy of the counts so far."""
        return dict(self._counts)

    def count(self, kind: Violation | None) -> None:
        """Count a violation, if it is one."""
        if kind is not None:
            self._counts[kind] += 1

    def too_much(self) -> RemoteProtocolError | None:
        """Return why the connection has to end; None while it need not."""
        noise = sum(self._counts[kind] for kind in _NOISE)
        if noise <= self._limits.noise_lines_max:
            return None
        return RemoteProtocolError(
            f"more than {self._limits.noise_lines_max} lines were not JSON-RPC",
            server=self._server,
            stage="receive",
        )


def malformed_answer(event: PeerViolation, server: str) -> RemoteProtocolError:
    """Return the error of the one request whose answer that would have been."""
    return RemoteProtocolError(
        f"the answer is malformed: {event.detail}",
        server=server,
        stage="receive",
        delivery=Delivery.ANSWERED,
    )
