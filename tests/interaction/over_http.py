"""`Everything` behind a URL, over both transports that HTTP has: who says what in which stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from mcp_client import HttpKind, HttpSpec, ServerSource
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.interaction.everything import META, MODERN, Everything, Modern

__all__ = ["over_http_sse", "over_streamable_http"]

SESSION = "session-of-everything"


class Mail:
    """Messages that wait for the stream in which they are to be said."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._came = anyio.Event()

    @property
    def empty(self) -> bool:
        return not self._waiting

    def put(self, message: dict[str, Any]) -> None:
        self._waiting.append(message)
        self._came.set()

    async def get(self) -> dict[str, Any]:
        while not self._waiting:
            self._came = anyio.Event()
            await self._came.wait()
        return self._waiting.pop(0)


class Streamable:
    """One session of Streamable HTTP. What is said while a request is taken goes into its stream.

    A request that is answered at once is answered in JSON.
    """

    def __init__(self, version: str) -> None:
        self._server = Everything(version, self._say)
        self._own = Mail()
        self._mail: dict[object, Mail] = {}
        self._asking: Mail = self._own

    def _say(self, message: dict[str, Any]) -> None:
        answers = "method" not in message
        mail = self._mail.get(message.get("id")) if answers else self._asking
        (mail or self._own).put(message)

    def _take(self, message: dict[str, Any], mail: Mail) -> None:
        self._asking = mail
        try:
            self._server.take(message)
        finally:
            self._asking = self._own

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        message = dict(call.message)
        is_first = message.get("method") == "initialize"
        if not is_first and call.headers.get("mcp-session-id") != SESSION:
            await reply.send(404)
        elif call.method == "GET":
            await reply.start_events()
            while True:
                await reply.event(await self._own.get())
        elif call.method == "DELETE":
            await reply.send(204)
        elif "method" not in message or "id" not in message:
            self._take(message, self._own)
            await reply.send(202)
        else:
            await self._answer(message, reply, {"Mcp-Session-Id": SESSION} if is_first else {})

    async def _answer(
        self, message: dict[str, Any], reply: HttpReply, headers: dict[str, str]
    ) -> None:
        mail = self._mail[message["id"]] = Mail()
        self._take(message, mail)
        said = await mail.get()
        if "method" not in said:
            await reply.json(said, headers=headers)
            return
        await reply.start_events(headers=headers)
        while True:
            await reply.event(said)
            if "method" not in said:
                break
            said = await mail.get()
        await reply.end()


class PostOnly:
    """2026-07-28: each POST is answered in its own response, and a stream of notices is one of them.

    That a response is closed from the other side means that nobody waits for it any more.
    """

    def __init__(self) -> None:
        self._server = Modern(self._say)
        self._mail: dict[object, Mail] = {}
        self._asking = Mail()

    def _say(self, message: dict[str, Any]) -> None:
        meta = message.get("params", {}).get("_meta", {})
        place = message.get("id") if "method" not in message else meta.get(META + "subscriptionId")
        self._mail.get(place, self._asking).put(message)

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        message = dict(call.message)
        if call.method != "POST" or "id" not in message:
            await reply.send(405)
            return
        mail = self._mail[message["id"]] = self._asking = Mail()
        self._server.take(message)
        try:
            async with anyio.create_task_group() as group:
                if mail.empty or message["method"] == "subscriptions/listen":
                    group.start_soon(self._until_gone, reply, group.cancel_scope, message["id"])
                await self._answer(reply, mail, first=message["method"] == "initialize")
                group.cancel_scope.cancel()
        finally:
            self._mail.pop(message["id"], None)

    async def _answer(self, reply: HttpReply, mail: Mail, *, first: bool) -> None:
        said = await mail.get()
        if "method" not in said:
            await reply.json(said, status=400 if first else 200)
            return
        await reply.start_events()
        while True:
            await reply.event(said)
            if "method" not in said:
                break
            said = await mail.get()
        await reply.end()

    async def _until_gone(
        self, reply: HttpReply, scope: anyio.CancelScope, request_id: object
    ) -> None:
        await reply.until_gone()
        self._server.take(
            {"method": "notifications/cancelled", "params": {"requestId": request_id}}
        )
        scope.cancel()


class OneStream:
    """One connection of HTTP+SSE. An old server: it knows no POST to the address of its stream."""

    def __init__(self, version: str) -> None:
        self._mail = Mail()
        self._server = Everything(version, self._mail.put)

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        if call.method == "GET":
            await reply.start_events()
            await reply.event(kind="endpoint", data="/messages?session=1")
            while True:
                await reply.event(await self._mail.get())
        elif call.path.startswith("/messages"):
            self._server.take(dict(call.message))
            await reply.send(202)
        else:
            await reply.send(405)


@asynccontextmanager
async def over_streamable_http(version: str) -> AsyncGenerator[ServerSource]:
    async with serve_http(PostOnly() if version == MODERN else Streamable(version)) as server:
        yield HttpSpec(name="everything", url=server.url, kind=HttpKind.STREAMABLE)


@asynccontextmanager
async def over_http_sse(version: str) -> AsyncGenerator[ServerSource]:
    async with serve_http(OneStream(version), path="/sse") as server:
        yield HttpSpec(name="everything", url=server.url)
