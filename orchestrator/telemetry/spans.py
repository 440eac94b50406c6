"""Spans and metrics over the OpenTelemetry API. Chooses no exporter; lets no content through."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from opentelemetry import context as otel_context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span as OtelSpan, SpanKind, StatusCode

from orchestrator.core.capability import BUILTIN_SERVER, CapabilityRef
from orchestrator.core.content import TRUST
from orchestrator.core.display import safe_line
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.ids import AgentId, CallId
from orchestrator.core.ports import Clock, Peer, Span
from orchestrator.telemetry import names
from orchestrator.telemetry.instruments import Instruments
from orchestrator.telemetry.propagation import Propagation

__all__ = ["OPEN_SPANS_MAX", "OtelTelemetry"]

OPEN_SPANS_MAX: Final = 20_000
"""Calls and requests under way at one time: 20 for each of the most agents that a session has."""

_TEXT_CHARS_MAX: Final = 128
_LIST_MAX: Final = 8
_RUN: Final = otel_context.create_key("remit-run")
_ROOT: Final = otel_context.create_key("remit-root")
_AGENT: Final = otel_context.create_key("remit-agent")
_DENIALS: Final = frozenset(reason.value for reason in DenyReason)

_TARGET_NAMES: Final = {"tools/call": names.TOOL_NAME, "prompts/get": names.PROMPT_NAME}

_TOKEN_KINDS: Final = {"input": names.INPUT_TOKENS, "output": names.OUTPUT_TOKENS}

_Key = tuple[str, tuple[str, str], int | str]
"""Whose request it is, ours or theirs, over which connection, and its id."""
_Attributes = Mapping[str, str | float]


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    span: OtelSpan
    method: str
    peer: Peer
    since: float


@dataclass(slots=True)
class _Used:
    """What one agent used, for its span and the metrics."""

    requests: int = 0
    calls: int = 0
    input_tokens: float = 0
    output_tokens: float = 0


class _LiveSpan:
    """A `Span` of the port over one of OpenTelemetry's."""

    __slots__ = ("_span", "error_type", "tokens")

    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        self.error_type = ""
        self.tokens: dict[str, float] = {}

    def set(self, name: str, value: str | float | Sequence[str]) -> None:
        """Set one attribute; one that is for content is left out."""
        if name in names.CONTENT:
            return
        if name in (names.INPUT_TOKENS, names.OUTPUT_TOKENS) and isinstance(value, int | float):
            self.tokens[name] = value
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
    outside of any workflow. Where `propagates` is false, servers learn nothing of a trace.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        run: str = "",
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        open_spans_max: int = OPEN_SPANS_MAX,
        propagates: bool = True,
    ) -> None:
        self._clock = clock
        self._run = run
        self._open_spans_max = open_spans_max
        self._tracer = trace.get_tracer(names.INSTRUMENTATION, tracer_provider=tracer_provider)
        self._instruments = Instruments(meter_provider)
        self._propagates = propagates
        self._propagation = Propagation()
        self._calls: dict[CallId, Context] = {}
        self._connecting: dict[tuple[str, str], Context] = {}
        self._requests: dict[_Key, _OpenRequest] = {}

    # ------------------------------------------------------------------------------- our work

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
    def agent(
        self, agent: AgentId, model: str, provider: str, *, stays: bool
    ) -> Generator[Span, None, None]:
        """Open `invoke_agent {agent}`; what it used stands on it when it ends.

        One that stays outlives the work that made it: its span begins a trace, with a link back.
        """
        above = agent.rpartition("/")[0]
        attributes: dict[str, str | float] = {
            names.AGENT_NAME: agent,
            names.AGENT_ID: agent,
            names.REQUEST_MODEL: model,
            names.PROVIDER: provider,
            names.LIFETIME: "persistent" if stays else "one_off",
            names.DEPTH: agent.count("/"),
        }
        if above:
            attributes[names.PARENT_ID] = above
        used, since = _Used(), self._clock.now()
        parent = self._apart() if stays else otel_context.get_current()
        parent = otel_context.set_value(_AGENT, used, parent)

        def done(span: _LiveSpan) -> None:
            if used.requests:
                span.set(names.INPUT_TOKENS, used.input_tokens)
                span.set(names.OUTPUT_TOKENS, used.output_tokens)
            self._agent_ended(used, since, span.error_type)

        with self._work(
            "invoke_agent", agent, attributes, parent=parent, linked=stays, done=done
        ) as span:
            yield span

    @contextmanager
    def tool(self, ref: CapabilityRef, agent: AgentId, call: CallId) -> Generator[Span, None, None]:
        """Open `execute_tool {name}`; client spans of `call` stand below it until it is left."""
        builtin = ref.server == BUILTIN_SERVER
        attributes = {
            names.TOOL_NAME: ref.name,
            names.TOOL_TYPE: "function" if builtin else "extension",
            names.TOOL_CALL_ID: call,
            names.AGENT_NAME: agent,
            names.SERVER: ref.server,
        }
        if not builtin:
            attributes[names.TRUST_LABEL] = TRUST
        used, since = _used_here(), self._clock.now()
        used.calls += 1

        def done(span: _LiveSpan) -> None:
            self._calls.pop(call, None)
            if span.error_type in _DENIALS:
                self._instruments.denied(span.error_type)
            self._took(names.TOOL_SECONDS, "execute_tool", since, span.error_type)

        with self._work("execute_tool", ref.name, attributes, done=done) as span:
            if len(self._calls) < self._open_spans_max:
                self._calls[call] = otel_context.get_current()
            yield span

    @contextmanager
    def chat(self, model: str, provider: str) -> Generator[Span, None, None]:
        """Open `chat {model}`."""
        labels = {names.REQUEST_MODEL: model, names.PROVIDER: provider}
        used, since = _used_here(), self._clock.now()
        used.requests += 1

        def done(span: _LiveSpan) -> None:
            used.input_tokens += span.tokens.get(names.INPUT_TOKENS, 0)
            used.output_tokens += span.tokens.get(names.OUTPUT_TOKENS, 0)
            self._took(names.CHAT_SECONDS, "chat", since, span.error_type, labels)
            for kind, name in _TOKEN_KINDS.items():
                if name in span.tokens:
                    told = {names.OPERATION: "chat", **labels, names.TOKEN_TYPE: kind}
                    self._instruments.counted(names.TOKENS, int(span.tokens[name]), told)

        with self._work("chat", model, labels, SpanKind.CLIENT, done=done) as span:
            yield span

    @contextmanager
    def waiting(self) -> Generator[None, None, None]:
        """Count one approval that a person is waited for, as long as it is entered."""
        self._instruments.pending(1)
        try:
            yield
        finally:
            self._instruments.pending(-1)

    @contextmanager
    def connecting(self, peer: Peer) -> Generator[None, None, None]:
        """Open `connect {server}`: what is asked of the server in the meantime stands below it.

        The conventions have no such span; without one each of these requests was a trace by itself.
        """
        attributes = {names.SERVER: peer.server, **_peer_attributes(peer)}
        key = _place(peer)
        with self._work("connect", peer.server, attributes, named=False):
            self._connecting[key] = otel_context.get_current()
            try:
                yield
            finally:
                self._connecting.pop(key, None)

    @contextmanager
    def connected(self, peer: Peer) -> Generator[None, None, None]:
        """Take the time that a connection stands, as long as it is entered."""
        since = self._clock.now()
        try:
            yield
        finally:
            took = self._clock.now() - since
            self._instruments.took(names.SESSION_SECONDS, took, _peer_labels(peer))

    # ------------------------------------------------------------------------------- the wire

    def traceparent(self) -> str:
        """Return the present span for a request of ours; empty where servers are told nothing."""
        return self._propagation.traceparent() if self._propagates else ""

    def request_started(
        self, peer: Peer, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        """Open `{method} {target}` below the span of `call`.

        A resource's URI may be its content's name, or a secret: it stands in no span. Never raises:
        the byte is out, and a span processor that fails must not turn that into an error.
        """
        with suppress(Exception):
            self._start_request(peer, request_id, method, target, call)

    def request_ended(self, peer: Peer, request_id: int, error_type: str) -> None:
        """Close the client span of a request; an unknown one is no matter. Never raises."""
        with suppress(Exception):
            self._end_request(("ours", _place(peer), request_id), error_type)

    def question_started(
        self, peer: Peer, question: int | str, method: str, traceparent: str
    ) -> None:
        """Open `{method}` for what a server asks, in the trace that it was told of. Never raises."""
        with suppress(Exception):
            parent = self._propagation.parent_of(traceparent) or _root()
            self._open_request(
                ("theirs", _place(peer), question),
                peer,
                method,
                method,
                {},
                parent,
                SpanKind.SERVER,
            )

    def question_ended(self, peer: Peer, question: int | str, error_type: str) -> None:
        """Close the server span of a question; an unknown one is no matter. Never raises."""
        with suppress(Exception):
            self._end_request(("theirs", _place(peer), question), error_type)

    def _start_request(
        self, peer: Peer, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        # Not the current context: that of a flush is whoever's frame happened to start it.
        if call is not None:
            parent = self._calls.get(call) or _root()
        else:
            parent = self._connecting.get(_place(peer)) or _root()
        attributes: dict[str, str | float] = {}
        title = method
        if method in _TARGET_NAMES and target:
            attributes[_TARGET_NAMES[method]] = target
            title = f"{method} {target}"
        if method == "tools/call":
            attributes[names.OPERATION] = "execute_tool"
        key = ("ours", _place(peer), request_id)
        self._open_request(key, peer, method, title, attributes, parent, SpanKind.CLIENT)

    def _open_request(
        self,
        key: _Key,
        peer: Peer,
        method: str,
        title: str,
        attributes: _Attributes,
        parent: Context,
        kind: SpanKind,
    ) -> None:
        if len(self._requests) >= self._open_spans_max:
            self._end_request(next(iter(self._requests)), "abandoned")
        self._end_request(key, "abandoned")
        told = {
            names.MCP_METHOD: method,
            names.JSONRPC_REQUEST_ID: str(key[2]),
            names.SERVER: peer.server,
            **_peer_attributes(peer),
            **attributes,
        }
        span = self._start(title, kind, told, parent)
        self._requests[key] = _OpenRequest(span, method, peer, self._clock.now())

    def _end_request(self, key: _Key, error_type: str) -> None:
        request = self._requests.pop(key, None)
        if request is None:
            return
        if error_type:
            _LiveSpan(request.span).fail(error_type)
            if error_type.lstrip("-").isdecimal():
                request.span.set_attribute(names.RPC_STATUS, error_type)
        if key[0] == "ours":
            labels = {names.MCP_METHOD: request.method, **_peer_labels(request.peer)}
            took = self._clock.now() - request.since
            self._instruments.took(names.MCP_SECONDS, took, labels, error_type)
        request.span.end()

    # -------------------------------------------------------------------------------- helpers

    @contextmanager
    def _work(
        self,
        operation: str,
        target: str,
        attributes: _Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        named: bool = True,
        parent: Context | None = None,
        linked: bool = False,
        done: Callable[[_LiveSpan], None] | None = None,
    ) -> Generator[_LiveSpan, None, None]:
        """Open one span as the current one; an error that passes through it is named on it.

        `named` says whether the operation is one of the conventions.
        """
        told = {names.OPERATION: operation, **attributes} if named else attributes
        here = trace.get_current_span().get_span_context()
        links = (Link(here),) if linked and here.is_valid else ()
        span = self._start(f"{operation} {target}", kind, told, parent, links)
        live = _LiveSpan(span)
        token = otel_context.attach(trace.set_span_in_context(span, parent))
        try:
            yield live
        except BaseException as error:
            if not live.error_type:
                live.fail(_error_type(error))
            raise
        finally:
            otel_context.detach(token)
            if done is not None:
                done(live)
            span.end()

    def _start(
        self,
        name: str,
        kind: SpanKind,
        attributes: _Attributes,
        parent: Context | None,
        links: Sequence[Link] = (),
    ) -> OtelSpan:
        run = otel_context.get_value(_RUN, parent) or self._run
        plain = {key: _bounded(value) for key, value in attributes.items()}
        if run:
            plain[names.CONVERSATION_ID] = str(run)
        title = safe_line(name, chars_max=_TEXT_CHARS_MAX)
        return self._tracer.start_span(
            title, context=parent, kind=kind, attributes=plain, links=links
        )

    def _apart(self) -> Context:
        """Return a context that is in no trace, and of the same run."""
        return otel_context.set_value(_RUN, otel_context.get_value(_RUN), Context())

    def _agent_ended(self, used: _Used, since: float, error_type: str) -> None:
        self._took(names.AGENT_SECONDS, "invoke_agent", since, error_type)
        labels = {names.OPERATION: "invoke_agent"}
        self._instruments.counted(names.AGENT_INFERENCE_CALLS, used.requests, labels)
        self._instruments.counted(names.AGENT_TOOL_CALLS, used.calls, labels)

    def _took(
        self,
        metric: str,
        operation: str,
        since: float,
        error_type: str,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        took = self._clock.now() - since
        told = {names.OPERATION: operation, **(labels or {})}
        self._instruments.took(metric, took, told, error_type)


def _used_here() -> _Used:
    """Return what the agent at work has used; of nobody's call, something that is thrown away."""
    found = otel_context.get_value(_AGENT)
    return found if isinstance(found, _Used) else _Used()


def _root() -> Context:
    """Return the context of the workflow that we are in; else one in no trace."""
    root = otel_context.get_value(_ROOT)
    return root if isinstance(root, Context) else Context()


def _place(peer: Peer) -> tuple[str, str]:
    """Return what tells connections apart: their requests are counted each by itself."""
    return (peer.server, peer.agent)


def _peer_labels(peer: Peer) -> dict[str, str]:
    """What a connection is of a kind of."""
    told = {names.NETWORK_TRANSPORT: peer.transport, names.MCP_VERSION: peer.version}
    return {name: value for name, value in told.items() if value}


def _peer_attributes(peer: Peer) -> dict[str, str | float]:
    told: dict[str, str | float] = {**_peer_labels(peer)}
    if peer.agent:
        told[names.AGENT_ID] = peer.agent
    if peer.address:
        told |= {names.SERVER_ADDRESS: peer.address, names.NETWORK_PROTOCOL: "http"}
    if peer.port:
        told[names.SERVER_PORT] = peer.port
    return told


def _error_type(error: BaseException) -> str:
    """Name an error by words of ours: a reason, a code, a class; never by its message."""
    if isinstance(error, AuthorityError):
        return error.reason.value
    if isinstance(error, RemitError):
        return error.code
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"


def _bounded(value: str | float | Sequence[str]) -> str | float | list[str]:
    if isinstance(value, str):
        return safe_line(value, chars_max=_TEXT_CHARS_MAX)
    if isinstance(value, int | float):
        return value
    return [safe_line(each, chars_max=_TEXT_CHARS_MAX) for each in value[:_LIST_MAX]]
