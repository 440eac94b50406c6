"""Chooses where telemetry goes, once, at the start of the command. Opens no span."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from orchestrator.core.errors import ConfigError
from orchestrator.core.ports import Clock, Telemetry
from orchestrator.telemetry.null import NO_TELEMETRY

__all__ = [
    "SHUTDOWN_SECONDS",
    "TelemetrySetup",
    "configure_from_environment",
    "installed_telemetry",
]

SHUTDOWN_SECONDS: Final = 2.0
"""How long the last spans may take to go out; a dead collector would hold the command for 7 s."""

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS: Final = {
    "http/protobuf": ("otlp_proto_http", "opentelemetry-exporter-otlp-proto-http"),
    "grpc": ("otlp_proto_grpc", "opentelemetry-exporter-otlp-proto-grpc"),
}


class _Provider(Protocol):
    def shutdown(self) -> None: ...


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySetup:
    """Where telemetry goes.

    Attributes:
        telemetry: the port, ready.
        notice: a sentence for the person if something that was asked for cannot be had.
        shutdown: sends what waits and ends; returns within SHUTDOWN_SECONDS, whatever happens.
    """

    telemetry: Telemetry = NO_TELEMETRY
    notice: str = ""
    shutdown: Callable[[], None] = _nothing


def installed_telemetry(clock: Clock, run: str = "") -> Telemetry:
    """Return telemetry over the provider that the program has installed; else NO_TELEMETRY.

    For use as a library: asked once, when a session opens. OpenTelemetry is not imported if
    nobody else has imported it: then nothing can be installed.
    """
    if "opentelemetry.trace" not in sys.modules:
        return NO_TELEMETRY
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return NO_TELEMETRY
    from orchestrator.telemetry.spans import OtelTelemetry

    return OtelTelemetry(clock=clock, run=run)


def configure_from_environment(
    environ: Mapping[str, str], *, clock: Clock, run: str = ""
) -> TelemetrySetup:
    """Set telemetry up as the standard variables say; for the command, not for libraries.

    `OTEL_SDK_DISABLED=true` ends it. An `OTEL_EXPORTER_OTLP_ENDPOINT` needs an exporter that is
    installed beside remit; without one the notice says so, and nothing is exported. Without an
    endpoint nothing is imported. Raises ConfigError for a protocol that does not exist.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return TelemetrySetup()
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return TelemetrySetup()
    if not any(environ.get(name) for name in _ENDPOINTS):
        return TelemetrySetup(telemetry=installed_telemetry(clock, run))
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    if protocol not in _EXPORTERS:
        raise ConfigError(
            "no such protocol of OTLP",
            code="E-TELEMETRY-PROTOCOL",
            why="OTEL_EXPORTER_OTLP_PROTOCOL names a protocol that is not known here",
            fix="set it to one of " + ", ".join(_EXPORTERS),
        )
    entry, package = _EXPORTERS[protocol]
    exporter = _exporter(entry)
    if exporter is None:
        notice = f"no traces are exported: an OTLP endpoint is set, but {package} is not installed"
        return TelemetrySetup(notice=notice)
    return _exporting(exporter, clock, run)


def _exporter(entry: str) -> Callable[[], Any] | None:
    """Find an exporter that is installed, by the entry point that exporters announce."""
    from importlib.metadata import entry_points

    for point in entry_points(group="opentelemetry_traces_exporter", name=entry):
        return cast("Callable[[], Any]", point.load())
    return None


def _exporting(exporter: Callable[[], Any], clock: Clock, run: str) -> TelemetrySetup:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from orchestrator.telemetry.spans import OtelTelemetry

    # A collector that is down is told of on stderr, retry by retry; stderr belongs to the person.
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    resource = Resource.create({"service.name": "remit"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter()))
    telemetry = OtelTelemetry(clock=clock, run=run, tracer_provider=provider)
    return TelemetrySetup(telemetry=telemetry, shutdown=_Bounded(provider))


class _Bounded:
    """Ends a provider once, in a thread that the process does not wait for longer than the bound."""

    def __init__(self, provider: _Provider) -> None:
        self._provider = provider
        self._done = False

    def __call__(self) -> None:
        if self._done:
            return
        self._done = True
        thread = threading.Thread(target=self._provider.shutdown, daemon=True)
        thread.start()
        thread.join(SHUTDOWN_SECONDS)
