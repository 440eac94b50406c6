"""The states of a connection without a handshake (MCP 2026-07-28): frames in, events out; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from mcp_client.protocol.capabilities import ServerCapabilities
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
from mcp_client.protocol.declaration import NOTHING_DECLARED, ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.events import (
    Event,
    NotificationReceived,
    PeerViolation,
    RequestId,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.jsonrpc import Message, encode, read_message
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.meta import with_meta
from mcp_client.protocol.modern.extensions import Settings, extension_request_allowed, in_common
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import (
    DiscoverResult,
    RequestMeta,
    capability_members,
    lowered,
    read_result_type,
)
from mcp_client.protocol.modern.subscriptions import (
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionFilter,
    Subscriptions,
    Verdict,
)
from mcp_client.protocol.surfaces.tasks import TaskSupport
from mcp_client.protocol.versions import MODERN_VERSION

__all__ = ["MODERN_TRANSITIONS", "ModernConnection", "ModernEvent", "ModernState", "ModernStep"]


class ModernState(Enum):
    """Where a connection stands."""

    ASKING = "asking"
    """It is not known yet what the server speaks."""
    READY = "ready"
    CLOSED = "closed"


class ModernStep(Enum):
    """What can happen to a connection, or be asked of it."""

    DISCOVER = "discover"
    ACCEPT = "accept"
    """The server said what it speaks, and we speak one of it."""
    REQUEST = "request"
    CANCEL = "cancel"
    NOTIFY = "notify"
    """Any other notification: this version has none of the client's."""
    ANSWER = "answer"
    """An answer to a request of the server: this version has none."""
    CLOSE = "close"


MODERN_TRANSITIONS: Final[Mapping[tuple[ModernState, ModernStep], ModernState]] = {
    (ModernState.ASKING, ModernStep.DISCOVER): ModernState.ASKING,
    (ModernState.ASKING, ModernStep.ACCEPT): ModernState.READY,
    (ModernState.ASKING, ModernStep.CLOSE): ModernState.CLOSED,
    (ModernState.READY, ModernStep.DISCOVER): ModernState.READY,
    (ModernState.READY, ModernStep.REQUEST): ModernState.READY,
    (ModernState.READY, ModernStep.CANCEL): ModernState.READY,
    (ModernState.READY, ModernStep.CLOSE): ModernState.CLOSED,
    (ModernState.CLOSED, ModernStep.CLOSE): ModernState.CLOSED,
}
"""What is not here is an error of whoever asked for it."""

ModernEvent: TypeAlias = Event | SubscriptionAcknowledged | SubscriptionEnded
"""Anything that a frame can mean."""

_Needs = Callable[["ModernConnection"], bool]

_REQUESTS: Final[Mapping[str, _Needs]] = {
    "tools/list": lambda c: c.capabilities.tools,
    "tools/call": lambda c: c.capabilities.tools,
    "resources/list": lambda c: c.capabilities.resources,
    "resources/templates/list": lambda c: c.capabilities.resources,
    "resources/read": lambda c: c.capabilities.resources,
    "prompts/list": lambda c: c.capabilities.prompts,
    "prompts/get": lambda c: c.capabilities.prompts,
    "completion/complete": lambda c: c.capabilities.completions,
    "server/discover": lambda _: True,
    "subscriptions/listen": lambda _: True,
}


