"""Chooses where telemetry goes, once, at the start of the command. Opens no span."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from orchestrator.core.errors import ConfigError
from orchestrator.core.ports import Clock, Telemetry
from orchestrator.telemetry.null import NO_TELEMETRY

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = [
    "SHUTDOWN_SECONDS",
    "TelemetryMaker",
    "TelemetrySetup",
    "configure_from_environment",
    "installed_telemetry",
]

SHUTDOWN_SECONDS: Final = 2.0
"""How long the last of it may take to go out; a dead collector would hold the command for 7 s."""

_EXPORTERS: Final = {
    "http/protobuf": ("otlp_proto_http", "opentelemetry-exporter-otlp-proto-http"),
    "grpc": ("otlp_proto_grpc", "opentelemetry-exporter-otlp-proto-grpc"),
}
_SIGNALS: Final = ("traces", "metrics")

TelemetryMaker = Callable[[Clock, str], Telemetry]
"""Makes the telemetry of one session, from its clock and the name of its run."""


class _Provider(Protocol):
    def shutdown(self) -> None: ...


def _nothing() -> None:
    pass


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


def _none(_clock: Clock, _run: str = "") -> Telemetry:
    return NO_TELEMETRY


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySetup:
    """Where telemetry goes.

    Attributes:
        make: makes the telemetry of one session.
        notice: a sentence for the person if something that was asked for cannot be had.
        shutdown: sends what waits and ends; returns within SHUTDOWN_SECONDS, whatever happens.
    """

    make: TelemetryMaker = _none
    notice: str = ""
    shutdown: Callable[[], None] = _nothing


def configure_from_environment(environ: Mapping[str, str]) -> TelemetrySetup:
    """Set telemetry up as the standard variables say; for the command, not for libraries.

    `OTEL_SDK_DISABLED=true` ends it. An `OTEL_EXPORTER_OTLP_ENDPOINT` needs an exporter that is
    installed beside remit; without one the notice says so, and nothing is exported. Without an
    endpoint nothing is imported. `OTEL_PROPAGATORS` without `tracecontext` tells servers nothing.
    The providers are remit's own: no other library finds them, so that none adds what remit leaves
    out. Raises ConfigError for a protocol that does not exist.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return TelemetrySetup()
    wanted = {signal: _protocol(environ, signal) for signal in _SIGNALS if _asked(environ, signal)}
    if not wanted:
        return TelemetrySetup(make=_none if _turned_off(environ) else installed_telemetry)
    exporters: dict[str, Callable[[], Any]] = {}
    missing: dict[str, str] = {}
    for signal, protocol in wanted.items():
        entry, package = _EXPORTERS[protocol]
        exporter = _exporter(signal, entry)
        if exporter is None:
            missing[signal] = package
        else:
            exporters[signal] = exporter
    notice = ""
    if missing:
        notice = (
            f"no {' and no '.join(missing)} are exported: an OTLP endpoint is set, but "
            f"{' or '.join(sorted(set(missing.values())))} is not installed"
        )
    return _exporting(exporters, environ, notice) if exporters else TelemetrySetup(notice=notice)


def _asked(environ: Mapping[str, str], signal: str) -> bool:
    if environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower() == "none":
        return False
    return any(
        environ.get(name)
        for name in (
            f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        )
    )


def _turned_off(environ: Mapping[str, str]) -> bool:
    return environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"


def _protocol(environ: Mapping[str, str], signal: str) -> str:
    names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((each for each in names if environ.get(each)), "")
    protocol = environ.get(name, "http/protobuf")
    if protocol not in _EXPORTERS:
        raise ConfigError(
            "no such protocol of OTLP",
            code="E-TELEMETRY-PROTOCOL",
            why=f"{name} names a protocol that is not known here",
            fix="set it to one of " + ", ".join(_EXPORTERS),
        )
    return protocol


def _exporter(signal: str, entry: str) -> Callable[[], Any] | None:
    """Find an exporter that is installed, by the entry point that exporters announce."""
    from importlib.metadata import entry_points

    for point in entry_points(group=f"opentelemetry_{signal}_exporter", name=entry):
        return cast("Callable[[], Any]", point.load())
    return None


def _exporting(
    exporters: Mapping[str, Callable[[], Any]], environ: Mapping[str, str], notice: str
) -> TelemetrySetup:
    from opentelemetry.metrics import NoOpMeterProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import NoOpTracerProvider

    # A collector that is down is told of on stderr, retry by retry; stderr belongs to the person.
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    named = "service.name" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    ours = {} if named or environ.get("OTEL_SERVICE_NAME") else {"service.name": "remit"}
    resource = Resource.create(ours)
    tracing: TracerProvider | NoOpTracerProvider = NoOpTracerProvider()
    metering: MeterProvider | NoOpMeterProvider = NoOpMeterProvider()
    ends: list[_Provider] = []
    if "traces" in exporters:
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracing.add_span_processor(BatchSpanProcessor(exporters["traces"]()))
        ends.append(tracing)
    if "metrics" in exporters:
        reader = PeriodicExportingMetricReader(exporters["metrics"]())
        metering = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        ends.append(metering)
    propagators = environ.get("OTEL_PROPAGATORS", "tracecontext").replace(" ", "").split(",")
    make = partial(_make, tracing, metering, propagates="tracecontext" in propagators)
    return TelemetrySetup(make=make, notice=notice, shutdown=_Bounded(ends))


def _make(
    tracing: TracerProvider,
    metering: MeterProvider,
    clock: Clock,
    run: str = "",
    *,
    propagates: bool,
) -> Telemetry:
    from orchestrator.telemetry.spans import OtelTelemetry

    return OtelTelemetry(
        clock=clock,
        run=run,
        tracer_provider=tracing,
        meter_provider=metering,
        propagates=propagates,
    )


class _Bounded:
    """Ends providers once, in threads that the process does not wait for longer than the bound."""

    def __init__(self, providers: Sequence[_Provider]) -> None:
        self._providers = tuple(providers)
        self._done = False

    def __call__(self) -> None:
        if self._done:
            return
        self._done = True
        ending = threading.Thread(target=self._end, daemon=True)
        ending.start()
        ending.join(SHUTDOWN_SECONDS)

    def _end(self) -> None:
        threads = [
            threading.Thread(target=provider.shutdown, daemon=True) for provider in self._providers
        ]
        for thread in threads:  # one that hangs keeps the others from nothing
            thread.start()
        for thread in threads:
            thread.join()
