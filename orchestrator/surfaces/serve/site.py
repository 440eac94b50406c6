"""The page's server: reads of a run, events as they come, and, where it is told so, answers. Loads nothing.

What a session says comes through its control socket, what is on record through the functions it is handed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator.core.display import whole_text
from orchestrator.core.documents import read_bounded
from orchestrator.core.errors import ConfigError, ExitCode, RemitError
from orchestrator.sessions.control.calling import connected
from orchestrator.sessions.state import StatePaths

__all__ = ["BODY_BYTES_MAX", "Records", "site"]

BODY_BYTES_MAX: Final = 64 * 1024
"""A request: an answer to a question, arguments to explain."""
_STATIC: Final = Path(__file__).with_name("static")
_FILES: Final = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
}
_ANSWERS: Final = {
    "once": "allow",
    "session": "allow",
    "always": "allow",
    "deny": "deny",
    "answer": "answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What is on record of runs. Each function reads files and may raise RemitError.

    `runs` lists them, the newest first; `timeline` and `plan` are pictures of ours, `audit` rows by
    filters; `style` is the style sheet of the pictures.
    """

    runs: Callable[[], list[dict[str, object]]]
    timeline: Callable[[str], str]
    plan: Callable[[str], str]
    audit: Callable[[str, Mapping[str, str]], dict[str, object]]
    style: str


def site(paths: StatePaths, records: Records, *, allow_approve: bool) -> Starlette:
    """Return the application. Without `allow_approve` nothing that it does changes a session."""
    pages = _Pages(paths, records, allow_approve=allow_approve)
    read, write = ["GET"], ["POST"]
    return Starlette(
        routes=[
            *(Route(path, _file(name, kind)) for path, (name, kind) in _FILES.items()),
            Route("/style.css", _text(_static("style.css") + records.style, "text/css")),
            Route("/api/runs", pages.answering(pages.runs), methods=read),
            Route("/api/runs/{run}", pages.answering(pages.state), methods=read),
            Route("/api/runs/{run}/timeline", pages.answering(pages.timeline), methods=read),
            Route("/api/runs/{run}/plan", pages.answering(pages.plan), methods=read),
            Route("/api/runs/{run}/audit", pages.answering(pages.audit), methods=read),
            Route("/api/runs/{run}/explain", pages.answering(pages.explain), methods=write),
            Route("/api/runs/{run}/asks/{ask:int}", pages.answering(pages.ask), methods=read),
            Route("/api/runs/{run}/asks/{ask:int}", pages.answering(pages.answer), methods=write),
            Route("/api/runs/{run}/kill", pages.answering(pages.kill), methods=write),
            Route("/api/runs/{run}/events", pages.events, methods=read),
        ]
    )


_Handler = Callable[[Request], Awaitable[Response]]