class ModernConnection:
    """The client's side of one connection on which every request describes itself.

    Args:
        limits: the bounds of the connection.
        bounds: those of this version.
        server: the host's label of the server, for errors.
        last_id: the highest id given to a request on this connection before it.
        declares: what the server may ask for in between.
        offers: the extensions that are on, with our settings.

    Attributes:
        has_rounds: whether a result may be the server's questions, or a task: in this version it may.
        protocol_version: what requests name.
        capabilities: what the server declared, once it is known.
        extensions: the server's settings of the extensions that both sides have.
        server_info: what the server calls itself: for display only.
        instructions: what the server says about its use; empty if it says nothing.
        subscriptions: the streams of notices.
    """

    has_rounds: Final = True

    def __init__(
        self,
        limits: ClientLimits,
        bounds: ModernLimits,
        *,
        server: str = "",
        last_id: int = 0,
        declares: ClientCapabilities = NOTHING_DECLARED,
        offers: Mapping[str, Settings] | None = None,
    ) -> None:
        self._limits = limits
        self._bounds = bounds
        self._server = server
        self._state = ModernState.ASKING
        self._last_id = last_id
        self._declares = declares
        self._offers = offers or {}
        self._members: dict[tuple[str, ClientCapabilities, LogLevel | None], bytes] = {}
        self._logs_asked = False
        self.protocol_version = MODERN_VERSION
        self.capabilities = ServerCapabilities()
        self.extensions: Mapping[str, Settings] = {}
        self.server_info = ServerInfo()
        self.instructions = ""
        self.subscriptions = Subscriptions()

    @property
    def state(self) -> ModernState:
        """Where the connection stands."""
        return self._state

    @property
    def negotiated(self) -> ClientCapabilities:
        """What a request declares that does not say otherwise."""
        return self._declares

    @property
    def task_support(self) -> TaskSupport:
        """Nothing: this version has tasks as an extension."""
        return TaskSupport()

    @property
    def last_id(self) -> int:
        """The highest id given to a request so far. No id is given twice."""
        return self._last_id

    # ------------------------------------------------------------------------------ outgoing

    def frame_discover(self, version: str = MODERN_VERSION) -> OutgoingRequest:
        """Ask the server what it speaks, in `version`."""
        self._take(ModernStep.DISCOVER)
        self.protocol_version = version
        return self._frame("server/discover", b"{}", self._meta(self._declares, None))

    def accept(self, found: DiscoverResult, version: str) -> None:
        """Take what the server said; requests name `version` from now on."""
        self._take(ModernStep.ACCEPT)
        self.protocol_version = version
        self.capabilities = ServerCapabilities.parse(found.capabilities, version=version)
        self.extensions = in_common(self._offers, found.extensions)
        self.server_info = read_server_info(found.info, self._limits)
        self.instructions = found.instructions

    def frame_request(
        self,
        method: str,
        params: bytes,
        *,
        with_progress: bool = False,
        declares: ClientCapabilities | None = None,
        log_level: LogLevel | None = None,
        trace: bytes = b"",
    ) -> OutgoingRequest:
        """Put an envelope around `params`, a JSON object in canonical form, which stays as it is.

        Args:
            method: a method that the server declared.
            params: the params, without `_meta`.
            with_progress: the server is asked to report progress under the request's id.
            declares: what the server may ask for in between; never more than the connection has.
            log_level: from which level on the server may log about it.
            trace: which trace it belongs to, as `trace_member` returned it.

        Raises LocalProtocolError if the connection is not ready or the server has not declared
        what the method needs.
        """
        self._take(ModernStep.REQUEST)
        needs = _REQUESTS.get(method)
        allowed = extension_request_allowed(method, self.extensions)
        if not allowed and (needs is None or not needs(self)):
            raise self._wrong("the server has not declared what this method needs")
        check_params(params, self._server)
        own = self._declares if declares is None else lowered(self._declares, declares)
        self._logs_asked = self._logs_asked or log_level is not None
        members = self._meta(own, log_level)
        if trace:
            members = b"%b,%b" % (members, trace)
        return self._frame(method, params, members, with_progress=with_progress)

    def frame_listen(self, wanted: SubscriptionFilter) -> OutgoingRequest:
        """Ask for a stream of notices. Raises LocalProtocolError past a bound of streams."""
        if len(self.subscriptions) >= self._bounds.subscriptions_max:
            raise self._wrong(f"more than {self._bounds.subscriptions_max} streams of notices")
        if len(wanted.resources) + len(wanted.tasks) > self._bounds.subscribed_resources_max:
            raise self._wrong(
                f"a stream of notices is about more than {self._bounds.subscribed_resources_max} things"
            )
        params = encode({"notifications": wanted.members()})
        request = self.frame_request("subscriptions/listen", params)
        self.subscriptions.open(request.request_id, wanted)
        return request

    def frame_cancelled(self, request_id: int, reason: str = "") -> bytes:
        """Tell the server that nobody waits for a request any more."""
        self._take(ModernStep.CANCEL)
        return cancelled_frame(request_id, reason)

    def frame_notification(self, method: str) -> bytes:
        """Raise LocalProtocolError: in this version there is nobody to tell."""
        self._take(ModernStep.NOTIFY)
        return notification_frame(method)

    def frame_answer(self, request_id: RequestId, result: Mapping[str, object]) -> bytes:
        """Raise LocalProtocolError: in this version servers make no requests."""
        self._take(ModernStep.ANSWER)
        return answer_frame(request_id, result)

    def frame_refusal(self, request_id: RequestId, code: int, message: str) -> bytes:
        """Raise LocalProtocolError: in this version servers make no requests."""
        self._take(ModernStep.ANSWER)
        return refusal_frame(request_id, code, message)

    def check_result(self, method: str, result: object) -> None:
        """Raise RemoteProtocolError if a result is of a type that its request cannot have."""
        read_result_type(method, result, self.extensions, server=self._server)

    def close(self) -> None:
        """The connection is over. Idempotent."""
        self._take(ModernStep.CLOSE)

    # ------------------------------------------------------------------------------ incoming

    def receive(self, frame: bytes, within: int | None = None) -> tuple[ModernEvent, ...]:
        """Take one frame and return what happened. Never raises; nothing comes after the end.

        It came `within` the stream of a request, or where there is one stream for all.
        """
        if self._state is ModernState.CLOSED:
            return ()
        message = read_message(frame, self._limits)
        if type(message) is ResponseReceived:
            return (message,)
        if isinstance(message, list):
            return (PeerViolation(kind=Violation.BATCH, detail="an array is no message here"),)
        return (self._event(message),)

    def _event(self, message: Message) -> ModernEvent:
        if isinstance(message, RequestReceived):
            # MCP 2026-07-28: servers make no requests, and clients write no responses
            return PeerViolation(kind=Violation.REQUEST, detail="a server makes no requests")
        if not isinstance(message, NotificationReceived):
            return message
        if message.method == "notifications/progress":
            return message
        if message.method == "notifications/message":
            return message if self._logs_asked else _undeclared()
        request_id, verdict = self.subscriptions.judge(message.method, message.params)
        match verdict:
            case Verdict.DELIVER:
                return message
            case Verdict.GRANTED:
                granted = self.subscriptions.granted(request_id) or SubscriptionFilter()
                return SubscriptionAcknowledged(request_id, granted)
            case Verdict.ENDED:
                return SubscriptionEnded(request_id)
            case Verdict.IGNORE:
                return _undeclared()

    # ------------------------------------------------------------------------------- helpers

    def _frame(
        self, method: str, params: bytes, members: bytes, *, with_progress: bool = False
    ) -> OutgoingRequest:
        request_id = self._last_id + 1
        token = request_id if with_progress else None
        whole = with_meta(params, members, self._limits, token=token)
        self._last_id = request_id
        return request_frame(request_id, method, whole)

    def _meta(self, declares: ClientCapabilities, log_level: LogLevel | None) -> bytes:
        key = (self.protocol_version, declares, log_level)
        members = self._members.get(key)
        if members is None:
            meta = RequestMeta(
                version=self.protocol_version,
                capabilities=capability_members(declares, self._offers),
                log_level=log_level,
            )
            members = self._members[key] = meta.members()
        return members

    def _take(self, step: ModernStep) -> None:
        following = MODERN_TRANSITIONS.get((self._state, step))
        if following is None:
            raise self._wrong(
                f"{step.value} is not possible while the connection is {self._state.value}"
            )
        self._state = following

    def _wrong(self, detail: str) -> LocalProtocolError:
        return LocalProtocolError(detail, server=self._server, stage="send")


def _undeclared() -> PeerViolation:
    return PeerViolation(
        kind=Violation.UNDECLARED_NOTIFICATION, detail="a notification that nobody asked for"
    )
