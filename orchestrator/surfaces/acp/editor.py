"""The editor at the other end: what it can do, what it is told, what it is asked. Reads no bytes.

A request to it ends with its answer, or with the scope that waits: then the editor is told that
nobody waits any more, and what it still answers is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

import anyio

from mcp_client.protocol.events import ErrorReceived, ResponseReceived
from mcp_client.protocol.jsonrpc import as_object
from orchestrator.core.display import safe_line
from orchestrator.surfaces.acp.errors import INTERNAL, RequestError
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.params import ClientOffer
from orchestrator.surfaces.acp.updates import Update
from orchestrator.surfaces.acp.wire import UnsendableError, Wire

__all__ = ["Editor"]


class _Asked:
    """A request that waits for its answer."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.answer: ResponseReceived | ErrorReceived | None = None


class Editor:
    """The editor. `send` takes a frame; it must not block."""

    def __init__(self, wire: Wire, send: Callable[[bytes], None], limits: AcpLimits) -> None:
        self.offer = ClientOffer()
        self._wire = wire
        self._send = send
        self._limits = limits
        self._numbers = count(1)
        self._asked: dict[int, _Asked] = {}

    def update(self, session: str, update: Update) -> None:
        """Tell what has changed in a session. What no frame can hold is left out."""
        try:
            frame = self._wire.notification(
                "session/update", {"sessionId": session, "update": dict(update)}
            )
        except UnsendableError:
            return
        self._send(frame)

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Tell of something else. What no frame can hold is left out."""
        with suppress(UnsendableError):
            self._send(self._wire.notification(method, params))

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        """Return what the editor answers.

        Raises RequestError for an error of its, and where it has too many open requests.
        """
        if len(self._asked) >= self._limits.requests_open_max:
            raise RequestError(INTERNAL, "too many requests wait for the editor")
        number = next(self._numbers)
        try:
            frame = self._wire.request(number, method, params)
        except UnsendableError as error:
            raise RequestError(INTERNAL, str(error)) from error
        asked = self._asked[number] = _Asked()
        self._send(frame)
        try:
            await asked.answered.wait()
        finally:
            del self._asked[number]
            if asked.answer is None:
                self._send(self._wire.notification("$/cancel_request", {"requestId": number}))
        answer = asked.answer
        if isinstance(answer, ResponseReceived):
            return as_object(answer.result) or {}
        if isinstance(answer, ErrorReceived):
            raise RequestError(answer.code, safe_line(answer.message))
        raise RequestError(INTERNAL, "there is no answer")

    def answered(self, answer: ResponseReceived | ErrorReceived) -> None:
        """Take an answer. One that nobody waits for is dropped."""
        number = answer.request_id
        asked = self._asked.get(number) if isinstance(number, int) else None
        if asked is not None and asked.answer is None:
            asked.answer = answer
            asked.answered.set()