class _Pages:
    """One method for each address below `/api/`."""

    def __init__(self, paths: StatePaths, records: Records, *, allow_approve: bool) -> None:
        self._paths = paths
        self._records = records
        self._allow_approve = allow_approve

    def answering(self, handler: _Handler) -> _Handler:
        """Return a handler whose errors are answers, in the words of `--json`."""

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except RemitError as error:
                status = 409 if error.exit_code is not ExitCode.DENIED else 403
                words = {"message": error.message, "why": error.why, "fix": error.fix}
                return JSONResponse({"code": error.code, **words}, status)

        return answer

    async def runs(self, request: Request) -> Response:
        """All runs, the newest first."""
        found = await anyio.to_thread.run_sync(self._records.runs)
        return JSONResponse({"runs": found, "allow_approve": self._allow_approve})

    async def state(self, request: Request) -> Response:
        """How a session stands; `live` is false if none is at work."""
        run = request.path_params["run"]
        try:
            async with connected(self._paths, run) as client:
                about = await client.do("about")
                told: dict[str, object] = {}
                for operation in ("agents", "asks", "servers", "cost"):
                    told |= {operation: (await client.do(operation)).get(operation)}
                cost = await client.do("cost")
        except ConfigError:
            return JSONResponse({"run": run, "live": False})
        told["cost"] = {name: cost[name] for name in ("tokens", "usd", "calls")}
        return JSONResponse({**told, "run": run, "live": True, "about": about})

    async def timeline(self, request: Request) -> Response:
        """The timeline as SVG."""
        return await self._picture(self._records.timeline, request)

    async def plan(self, request: Request) -> Response:
        """The plan as SVG; empty where there is none."""
        return await self._picture(self._records.plan, request)

    async def audit(self, request: Request) -> Response:
        """Rows of the audit log, by kind, agent and server."""
        run, filters = request.path_params["run"], dict(request.query_params)
        return JSONResponse(await anyio.to_thread.run_sync(self._records.audit, run, filters))

    async def explain(self, request: Request) -> Response:
        """What a call would be answered, under the policy of the session."""
        return JSONResponse(await self._do(request, "explain", await _body(request)))

    async def ask(self, request: Request) -> Response:
        """All of one ask, for who may answer it; `shown` has it with hidden characters written out."""
        self._refuse_unless_allowed()
        told = await self._do(request, "ask", {"ask": request.path_params["ask"]})
        content = str(told.get("question", ""))
        if "arguments" in told:
            content = json.dumps(told["arguments"], indent=2, ensure_ascii=False)
        permit = str(told.get("always", ""))
        shown = {"content": whole_text(content), "always": whole_text(permit).rstrip()}
        return JSONResponse({**told, "shown": shown})

    async def answer(self, request: Request) -> Response:
        """Answer an ask."""
        self._refuse_unless_allowed()
        body = await _body(request)
        how = body.get("how")
        operation = _ANSWERS.get(how) if isinstance(how, str) else None
        if operation is None:
            raise ConfigError(
                "how is once, session, always, deny or answer", code="E-CONTROL-REQUEST"
            )
        arguments: dict[str, object] = {"ask": request.path_params["ask"]}
        if operation == "allow":
            arguments["span"] = how
        if how == "always":
            # what was confirmed; the session holds it against what it would keep now
            arguments["rule"] = body.get("rule")
        if operation == "answer":
            arguments["text"] = body.get("text")
        return JSONResponse(await self._do(request, operation, arguments))

    async def kill(self, request: Request) -> Response:
        """Stop an agent and all below it."""
        self._refuse_unless_allowed()
        body = await _body(request)
        return JSONResponse(await self._do(request, "kill", {"agent": body.get("agent")}))

    async def events(self, request: Request) -> Response:
        """The events of a session as they come, as server-sent events; `over` is the last."""
        run = cast("str", request.path_params["run"])
        return StreamingResponse(self._events(run), media_type="text/event-stream")

    async def _events(self, run: str) -> AsyncGenerator[str]:
        try:
            async with connected(self._paths, run) as own, connected(self._paths, run) as client:
                if self._allow_approve:
                    # as long as the page is open, somebody is there to be asked
                    await own.do("attend")
                async for event in await client.follow():
                    yield f"data: {json.dumps(event)}\n\n"
        except RemitError:
            pass  # it has ended: that is what the page is told
        yield "event: over\ndata: {}\n\n"

    async def _picture(self, draw: Callable[[str], str], request: Request) -> Response:
        run = request.path_params["run"]
        drawn = await anyio.to_thread.run_sync(draw, run)
        return Response(drawn, media_type="text/plain")

    async def _do(
        self, request: Request, operation: str, arguments: Mapping[str, object]
    ) -> dict[str, object]:
        own = {key: value for key, value in arguments.items() if key not in {"op", "id"}}
        async with connected(self._paths, request.path_params["run"]) as client:
            return await client.do(operation, **own)

    def _refuse_unless_allowed(self) -> None:
        if not self._allow_approve:
            raise RemitError(
                "this page only looks",
                code="E-SERVE-READ-ONLY",
                fix="start it with `remit serve --allow-approve`",
                exit_code=ExitCode.DENIED,
            )


async def _body(request: Request) -> dict[str, object]:
    """Return the JSON object of a request. Raises ConfigError past the bound, and for anything else."""
    data = b""
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > BODY_BYTES_MAX:
                raise ConfigError("the request is too large", code="E-CONTROL-REQUEST")
    try:
        return read_bounded(data.decode())
    except (ValueError, RecursionError):
        raise ConfigError("the request is no JSON object", code="E-CONTROL-REQUEST") from None


def _static(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")


def _file(name: str, kind: str) -> _Handler:
    return _text(_static(name), kind)


def _text(content: str, kind: str) -> _Handler:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer
