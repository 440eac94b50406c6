from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId, CallId
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.telemetry.setup import (
    configure_from_environment,
    installed_telemetry,
)
from tests.orchestrator.telemetry.conftest import GIT, REF, FixedClock

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:secret@127.0.0.1:1"}
PACKAGE = "opentelemetry-exporter-otlp-proto-http"
ROOT = Path(__file__).parents[3]

EXPORTER = """
    import threading
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    spans, stuck = [], threading.Event()

    class Exporter(SpanExporter):
        def export(self, batch):
            spans.extend(batch)
            return SpanExportResult.SUCCESS

    class StuckExporter(Exporter):
        def export(self, batch):
            stuck.wait(30)
            return SpanExportResult.FAILURE

    from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult

    metrics = []

    class Metrics(MetricExporter):
        def export(self, data, timeout_millis=0, **kwargs):
            metrics.extend(
                metric.name
                for resource in data.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            )
            return MetricExportResult.SUCCESS

        def force_flush(self, timeout_millis=0):
            return True

        def shutdown(self, timeout_millis=0, **kwargs):
            pass

    class StuckMetrics(Metrics):
        def export(self, data, timeout_millis=0, **kwargs):
            stuck.wait(30)
            return MetricExportResult.FAILURE
"""


def _python(script: str, path: Path = ROOT) -> str:
    """Run a script in a new interpreter, in which nothing has been imported yet."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"PYTHONPATH": f"{path}:{ROOT}"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def _install_exporter(folder: Path, name: str, metrics: str = "") -> None:
    """Put a package into `folder` that announces exporters as the real ones do."""
    (folder / "fake_exporter.py").write_text(textwrap.dedent(EXPORTER))
    info = folder / "fake_exporter-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-exporter\nVersion: 1\n")
    points = f"[opentelemetry_traces_exporter]\notlp_proto_http = fake_exporter:{name}\n"
    if metrics:
        points += f"[opentelemetry_metrics_exporter]\notlp_proto_http = fake_exporter:{metrics}\n"
    (info / "entry_points.txt").write_text(points)


@pytest.mark.subprocess
def test_without_an_endpoint_nothing_of_opentelemetry_is_imported() -> None:
    loaded = _python(
        """
        import sys
        from orchestrator.core.ports import Telemetry
        from orchestrator.telemetry.null import NO_TELEMETRY
        from orchestrator.telemetry.setup import configure_from_environment

        telemetry = configure_from_environment({}).make(None, "r1")
        with telemetry.workflow("w", "r") as span:
            span.set("a", 1)
        print(telemetry is NO_TELEMETRY, [m for m in sys.modules if "opentelemetry" in m])
        """
    )

    assert loaded == "True []"


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_SDK_DISABLED": "True"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
    ],
)
def test_telemetry_can_be_turned_off(environ: dict[str, str]) -> None:
    made = configure_from_environment({**environ, **ENDPOINT})

    assert (made.make(FixedClock(), "r1"), made.notice) == (NO_TELEMETRY, "")


def test_an_endpoint_without_an_exporter_is_told_of_and_its_address_is_not() -> None:
    made = configure_from_environment(ENDPOINT)

    assert made.make(FixedClock(), "r1") is NO_TELEMETRY
    assert "opentelemetry-exporter-otlp-proto-http is not installed" in made.notice
    assert "secret" not in made.notice


def test_a_protocol_that_does_not_exist_is_an_error() -> None:
    environ = {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/xml"}

    with pytest.raises(ConfigError) as caught:
        configure_from_environment(environ)

    assert caught.value.code == "E-TELEMETRY-PROTOCOL"


@pytest.mark.subprocess
def test_an_exporter_that_is_installed_gets_the_spans(tmp_path: Path) -> None:
    _install_exporter(tmp_path, "Exporter", "Metrics")

    out = _python(
        """
        from orchestrator.telemetry.setup import configure_from_environment

        class Clock:
            def now(self): return 1.0
            def wall(self): return 1.0

        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
        made = configure_from_environment(environ)
        telemetry = made.make(Clock(), "r1")
        with telemetry.workflow("brief", "r1"), telemetry.chat("m", "p"):
            pass
        made.shutdown()
        made.shutdown()
        import fake_exporter
        print([(s.name, s.resource.attributes["service.name"]) for s in fake_exporter.spans])
        print(fake_exporter.metrics, made.notice)
        """,
        tmp_path,
    )

    assert out.splitlines() == [
        "[('chat m', 'remit'), ('invoke_workflow brief', 'remit')]",
        "['gen_ai.client.operation.duration']",
    ]


@pytest.mark.subprocess
def test_a_signal_without_an_exporter_is_told_of_and_the_other_one_goes_out(tmp_path: Path) -> None:
    _install_exporter(tmp_path, "Exporter")

    out = _python(
        """
        from orchestrator.telemetry.setup import configure_from_environment

        class Clock:
            def now(self): return 1.0
            def wall(self): return 1.0

        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine",
            "OTEL_PROPAGATORS": "b3",
        }
        made = configure_from_environment(environ)
        telemetry = made.make(Clock(), "r1")
        with telemetry.workflow("brief", "r1"):
            print(repr(telemetry.traceparent()))
        made.shutdown()
        import fake_exporter
        print(made.notice)
        print([span.name for span in fake_exporter.spans])
        """,
        tmp_path,
    )

    assert out.splitlines() == [
        "''",
        f"no metrics are exported: an OTLP endpoint is set, but {PACKAGE} is not installed",
        "['invoke_workflow brief']",
    ]


@pytest.mark.subprocess
def test_a_collector_that_hangs_does_not_hold_the_command(tmp_path: Path) -> None:
    _install_exporter(tmp_path, "StuckExporter", "StuckMetrics")

    out = _python(
        """
        import time
        from orchestrator.telemetry import setup

        class Clock:
            def now(self): return 1.0
            def wall(self): return 1.0

        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
        made = setup.configure_from_environment(environ)
        telemetry = made.make(Clock(), "r1")
        with telemetry.workflow("brief", "r1"), telemetry.chat("m", "p"):
            pass
        began = time.monotonic()
        made.shutdown()
        print(time.monotonic() - began < setup.SHUTDOWN_SECONDS + 3)
        """,
        tmp_path,
    )

    assert out == "True"


@pytest.mark.subprocess
def test_a_provider_that_the_program_installed_is_used() -> None:
    out = _python(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from orchestrator.telemetry.null import NO_TELEMETRY
        from orchestrator.telemetry.setup import installed_telemetry

        class Clock:
            def now(self): return 1.0
            def wall(self): return 1.0

        before = installed_telemetry(Clock())
        trace.set_tracer_provider(TracerProvider())
        print(before is NO_TELEMETRY, type(installed_telemetry(Clock())).__name__)
        """
    )

    assert out == "True OtelTelemetry"


def test_where_no_provider_is_installed_telemetry_goes_nowhere() -> None:
    assert installed_telemetry(FixedClock()) is NO_TELEMETRY


def test_the_null_telemetry_takes_everything_and_gives_nothing() -> None:
    with NO_TELEMETRY.tool(REF, AgentId("a"), CallId("c")) as span:
        span.set("a", 1)
        span.fail("x")
        NO_TELEMETRY.request_started(GIT, 1, "tools/call", "x", None)
        NO_TELEMETRY.request_ended(GIT, 1, "")
