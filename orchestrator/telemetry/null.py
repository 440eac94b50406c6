"""Telemetry that goes nowhere, at next to no cost. Imports nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import AgentId, CallId
from orchestrator.core.ports import Peer, Telemetry

__all__ = ["NO_TELEMETRY"]


class _NoSpan:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def set(self, name: str, value: str | float | Sequence[str]) -> None:
        pass

    def fail(self, error_type: str) -> None:
        pass


_NO_SPAN: Final = _NoSpan()


class _NoTelemetry:
    def workflow(self, name: str, run: str) -> _NoSpan:
        return _NO_SPAN

    def agent(self, agent: AgentId, model: str, provider: str, *, stays: bool) -> _NoSpan:
        return _NO_SPAN

    def tool(self, ref: CapabilityRef, agent: AgentId, call: CallId) -> _NoSpan:
        return _NO_SPAN

    def chat(self, model: str, provider: str) -> _NoSpan:
        return _NO_SPAN

    def waiting(self) -> _NoSpan:
        return _NO_SPAN

    def connecting(self, peer: Peer) -> _NoSpan:
        return _NO_SPAN

    def connected(self, peer: Peer) -> _NoSpan:
        return _NO_SPAN

    def traceparent(self) -> str:
        return ""

    def request_started(
        self, peer: Peer, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        pass

    def request_ended(self, peer: Peer, request_id: int, error_type: str) -> None:
        pass

    def question_started(
        self, peer: Peer, question: int | str, method: str, traceparent: str
    ) -> None:
        pass

    def question_ended(self, peer: Peer, question: int | str, error_type: str) -> None:
        pass


NO_TELEMETRY: Final[Telemetry] = _NoTelemetry()
"""What stands behind the port where no provider of traces is installed."""
