"""Spans and metrics over the OpenTelemetry API. Chooses no exporter; lets no content through."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from opentelemetry import context as otel_context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span as OtelSpan, SpanKind, StatusCode

from orchestrator.core.capability import BUILTIN_SERVER, CapabilityRef
from orchestrator.core.display import safe_line
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.ids import AgentId, CallId
from orchestrator.core.ports import Clock, Span
from orchestrator.telemetry import names

__all__ = ["OPEN_SPANS_MAX", "OtelTelemetry"]

OPEN_SPANS_MAX: Final = 20_000
"""Calls and requests under way at one time: 20 for each of the most agents that a session has."""

_TEXT_CHARS_MAX: Final = 128
_RUN: Final = otel_context.create_key("remit-run")
_ROOT: Final = otel_context.create_key("remit-root")
_DENIALS: Final = frozenset(reason.value for reason in DenyReason)

_TARGET_NAMES: Final = {"tools/call": names.TOOL_NAME, "prompts/get": names.PROMPT_NAME}
_SECONDS_OF: Final = {
    "invoke_agent": names.AGENT_SECONDS,
    "execute_tool": names.TOOL_SECONDS,
    "chat": names.CHAT_SECONDS,
}

_Attributes = Mapping[str, str | float]


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    span: OtelSpan
    method: str
    since: float


class _LiveSpan:
    """A `Span` of the port over one of OpenTelemetry's."""

    __slots__ = ("_span", "error_type")

    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        self.error_type = ""

    def set(self, name: str, value: str | float) -> None:
        """Set one attribute; one that is for content is left out."""
        if name not in names.CONTENT:
            self._span.set_attribute(name, _bounded(value))

    def fail(self, error_type: str) -> None:
        """Mark the work as failed. The status has no description: that would be free text."""
        self.error_type = error_type
        self._span.set_attribute(names.ERROR_TYPE, _bounded(error_type))
        self._span.set_status(StatusCode.ERROR)


