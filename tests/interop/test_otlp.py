"""The real OTLP exporter against a receiver that reads what it is sent, and against two that are no use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from orchestrator.telemetry.setup import SHUTDOWN_SECONDS
from tests.interop.installing import OTLP, PackageSet

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

ROOT: Final = Path(__file__).parents[2]
SLACK_SECONDS: Final = 1.5
"""For an interpreter to end, on a machine that is busy."""
SECRET: Final = "planted-in-an-argument"
RUN: Final = """
import os, time
from orchestrator.telemetry.setup import configure_from_environment

class Clock:
    def now(self): return time.monotonic()
    def wall(self): return time.time()

made = configure_from_environment(os.environ)
assert made.notice == "", made.notice
telemetry = made.make(Clock(), "r1")
with telemetry.workflow("brief", "r1"), telemetry.chat("m", "p"):
    pass
print(time.monotonic(), flush=True)
made.shutdown()
"""


@dataclass
class Received:
    """What came, by the path that it was sent to."""

    bodies: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    kinds: set[str] = field(default_factory=set[str])


@contextmanager
def receiver() -> Generator[tuple[str, Received]]:
    """Take whatever is posted, on the loopback interface; yield its address and what came."""
    received = Received()

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.kinds.add(str(self.headers["content-type"]))
            received.bodies.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base names it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Takes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", received
        server.shutdown()


@pytest.fixture(scope="module")
def packages(installed: Callable[[PackageSet], Path]) -> str:
    """Return the folder with the exporter and the words of the protocol, to be read here too."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = str(installed(OTLP).parent / "lib" / version / "site-packages")
    sys.path.append(folder)
    return folder


def environment(packages: str, home: Path, endpoint: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{packages}",
        "REMIT_HOME": str(home),
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
    }


def read(kind: str, bodies: list[bytes]) -> list[Any]:
    """Return the requests, by the messages that the protocol's own package generates."""
    module: Any = import_module(f"opentelemetry.proto.collector.{kind}.v1.{kind}_service_pb2")
    made = getattr(module, f"Export{kind.title()}ServiceRequest")
    return [made.FromString(body) for body in bodies]


def attributes(of: Any) -> dict[str, Any]:
    """Return attributes as Python has them."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of}


@pytest.fixture(scope="module")
def demo(packages: str, tmp_path_factory: pytest.TempPathFactory) -> Received:
    """What a receiver got of one real run: two agents side by side, a third, one call denied."""
    folder = tmp_path_factory.mktemp("otlp")
    repository = folder / "repository"
    repository.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repository)]
    (repository / "README.md").write_text("# A project\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", SECRET]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    with receiver() as (endpoint, received):
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", "demo", "--quiet"],
            cwd=repository,
            env=environment(packages, folder / "home", endpoint),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
    assert done.returncode == 0, done.stderr
    return received


def test_the_spans_of_a_run_are_read_by_a_receiver(demo: Received):
    scopes = [
        (resource.resource, scope)
        for request in read("trace", demo.bodies["/v1/traces"])
        for resource in request.resource_spans
        for scope in resource.scope_spans
    ]
    spans = [span for _, scope in scopes for span in scope.spans]
    by_id = {span.span_id: span for span in spans}
    refused = [
        span
        for span in spans
        if span.name.startswith("execute_tool")
        and "remit.authority.reason" in attributes(span.attributes)
    ]
    parents = {span.parent_span_id for span in spans}

    assert demo.kinds == {"application/x-protobuf"}
    assert {attributes(resource.attributes)["service.name"] for resource, _ in scopes} == {"remit"}
    # servers are connected before the run; each other span has its parent here, in its own trace
    roots = sorted(span.name for span in spans if not span.parent_span_id)
    assert roots == [
        "connect files",
        "connect git",
        "connect time",
        "invoke_workflow release brief",
    ]
    assert all(
        by_id[span.parent_span_id].trace_id == span.trace_id
        for span in spans
        if span.parent_span_id
    )
    assert {name.split()[0] for name in (span.name for span in spans)} >= {
        "invoke_workflow",
        "invoke_agent",
        "execute_tool",
        "tools/call",
        "connect",
    }
    assert refused
    assert all("error.type" in attributes(span.attributes) for span in refused)
    assert not parents & {span.span_id for span in refused}  # no byte left


def test_the_metrics_of_a_run_are_read_by_a_receiver(demo: Received):
    metrics = {
        metric.name: metric
        for request in read("metrics", demo.bodies["/v1/metrics"])
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    durations = metrics["mcp.client.operation.duration"]
    denials = metrics["remit.authority.denials"].sum.data_points

    assert set(metrics) >= {
        "mcp.client.operation.duration",
        "mcp.client.session.duration",
        "gen_ai.invoke_agent.duration",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.tool_calls",
        "remit.authority.denials",
    }
    assert durations.unit == "s"
    points = durations.histogram.data_points
    assert {attributes(point.attributes)["mcp.method.name"] for point in points} >= {"tools/call"}
    assert all(0 < point.sum < 60 for point in points)
    assert sum(point.as_int for point in denials) >= 2
    assert all("reason" in attributes(point.attributes) for point in denials)


def test_nothing_that_a_call_carried_goes_to_a_receiver(demo: Received):
    sent = b"".join(body for bodies in demo.bodies.values() for body in bodies)

    for secret in (SECRET, "A project", "README.md", "brief.md"):
        assert secret.encode() not in sent


@contextmanager
def dead() -> Generator[str]:
    """An address that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@contextmanager
def hanging() -> Generator[str]:
    """An address at which somebody takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def refusing() -> Generator[str]:
    """A receiver that wants everything again later."""

    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(503)
            self.send_header("retry-after", "30")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base names it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("receiving", [dead, hanging, refusing])
def test_a_receiver_that_is_no_use_holds_the_end_for_two_seconds_at_most_and_is_not_told_of(
    packages: str, tmp_path: Path, receiving: Callable[[], Any]
):
    with receiving() as endpoint:
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            env=environment(packages, tmp_path, endpoint),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        ended = time.monotonic()

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # one clock for all processes
    assert ended - float(done.stdout) < SHUTDOWN_SECONDS + SLACK_SECONDS
