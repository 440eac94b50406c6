"""The states of one connection: frames in, events out; it knows no pending call and does no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from mcp_client.protocol.capabilities import (
    ServerCapabilities,
    notification_allowed,
    requests_allowed,
)
from mcp_client.protocol.connection.frames import (
    OutgoingRequest,
    ServerInfo,
    answer_frame,
    cancelled_frame,
    check_params,
    notification_frame,
    read_server_info,
    refusal_frame,
    request_frame,
)
from mcp_client.protocol.declaration import NOTHING_DECLARED, ClientCapabilities, client_info
from mcp_client.protocol.errors import (
    Delivery,
    HandshakeError,
    LocalProtocolError,
    UnsupportedVersionError,
)
from mcp_client.protocol.events import (
    ErrorReceived,
    Event,
    HandshakeFailed,
    InitializeAnswered,
    NotificationReceived,
    PeerViolation,
    RequestId,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.jsonrpc import (
    Message,
    as_object,
    classify,
    encode,
    read_message,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.meta import has_meta, with_meta
from mcp_client.protocol.modern.errors import ModernServerError
from mcp_client.protocol.modern.extensions import (
    Settings,
    extension_request_allowed,
    in_common,
    read_extensions,
)
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import names_modern
from mcp_client.protocol.surfaces.tasks import TaskSupport, task_request_allowed
from mcp_client.protocol.texts import cut_text
from mcp_client.protocol.versions import BATCHING_VERSION, MODERN_VERSIONS, SUPPORTED_VERSIONS

__all__ = [
    "INITIALIZE_ID",
    "TRANSITIONS",
    "ClientConnection",
    "ConnectionState",
    "Step",
]

INITIALIZE_ID: Final = 1
"""The id of the first `initialize`, which is the first request of each connection."""


class ConnectionState(Enum):
    """Where a connection stands."""

    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"
    CLOSED = "closed"


class Step(Enum):
    """What can happen to a connection, or be asked of it."""

    INITIALIZE = "initialize"
    ACCEPT = "accept"
    """The server answered `initialize` as it must."""
    REJECT = "reject"
    """The server answered `initialize` with something of no use."""
    ANNOUNCE = "announce"
    """`notifications/initialized`."""
    REQUEST = "request"
    CANCEL = "cancel"
    NOTIFY = "notify"
    ANSWER = "answer"
    """An answer to a request of the server; ping comes before the handshake is over too."""
    CLOSE = "close"


_READY: Final = ConnectionState.READY  # looked up by name it would cost as much as a call

TRANSITIONS: Final[Mapping[tuple[ConnectionState, Step], ConnectionState]] = {
    (ConnectionState.NEW, Step.INITIALIZE): ConnectionState.INITIALIZING,
    (ConnectionState.NEW, Step.CLOSE): ConnectionState.CLOSED,
    # the answer to the one before was given up
    (ConnectionState.INITIALIZING, Step.INITIALIZE): ConnectionState.INITIALIZING,
    (ConnectionState.INITIALIZING, Step.ACCEPT): ConnectionState.READY,
    (ConnectionState.INITIALIZING, Step.REJECT): ConnectionState.CLOSED,
    (ConnectionState.INITIALIZING, Step.ANSWER): ConnectionState.INITIALIZING,
    (ConnectionState.INITIALIZING, Step.CLOSE): ConnectionState.CLOSED,
    # the server has forgotten the session (MCP 2025-03-26, session management)
    (ConnectionState.READY, Step.INITIALIZE): ConnectionState.INITIALIZING,
    (ConnectionState.READY, Step.ANNOUNCE): ConnectionState.READY,
    (ConnectionState.READY, Step.REQUEST): ConnectionState.READY,
    (ConnectionState.READY, Step.CANCEL): ConnectionState.READY,
    (ConnectionState.READY, Step.NOTIFY): ConnectionState.READY,
    (ConnectionState.READY, Step.ANSWER): ConnectionState.READY,
    (ConnectionState.READY, Step.CLOSE): ConnectionState.CLOSED,
    (ConnectionState.CLOSED, Step.CLOSE): ConnectionState.CLOSED,
}
"""What is not here is an error of whoever asked for it."""


class ClientConnection:
    """The client's side of one connection, from `initialize` to its end.

    Attributes that the handshake sets stand at their defaults until it is over.

    Args:
        limits: the bounds of the connection.
        server: the host's label of the server, for errors.
        declared: what the server may ask of the client. What the negotiated version knows of it
            is `negotiated`: nothing before the handshake is over.
        offers: the extensions that are on, with our settings.
        last_id: the highest id given to a request on this connection before the handshake.
        awaits: whether an answer to `initialize` with this id, in the stream of that request, is
            one that somebody waits for. One that nobody does changes nothing here.

    Attributes:
        has_rounds: whether a result may be the server's questions, or a task: not with a handshake.
        declares: the capabilities of the server, as it declared them.
        extensions: the server's settings of the extensions that both sides have.
    """

    has_rounds: Final = False

    def __init__(
        self,
        limits: ClientLimits,
        *,
        server: str = "",
        declared: ClientCapabilities = NOTHING_DECLARED,
        offers: Mapping[str, Settings] | None = None,
        bounds: ModernLimits | None = None,
        last_id: int = 0,
        awaits: Callable[[int, int | None], bool] = lambda request_id, within: True,
    ) -> None:
        self._limits = limits
        self._awaits = awaits
        self._bounds = bounds or ModernLimits()
        self._server = server
        self._declared = declared
        self._offers = offers or {}
        self._state = ConnectionState.NEW
        self._last_id = last_id
        self._initialize_id = INITIALIZE_ID
        self._versions: Sequence[str] = SUPPORTED_VERSIONS
        self.protocol_version = ""
        self.declares: Mapping[str, object] = {}
        self.extensions: Mapping[str, Settings] = {}
        self.capabilities = ServerCapabilities()
        self._allowed = requests_allowed(self.capabilities)
        self.negotiated = NOTHING_DECLARED
        self.server_info = ServerInfo()
        self.instructions = ""

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._state

    @property
    def last_id(self) -> int:
        """The highest id given to a request so far. No id is given twice."""
        return self._last_id

    @property
    def task_support(self) -> TaskSupport:
        """What the server declared about tasks of 2025-11-25."""
        return TaskSupport.parse(self.declares, version=self.protocol_version)

    # ------------------------------------------------------------------------------ outgoing

    def frame_initialize(self, versions: Sequence[str] = SUPPORTED_VERSIONS) -> OutgoingRequest:
        """Begin the handshake, or begin it anew with a server that has forgotten the session.

        `versions` are those that will do; the first one is asked for.
        """
        self._take(Step.INITIALIZE)
        self._versions = versions
        self._initialize_id = self._last_id = self._last_id + 1
        # what the version asked for does not know would be declared, and then refused
        capabilities = dict(self._declared.at(versions[0]).declared())
        if self._offers:
            capabilities["extensions"] = dict(self._offers)
        params = {
            "protocolVersion": versions[0],
            "capabilities": capabilities,
            "clientInfo": client_info(),
        }
        return request_frame(self._initialize_id, "initialize", encode(params))

    def frame_initialized(self) -> bytes:
        """Tell the server that the handshake is over."""
        self._take(Step.ANNOUNCE)
        return b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

    def frame_request(
        self, method: str, params: bytes, *, with_progress: bool = False, trace: bytes = b""
    ) -> OutgoingRequest:
        """Put an envelope around `params`, a JSON object in canonical form, which stays as it is.

        With `with_progress` the server is asked to report progress under the request's id. `trace` is
        what `trace_member` returned; params with a `_meta` of their own go without it. Raises
        LocalProtocolError if the connection is not ready or the server has not declared what the
        method needs.
        """
        if self._state is not _READY:
            self._take(Step.REQUEST)
        # MCP, lifecycle: only capabilities that were negotiated may be used
        if method not in self._allowed and not self._extended(method):
            raise LocalProtocolError(
                "the server has not declared what this method needs",
                server=self._server,
                stage="send",
            )
        check_params(params, self._server)
        request_id = self._last_id + 1
        if with_progress:
            params = with_meta(params, trace, self._limits, token=request_id)
        elif trace and not has_meta(params, self._limits):
            params = with_meta(params, trace, self._limits)
        self._last_id = request_id
        return request_frame(request_id, method, params)

    def frame_cancelled(self, request_id: int, reason: str = "") -> bytes:
        """Tell the server that nobody waits for a request any more."""
        self._take(Step.CANCEL)
        return cancelled_frame(request_id, reason)

    def frame_notification(self, method: str) -> bytes:
        """Tell the server something that needs no params. Only when the connection is ready."""
        self._take(Step.NOTIFY)
        return notification_frame(method)

    def frame_answer(self, request_id: RequestId, result: Mapping[str, object]) -> bytes:
        """Answer a request of the server. Raises LocalProtocolError if the result is no JSON."""
        frame = answer_frame(request_id, result, depth_max=self._limits.nesting_depth_max)
        self._take(Step.ANSWER)
        return frame

    def frame_refusal(self, request_id: RequestId, code: int, message: str) -> bytes:
        """Answer a request of the server with an error."""
        self._take(Step.ANSWER)
        return refusal_frame(request_id, code, message)

    def close(self) -> None:
        """The connection is over. Idempotent."""
        self._take(Step.CLOSE)

    # ------------------------------------------------------------------------------ incoming

    def receive(self, frame: bytes, within: int | None = None) -> tuple[Event, ...]:
        """Take one frame and return what happened. Never raises; nothing comes after the end.

        It came `within` the stream of a request, or where there is one stream for all.
        """
        if self._state is _READY:
            message = read_message(frame, self._limits)
            if type(message) is ResponseReceived:
                return (message,)
            return self._events(message, within)
        if self._state is ConnectionState.INITIALIZING:
            return self._events(read_message(frame, self._limits), within)
        return ()

    def _events(self, message: Message | list[object], within: int | None) -> tuple[Event, ...]:
        if isinstance(message, list):
            return self._batch(message, within)
        return (self._event(message, within),)

    def _batch(self, messages: list[object], within: int | None) -> tuple[Event, ...]:
        # JSON-RPC: an empty array is no batch
        if self.protocol_version != BATCHING_VERSION or not messages:
            return (PeerViolation(kind=Violation.BATCH, detail="an array is no message here"),)
        if len(messages) > self._limits.batch_messages_max:
            bound = self._limits.batch_messages_max
            detail = f"an array of more than {bound} messages"
            return (PeerViolation(kind=Violation.BATCH, detail=detail),)
        return tuple([self._event(classify(each), within) for each in messages])

    def _event(self, message: Message, within: int | None) -> Event:
        if isinstance(message, NotificationReceived):
            if self._is_negotiated(message.method):
                return message
            return PeerViolation(
                kind=Violation.UNDECLARED_NOTIFICATION, detail="a notification not negotiated"
            )
        if self._state is not ConnectionState.INITIALIZING:
            return message
        if not self._awaits(self._initialize_id, within):
            return message
        match message:
            case ResponseReceived(request_id=id_) if id_ == self._initialize_id:
                return self._accept(message.result)
            case ErrorReceived(request_id=id_) if id_ == self._initialize_id:
                if names_modern(message.code, message.message, message.data):
                    self._take(Step.REJECT)
                    return self._modern(accepted=False)
                return self._reject(f"the server answered initialize with error {message.code}")
            case PeerViolation(request_id=id_) if id_ == self._initialize_id:
                return self._reject(f"the answer to initialize is malformed: {message.detail}")
            case _:
                return message

    def _extended(self, method: str) -> bool:
        if method.startswith("tasks/"):
            return task_request_allowed(method, self.task_support)
        return extension_request_allowed(method, self.extensions)

    def _is_negotiated(self, notification: str) -> bool:
        if notification == "notifications/elicitation/complete":
            return self.negotiated.elicitation_url
        if notification == "notifications/tasks/status":
            # MCP 2025-11-25, tasks: a server may tell; nobody waits for it, since tasks are polled
            return self.task_support.tool_calls
        return notification_allowed(notification, self.capabilities)

    # ----------------------------------------------------------------------------- handshake

    def _accept(self, result: object) -> Event:
        members = as_object(result)
        if members is None:
            return self._reject("the answer to initialize is not an object")
        version = members.get("protocolVersion")
        capabilities = as_object(members.get("capabilities"))
        if not isinstance(version, str) or capabilities is None:
            return self._reject("the answer to initialize has no protocol version or capabilities")
        if version in MODERN_VERSIONS:
            self._take(Step.ACCEPT)
            return self._modern(accepted=True)
        if version not in self._versions:
            self._take(Step.REJECT)
            error = UnsupportedVersionError(
                "the server speaks a protocol version that this client does not",
                offered=cut_text(version, self._limits.name_chars_max),
                server=self._server,
            )
            return HandshakeFailed(self._initialize_id, error)
        self._take(Step.ACCEPT)
        self.protocol_version = version
        self.capabilities = ServerCapabilities.parse(capabilities, version=version)
        self._allowed = requests_allowed(self.capabilities)
        self.declares = capabilities
        self.extensions = in_common(self._offers, read_extensions(capabilities, self._bounds))
        self.negotiated = self._declared.at(version)
        self.server_info = read_server_info(
            as_object(members.get("serverInfo")) or {}, self._limits
        )
        instructions = members.get("instructions")
        self.instructions = (
            cut_text(instructions, self._limits.instructions_chars_max)
            if isinstance(instructions, str)
            else ""
        )
        return InitializeAnswered(self._initialize_id, result)

    def _modern(self, *, accepted: bool) -> HandshakeFailed:
        error = ModernServerError(
            "the server speaks only versions without a handshake",
            server=self._server,
            accepted=accepted,
        )
        return HandshakeFailed(self._initialize_id, error)

    def _reject(self, detail: str) -> HandshakeFailed:
        self._take(Step.REJECT)
        error = HandshakeError(
            detail, server=self._server, stage="handshake", delivery=Delivery.ANSWERED
        )
        return HandshakeFailed(self._initialize_id, error)

    # ------------------------------------------------------------------------------- helpers

    def _take(self, step: Step) -> None:
        following = TRANSITIONS.get((self._state, step))
        if following is None:
            raise LocalProtocolError(
                f"{step.value} is not possible while the connection is {self._state.value}",
                server=self._server,
                stage="send",
            )
        self._state = following