class OtelTelemetry:
    """The telemetry of one session, on the providers that are installed, or on those given.

    Spans nest by the task that opens them; a client span stands below the span of the call it
    belongs to, whichever task sends its bytes. `run` is the conversation of spans that are opened
    outside of any workflow.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        run: str = "",
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        open_spans_max: int = OPEN_SPANS_MAX,
    ) -> None:
        self._clock = clock
        self._run = run
        self._open_spans_max = open_spans_max
        self._tracer = trace.get_tracer(names.INSTRUMENTATION, tracer_provider=tracer_provider)
        meter = metrics.get_meter(names.INSTRUMENTATION, meter_provider=meter_provider)
        self._seconds = {
            name: meter.create_histogram(
                name, unit="s", explicit_bucket_boundaries_advisory=names.SECONDS_BUCKETS
            )
            for name in (names.MCP_SECONDS, *_SECONDS_OF.values())
        }
        self._denials = meter.create_counter(names.DENIALS, unit="{call}")
        self._calls: dict[CallId, Context] = {}
        self._requests: dict[tuple[str, int], _OpenRequest] = {}

    @contextmanager
    def workflow(self, name: str, run: str) -> Generator[Span, None, None]:
        """Open `invoke_workflow {name}`; `run` is the conversation of everything inside."""
        token = otel_context.attach(otel_context.set_value(_RUN, run))
        attributes = {names.WORKFLOW_NAME: name, names.AGENT_NAME: name}
        try:
            with self._work("invoke_workflow", name, attributes) as span:
                root = otel_context.attach(
                    otel_context.set_value(_ROOT, otel_context.get_current())
                )
                try:
                    yield span
                finally:
                    otel_context.detach(root)
        finally:
            otel_context.detach(token)

    @contextmanager
    def agent(self, agent: AgentId, model: str) -> Generator[Span, None, None]:
        """Open `invoke_agent {agent}`."""
        attributes = {names.AGENT_NAME: agent, names.REQUEST_MODEL: model}
        with self._work("invoke_agent", agent, attributes) as span:
            yield span

    @contextmanager
    def tool(self, ref: CapabilityRef, agent: AgentId, call: CallId) -> Generator[Span, None, None]:
        """Open `execute_tool {name}`; client spans of `call` stand below it until it is left."""
        attributes = {
            names.TOOL_NAME: ref.name,
            names.TOOL_TYPE: "function" if ref.server == BUILTIN_SERVER else "extension",
            names.TOOL_CALL_ID: call,
            names.AGENT_NAME: agent,
            names.SERVER: ref.server,
        }
        with self._work("execute_tool", ref.name, attributes) as span:
            if len(self._calls) < self._open_spans_max:
                self._calls[call] = otel_context.get_current()
            try:
                yield span
            finally:
                self._calls.pop(call, None)
                if span.error_type in _DENIALS:
                    self._denials.add(1, {names.DENIAL_REASON: span.error_type})

    @contextmanager
    def chat(self, model: str, provider: str) -> Generator[Span, None, None]:
        """Open `chat {model}`."""
        attributes = {names.REQUEST_MODEL: model, names.PROVIDER: provider}
        with self._work("chat", model, attributes, SpanKind.CLIENT) as span:
            yield span

    def request_started(
        self, server: str, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        """Open `{method} {target}` below the span of `call`.

        A resource's URI may be its content's name, or a secret: it stands in no span. Never raises:
        the byte is out, and a span processor that fails must not turn that into an error.
        """
        with suppress(Exception):
            self._start_request(server, request_id, method, target, call)

    def request_ended(self, server: str, request_id: int, error_type: str) -> None:
        """Close the client span of a request; an unknown one is no matter. Never raises."""
        with suppress(Exception):
            self._end_request((server, request_id), error_type)

    def _start_request(
        self, server: str, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        parent = self._calls.get(call) if call is not None else None
        if parent is None:
            # Not the current context: that of a flush is whoever's frame happened to start it.
            root = otel_context.get_value(_ROOT)
            parent = root if isinstance(root, Context) else Context()
        attributes: dict[str, str | float] = {
            names.MCP_METHOD: method,
            names.JSONRPC_REQUEST_ID: str(request_id),
            names.SERVER: server,
        }
        title = method
        if method in _TARGET_NAMES and target:
            attributes[_TARGET_NAMES[method]] = target
            title = f"{method} {target}"
        if method == "tools/call":
            attributes[names.OPERATION] = "execute_tool"
        if len(self._requests) >= self._open_spans_max:
            self._end_request(next(iter(self._requests)), "abandoned")
        self._end_request((server, request_id), "abandoned")
        span = self._start(title, SpanKind.CLIENT, attributes, parent)
        self._requests[(server, request_id)] = _OpenRequest(span, method, self._clock.now())

    def _end_request(self, key: tuple[str, int], error_type: str) -> None:
        request = self._requests.pop(key, None)
        if request is None:
            return
        if error_type:
            _LiveSpan(request.span).fail(error_type)
        self._record(
            names.MCP_SECONDS, {names.MCP_METHOD: request.method}, request.since, error_type
        )
        request.span.end()

    @contextmanager
    def _work(
        self,
        operation: str,
        target: str,
        attributes: _Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Generator[_LiveSpan, None, None]:
        """Open one span as the current one; an error that passes through it is named on it."""
        span = self._start(
            f"{operation} {target}", kind, {names.OPERATION: operation, **attributes}, None
        )
        live = _LiveSpan(span)
        since = self._clock.now()
        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            yield live
        except BaseException as error:
            if not live.error_type:
                live.fail(_error_type(error))
            raise
        finally:
            otel_context.detach(token)
            metric = _SECONDS_OF.get(operation)
            if metric is not None:
                labels = {names.OPERATION: operation}
                self._record(metric, labels, since, live.error_type)
            span.end()

    def _start(
        self, name: str, kind: SpanKind, attributes: _Attributes, parent: Context | None
    ) -> OtelSpan:
        run = otel_context.get_value(_RUN, parent) or self._run
        plain = {key: _bounded(value) for key, value in attributes.items()}
        if run:
            plain[names.CONVERSATION_ID] = str(run)
        return self._tracer.start_span(
            safe_line(name, chars_max=_TEXT_CHARS_MAX), context=parent, kind=kind, attributes=plain
        )

    def _record(
        self, metric: str, labels: Mapping[str, str], since: float, error_type: str
    ) -> None:
        """Add one duration. Labels name kinds of work, never one piece of it."""
        failed = {names.ERROR_TYPE: error_type} if error_type else {}
        self._seconds[metric].record(max(0.0, self._clock.now() - since), {**labels, **failed})


def _error_type(error: BaseException) -> str:
    """Name an error by words of ours: a reason, a code, a class; never by its message."""
    if isinstance(error, AuthorityError):
        return error.reason.value
    if isinstance(error, RemitError):
        return error.code
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"


def _bounded(value: str | float) -> str | float:
    return safe_line(value, chars_max=_TEXT_CHARS_MAX) if isinstance(value, str) else value
