"""The agent's side of the protocol: what each method does, as a table. Reads and writes no pipe.

A request is begun in the order in which it came, so that what cancels it finds it; then it goes on
in a task of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup, TaskStatus

from mcp_client.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    RequestId,
    RequestReceived,
    ResponseReceived,
)
from orchestrator.core.display import safe_line
from orchestrator.core.errors import RemitError
from orchestrator.sessions.conversations import Conversation
from orchestrator.surfaces.acp.editor import Editor
from orchestrator.surfaces.acp.errors import (
    CANCELLED,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    RequestError,
    request_error,
)
from orchestrator.surfaces.acp.handed import read_handed
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.modes import MODE_OPTION, Mode, config_options, mode_state
from orchestrator.surfaces.acp.params import (
    OpenRequest,
    Params,
    read_offer,
    read_open,
    read_prompt,
    text_of,
    text_or_none,
)
from orchestrator.surfaces.acp.plans import Place, SessionPlan
from orchestrator.surfaces.acp.session import EditorSession
from orchestrator.surfaces.acp.updates import commands_update, info_update
from orchestrator.surfaces.acp.wire import Reply, Wire
from policies import PolicyError

__all__ = ["AcpAgent"]

VERSION: Final = 1
"""The version of the protocol that is spoken. Another one that an editor asks for is answered with it."""
NOTICES_META: Final = "remit/notices"
"""The key of `_meta` under which stands what was left out of a session."""

Answer = Mapping[str, object]
Later = Callable[[], Awaitable[Answer]]
"""The rest of a request, once it is begun."""


class AcpAgent:
    """One connection with an editor: `receive` its bytes. `send` takes frames and must not block."""

    def __init__(
        self,
        place: Place,
        *,
        send: Callable[[bytes], None],
        group: TaskGroup,
        limits: AcpLimits,
    ) -> None:
        self._place = place
        self._send = send
        self._group = group
        self._limits = limits
        self._wire = Wire(limits)
        self._editor = Editor(self._wire, send, limits)
        self._sessions: dict[str, EditorSession] = {}
        self._opening = 0
        self._initialized = False
        self._open: dict[RequestId, anyio.CancelScope] = {}

    def receive(self, data: bytes) -> None:
        """Take the next bytes of the editor. Never raises for what they are."""
        for message in self._wire.receive(data):
            match message:
                case Reply():
                    self._send(message.frame)
                case RequestReceived():
                    self._begin(message)
                case NotificationReceived():
                    self._notified(message)
                case ResponseReceived() | ErrorReceived():
                    self._editor.answered(message)

    # --------------------------------------------------------------------------- requests

    def _begin(self, request: RequestReceived) -> None:
        """Begin a request in this step, and let it go on in a task of its own."""
        name = request.request_id
        try:
            if name in self._open:
                raise RequestError(INVALID_REQUEST, "a request with this id is at work")
            if len(self._open) >= self._limits.requests_open_max:
                raise RequestError(INTERNAL, "too many requests are at work")
            method = _METHODS.get(request.method)
            if method is None:
                raise RequestError(METHOD_NOT_FOUND, f"no method {safe_line(request.method)!r}")
            if not self._initialized and request.method != "initialize":
                raise RequestError(INVALID_REQUEST, "initialize comes first")
            going_on = method(self, request.params)
        except (RequestError, RemitError, PolicyError) as error:
            self._fail(name, error)
            return
        scope = self._open[name] = anyio.CancelScope()
        self._group.start_soon(self._go_on, name, going_on, scope)

    async def _go_on(self, name: RequestId, going_on: Later, scope: anyio.CancelScope) -> None:
        answer: Answer | None = None
        failure: Exception = RequestError(CANCELLED, "the request was cancelled")
        try:
            with scope:
                answer = await going_on()
        except Exception as error:  # noqa: BLE001 - one request fails, the others go on
            failure = error
        finally:
            del self._open[name]
        if answer is None:
            self._fail(name, failure)
        else:
            self._send(self._wire.result(name, answer))

    def _fail(self, name: RequestId, error: Exception) -> None:
        match error:
            case RequestError():
                told = error
            case RemitError() | PolicyError():
                told = request_error(error)
            case _:
                told = RequestError(INTERNAL, f"E-INTERNAL: {type(error).__name__}")
        self._send(self._wire.error(name, told))

    def _notified(self, notification: NotificationReceived) -> None:
        """Do what a notification says; one that is not known is left alone."""
        params = notification.params
        if notification.method == "session/cancel":
            session = self._sessions.get(str(params.get("sessionId")))
            if session is not None:
                session.cancel()
        elif notification.method == "$/cancel_request":
            name = params.get("requestId")
            scope = self._open.get(name) if isinstance(name, int | str) else None
            if scope is not None:
                scope.cancel()

    # ---------------------------------------------------------------------------- methods

    def begin_initialize(self, params: Params) -> Later:
        """Note what the editor can do, and say what can be done here."""
        self._editor.offer = read_offer(params)
        self._initialized = True
        return _answer(
            {
                "protocolVersion": VERSION,
                "agentInfo": {"name": "remit", "title": "remit", "version": self._place.version},
                "authMethods": [],
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
                    "mcpCapabilities": {"http": True, "sse": True},
                    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
                    "auth": {"logout": {}},
                },
            }
        )

    def begin_authenticate(self, params: Params) -> Later:
        """Refuse: no method of authentication is offered, since nothing here needs one."""
        text_of(params, "methodId")
        raise RequestError(INVALID_PARAMS, "no method of authentication was offered")

    def begin_logout(self, params: Params) -> Later:
        """Log out of every server of every open session."""
        return self._log_out

    async def _log_out(self) -> Answer:
        for session in tuple(self._sessions.values()):
            await session.log_out()
        return {}

    def begin_new(self, params: Params) -> Later:
        """Open a session."""
        request = read_open(params, self._limits, known=False)
        return partial(self._new, request)

    async def _new(self, request: OpenRequest) -> Answer:
        kept = Conversation(
            id=secrets.token_hex(16),
            cwd=str(request.cwd),
            project=str(self._place.project_of(request.cwd)),
        )
        titled = _Titled(kept, self._place, self._editor, self._limits)
        session = await self._stand(titled, request)
        titled.keep()
        return {"sessionId": session.name, **self._state(session)}

    def begin_load(self, params: Params) -> Later:
        """Open a session that there was, and tell again what was said in it."""
        request = read_open(params, self._limits, known=True)
        return partial(self._again, request, replay=True)

    def begin_resume(self, params: Params) -> Later:
        """Open a session that there was, and tell nothing of it."""
        request = read_open(params, self._limits, known=True)
        return partial(self._again, request, replay=False)

    async def _again(self, request: OpenRequest, *, replay: bool) -> Answer:
        kept = self._place.kept.find(request.session)
        if kept is None:
            raise _unknown()
        if kept.cwd != str(request.cwd):
            raise RequestError(INVALID_PARAMS, "the session belongs to another folder")
        open_now = self._sessions.get(kept.id)
        if open_now is not None:  # another incarnation: what it may do is decided on anew
            await open_now.close()
        titled = _Titled(kept, self._place, self._editor, self._limits)
        session = await self._stand(titled, request)
        if replay:
            for update in session.replay():
                session.tell(update)
        return self._state(session)

    async def _stand(self, titled: _Titled, request: OpenRequest) -> EditorSession:
        """Open a session, and return it once it stands. Raises what keeps it from that."""
        if len(self._sessions) + self._opening >= self._limits.sessions_max:
            raise RequestError(INTERNAL, "too many sessions are open: close some")
        if not request.cwd.is_dir():
            raise RequestError(INVALID_PARAMS, "cwd is no folder")
        handed = read_handed(request.servers, request.cwd, self._place.home, self._place.minimum())
        session = EditorSession(
            titled.id,
            self._editor,
            self._limits,
            cwd=request.cwd,
            touch=titled.touch,
            loopback=self._place.loopback,
        )
        plan = SessionPlan(
            name=titled.id,
            cwd=request.cwd,
            handed=handed,
            modes=self._editor.offer.modes,
            hear=session.hear,
            login=session.login_step,
        )
        self._opening += 1
        try:
            await self._group.start(self._own, session, plan)
        finally:
            self._opening -= 1
        return session

    async def _own(
        self, session: EditorSession, plan: SessionPlan, *, task_status: TaskStatus[None]
    ) -> None:
        self._sessions[session.name] = session
        try:
            await session.run(self._place.open(plan), task_status=task_status)
        finally:
            if self._sessions.get(session.name) is session:
                del self._sessions[session.name]

    def _state(self, session: EditorSession) -> dict[str, object]:
        """Return what an opened session is like; its commands are told right after."""
        self._group.start_soon(self._tell_commands, session)
        return {
            "modes": mode_state(session.mode),
            "configOptions": config_options(session.mode),
            "_meta": {
                NOTICES_META: [
                    {"name": item.name, "state": item.state, "message": item.message}
                    for item in session.notices
                ]
            },
        }

    async def _tell_commands(self, session: EditorSession) -> None:
        # a step later: an editor knows a session by the answer that opens it
        await anyio.lowlevel.checkpoint()
        session.tell(commands_update())

    def begin_list(self, params: Params) -> Later:
        """List the sessions that can be loaded, the one that was used last first."""
        cursor = text_or_none(params, "cursor") or "0"
        if not cursor.isascii() or not cursor.isdigit() or len(cursor) > len("1000000"):
            raise RequestError(INVALID_PARAMS, "no such cursor")
        size, skip = self._limits.sessions_page_max, int(cursor)
        found = self._place.kept.page(cwd=text_or_none(params, "cwd"), skip=skip, count=size + 1)
        answer: dict[str, object] = {
            "sessions": [
                {
                    "sessionId": item.id,
                    "cwd": item.cwd,
                    "title": item.title or None,
                    "updatedAt": _date(item.changed),
                }
                for item in found[:size]
            ]
        }
        if len(found) > size:
            answer["nextCursor"] = str(skip + size)
        return _answer(answer)

    def begin_close(self, params: Params) -> Later:
        """End a session; it can be loaded again."""
        return partial(self._close, self._session(params))

    async def _close(self, session: EditorSession) -> Answer:
        await session.close()
        return {}

    def begin_delete(self, params: Params) -> Later:
        """End a session and forget all of it. Idempotent."""
        return partial(self._delete, text_of(params, "sessionId"))

    async def _delete(self, name: str) -> Answer:
        session = self._sessions.get(name)
        if session is not None:
            await session.close()
        kept = self._place.kept.find(name)
        if kept is not None:
            self._place.forget(kept.project, kept.id)
            self._place.kept.delete(kept.id)
        return {}

    def begin_prompt(self, params: Params) -> Later:
        """Do a turn; one that is at work is stopped first."""
        request = read_prompt(params, self._limits)
        session = self._session(params)
        turn = session.enqueue(request)

        async def stopped() -> Answer:
            try:
                reason = await turn.stopped()
            finally:
                session.forget(turn)
                with anyio.move_on_after(self._limits.settle_seconds_max, shield=True):
                    await turn.ended.wait()  # nothing of it comes after its answer
            return {"stopReason": reason.value}

        return stopped

    def begin_set_mode(self, params: Params) -> Later:
        """Set the mode, in its older form."""
        session = self._session(params)
        session.set_mode(_mode(text_of(params, "modeId")))
        session.tell(
            {
                "sessionUpdate": "config_option_update",
                "configOptions": config_options(session.mode),
            }
        )
        return _answer({})

    def begin_set_config_option(self, params: Params) -> Later:
        """Set an option; there is one, the mode."""
        session = self._session(params)
        if text_of(params, "configId") != MODE_OPTION:
            raise RequestError(INVALID_PARAMS, "no such option")
        session.set_mode(_mode(text_of(params, "value")))
        session.tell({"sessionUpdate": "current_mode_update", "currentModeId": session.mode.value})
        return _answer({"configOptions": config_options(session.mode)})

    def _session(self, params: Params) -> EditorSession:
        session = self._sessions.get(text_of(params, "sessionId"))
        if session is None:
            raise _unknown()
        return session


class _Titled:
    """Keeps what a session is called: the beginning of its first prompt."""

    def __init__(self, kept: Conversation, place: Place, editor: Editor, limits: AcpLimits) -> None:
        self._kept = kept
        self._place = place
        self._editor = editor
        self._limits = limits

    @property
    def id(self) -> str:
        return self._kept.id

    def keep(self) -> None:
        """Put it on the list; of what there is no room for any more, the records go too."""
        self._kept = replace(self._kept, changed=self._place.clock.wall())
        for gone in self._place.kept.save(self._kept):
            self._place.forget(gone.project, gone.id)

    def touch(self, text: str) -> None:
        if not self._kept.title:
            title = safe_line(text, chars_max=self._limits.title_chars_max)
            self._kept = replace(self._kept, title=title)
        self.keep()
        update = info_update(self._kept.title, _date(self._kept.changed))
        self._editor.update(self._kept.id, update)


_METHODS: Final[Mapping[str, Callable[[AcpAgent, Params], Later]]] = {
    "initialize": AcpAgent.begin_initialize,
    "authenticate": AcpAgent.begin_authenticate,
    "logout": AcpAgent.begin_logout,
    "session/new": AcpAgent.begin_new,
    "session/load": AcpAgent.begin_load,
    "session/resume": AcpAgent.begin_resume,
    "session/list": AcpAgent.begin_list,
    "session/close": AcpAgent.begin_close,
    "session/delete": AcpAgent.begin_delete,
    "session/prompt": AcpAgent.begin_prompt,
    "session/set_mode": AcpAgent.begin_set_mode,
    "session/set_config_option": AcpAgent.begin_set_config_option,
}


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise RequestError(INVALID_PARAMS, "no such mode") from None


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _unknown() -> RequestError:
    return RequestError(NOT_FOUND, "no such session is open: load it, or make a new one")


def _answer(answer: Answer) -> Later:
    async def later() -> Answer:
        await anyio.lowlevel.checkpoint()
        return answer

    return later
