"""The metrics: what is counted and timed, with which labels. Labels name kinds, never one piece of work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry import metrics

from orchestrator.telemetry import names

__all__ = ["Instruments"]

_SECONDS: Final = (
    names.MCP_SECONDS,
    names.SESSION_SECONDS,
    names.CHAT_SECONDS,
    names.AGENT_SECONDS,
    names.TOOL_SECONDS,
)
_COUNTS: Final = {
    names.AGENT_INFERENCE_CALLS: ("{call}", names.COUNT_BUCKETS),
    names.AGENT_TOOL_CALLS: ("{call}", names.COUNT_BUCKETS),
    names.TOKENS: ("{token}", names.TOKEN_BUCKETS),
}


class Instruments:
    """What one telemetry measures with."""

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        meter = metrics.get_meter(names.INSTRUMENTATION, meter_provider=provider)
        wanted = dict.fromkeys(_SECONDS, ("s", names.SECONDS_BUCKETS)) | _COUNTS
        self._histograms = {
            name: meter.create_histogram(
                name, unit=unit, explicit_bucket_boundaries_advisory=buckets
            )
            for name, (unit, buckets) in wanted.items()
        }
        self._denials = meter.create_counter(names.DENIALS, unit="{call}")
        self._pending = meter.create_up_down_counter(names.APPROVALS_PENDING, unit="{approval}")

    def took(
        self, metric: str, seconds: float, labels: Mapping[str, str], error_type: str = ""
    ) -> None:
        """Add one duration."""
        failed = {names.ERROR_TYPE: error_type} if error_type else {}
        self._histograms[metric].record(max(0.0, seconds), {**labels, **failed})

    def counted(self, metric: str, count: int, labels: Mapping[str, str]) -> None:
        """Add how many there were in one piece of work."""
        self._histograms[metric].record(count, labels)

    def denied(self, reason: str) -> None:
        """Count a call that was refused."""
        self._denials.add(1, {names.DENIAL_REASON: reason})

    def pending(self, change: int) -> None:
        """One more, or one less, that a person is waited for."""
        self._pending.add(change)
