"""A telemetry whose spans and metrics stay in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Metric
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import ServerName
from orchestrator.core.ports import Peer
from orchestrator.telemetry.spans import OtelTelemetry

GIT = Peer(server="git", transport="pipe", version="2025-11-25")
REF = CapabilityRef(ServerName("git"), CapabilityKind.TOOL, "git_log", "d" * 64)


class FixedClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Return what it was moved to."""
        return self.seconds

    def wall(self) -> float:
        """Return the same."""
        return self.seconds


@dataclass(slots=True)
class Recorded:
    """One telemetry, and what came out of it."""

    clock: FixedClock = field(default_factory=FixedClock)
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    provider: TracerProvider = field(default_factory=TracerProvider)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def telemetry(
        self, *, run: str = "", open_spans_max: int = 100, propagates: bool = True
    ) -> OtelTelemetry:
        """Return a telemetry that writes here."""
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        return OtelTelemetry(
            clock=self.clock,
            run=run,
            tracer_provider=self.provider,
            meter_provider=MeterProvider([self.reader]),
            open_spans_max=open_spans_max,
            propagates=propagates,
        )

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The finished spans by name; a later one of the same name wins."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metrics(self) -> dict[str, Metric]:
        """The metrics by name."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name: str) -> list[tuple[dict[str, object], float]]:
        """The points of one metric: labels, and the sum or the value."""
        found: list[tuple[dict[str, object], float]] = []
        for point in self.metrics()[name].data.data_points:
            value = json.loads(point.to_json())
            found.append((dict(point.attributes or {}), value.get("sum", value.get("value"))))
        return found


def parents(recorded: Recorded) -> dict[str, str]:
    """What each span stands below."""
    names = {span.context.span_id: span.name for span in recorded.spans.values() if span.context}
    return {
        span.name: names[span.parent.span_id] if span.parent else ""
        for span in recorded.spans.values()
    }


@pytest.fixture
def recorded() -> Recorded:
    """A new recording."""
    return Recorded()
