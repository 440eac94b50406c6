"""A loopback server that speaks enough of OpenAI's Chat Completions and Responses to be a model.

Standard library only. It answers with what a test scripted, in order, and keeps what it received.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, cast

__all__ = [
    "OpenAiLike",
    "Reply",
    "Seen",
    "answer",
    "call",
    "calls",
    "failure",
    "message",
    "opening",
    "piece",
    "response",
    "stream",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One scripted answer. `pieces` go out as chunks; `cut` drops the connection after them.

    The pieces from `held_from` on wait until `hold` is set.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: tuple[bytes, ...] = ()
    cut: bool = False
    hold: threading.Event | None = None
    held_from: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as the server received it."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]
    raw: bytes

    @property
    def tools(self) -> list[dict[str, object]]:
        return [
            cast("dict[str, object]", tool["function"])
            for tool in cast("list[dict[str, object]]", self.body.get("tools", []))
        ]

    @property
    def messages(self) -> list[dict[str, object]]:
        return cast("list[dict[str, object]]", self.body["messages"])


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that is gone: tests kill some."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it came


class OpenAiLike:
    """The server. Use it as a context manager; `url` is what OPENAI_BASE_URL is set to.

    It answers with `replies` one after the other, or to each request with what `by` says to it.
    """

    def __init__(self, *replies: Reply, by: Callable[[Seen], Reply] | None = None) -> None:
        self.seen: list[Seen] = []
        self.arrived = threading.Event()
        self._replies = list(replies)
        self._by = by or self._next
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, _: Seen) -> Reply:
        return self._replies.pop(0) if self._replies else failure(418)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                seen = Seen(
                    path=self.path,
                    headers={key.lower(): value for key, value in self.headers.items()},
                    body=json.loads(raw),
                    raw=raw,
                )
                outer.seen.append(seen)
                reply = outer._by(seen)
                outer.arrived.set()
                self.send_response(reply.status)
                for key, value in reply.headers.items():
                    self.send_header(key, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for number, piece in enumerate(reply.pieces):
                    if reply.hold is not None and number == reply.held_from:
                        self.wfile.flush()
                        reply.hold.wait(5)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
                if reply.cut:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler


_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "loopback-1"}
_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
_JSON = {"Content-Type": "application/json"}
_SSE = {"Content-Type": "text/event-stream"}


def call(name: str, arguments: str, *, id: str = "call_1") -> dict[str, object]:  # noqa: A002
    """One tool call as a message holds it."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(
    text: str | None, *, finish: str | None = "stop", usage: Mapping[str, int] | None = _USAGE
) -> Reply:
    """A whole answer in one piece."""
    return _whole({"role": "assistant", "content": text}, finish, usage)


def calls(*wanted: dict[str, object]) -> Reply:
    """A whole turn that asks for calls."""
    message = {"role": "assistant", "content": None, "tool_calls": list(wanted)}
    return _whole(message, "tool_calls", _USAGE)


def failure(status: int, *, headers: Mapping[str, str] | None = None, text: str = "no") -> Reply:
    """An HTTP error with OpenAI's body."""
    body = {"error": {"message": text, "type": "error", "code": None}}
    return Reply(
        status=status, headers={**_JSON, **(headers or {})}, pieces=(json.dumps(body).encode(),)
    )


def stream(
    *deltas: Mapping[str, object],
    finish: str | None = "stop",
    usage: Mapping[str, int] | None = _USAGE,
    done: bool = True,
    cut: bool = False,
    hold: threading.Event | None = None,
    held_from: int = 0,
) -> Reply:
    """A streamed answer: one event for each delta, the finish, the usage, and `[DONE]`."""
    events = [_event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    if finish is not None:
        events.append(_event([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if usage is not None:
        events.append(_event([], usage))
    if done:
        events.append(b"data: [DONE]\n\n")
    return Reply(headers=_SSE, pieces=tuple(events), cut=cut, hold=hold, held_from=held_from)


def opening(index: int, name: str, *, id: str) -> dict[str, object]:  # noqa: A002
    """The delta that opens a streamed tool call."""
    function = {"name": name, "arguments": ""}
    return {"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}


def piece(index: int, arguments: str) -> dict[str, object]:
    """A delta with the next characters of a streamed call's arguments."""
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}


def message(text: str) -> dict[str, object]:
    """A text of the Responses interface."""
    content = [{"type": "output_text", "text": text, "annotations": list[object]()}]
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def response(*output: Mapping[str, object]) -> Reply:
    """A whole turn as the Responses interface streams it: each item, then the response."""
    begun: dict[str, object] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "loopback-1",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
    }
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    events: list[dict[str, object]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(output):
        place = {"output_index": index, "item_id": item["id"]}
        opened = {**item, "status": "in_progress"}
        if item["type"] == "function_call":
            events += [
                {
                    "type": "response.output_item.added",
                    **place,
                    "item": {**opened, "arguments": ""},
                },
                {
                    "type": "response.function_call_arguments.delta",
                    **place,
                    "delta": item["arguments"],
                },
            ]
        else:
            text = cast("list[dict[str, object]]", item["content"])[0]["text"]
            events += [
                {"type": "response.output_item.added", **place, "item": {**opened, "content": []}},
                {
                    "type": "response.output_text.delta",
                    **place,
                    "content_index": 0,
                    "delta": text,
                    "logprobs": [],
                },
            ]
        events.append({"type": "response.output_item.done", **place, "item": item})
    ended = {**begun, "status": "completed", "output": list(output), "usage": usage}
    events.append({"type": "response.completed", "response": ended})
    pieces = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]
    return Reply(headers=_SSE, pieces=tuple(piece.encode() for piece in pieces))


def _whole(
    message: Mapping[str, object], finish: str | None, usage: Mapping[str, int] | None
) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}
    return Reply(headers=_JSON, pieces=(json.dumps(body).encode(),))


def _event(
    choices: Sequence[Mapping[str, object]], usage: Mapping[str, int] | None = None
) -> bytes:
    body = {**_HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": usage}
    return b"data: " + json.dumps(body).encode() + b"\n\n"
