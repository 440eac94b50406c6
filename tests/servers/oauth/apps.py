"""The two servers as web applications: an authorization server, and an MCP server that trusts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from authlib.oauth2 import OAuth2Error
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.servers.oauth.protocol import Answer, Asked, Issuing, judging
from tests.servers.oauth.realm import Client, Realm

__all__ = ["Knobs", "Seen", "authorization_app", "resource_app"]

TOOLS = {
    "tools": [
        {"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "hold", "write")
    ]
}
WANTED = {"write": ["write"]}
"""The scopes that a tool wants, beyond a token that is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request, as a server saw it."""

    method: str
    url: str
    authorization: str
    headers: Mapping[str, str]
    body: bytes
    status: int

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    @property
    def rpc(self) -> str:
        """The method of the MCP message in it."""
        message: dict[str, Any] = json.loads(self.body) if self.body.startswith(b"{") else {}
        return str(message.get("method", ""))


@dataclass(slots=True)
class Knobs:
    """How a server is to behave otherwise than it should.

    Attributes:
        replies: whole responses, by path.
        changes: members of documents, by path: put in, or taken out where None.
        before: called, by path, before a request is answered.
    """

    replies: dict[str, Callable[[], Response]] = field(
        default_factory=dict[str, Callable[[], Response]]
    )
    changes: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    before: dict[str, Callable[[], Awaitable[None]]] = field(
        default_factory=dict[str, Callable[[], Awaitable[None]]]
    )


Handler = Callable[[Request], Awaitable[Response]]


class _Logged:
    """Keeps what came, and turns the knobs."""

    def __init__(self, log: list[Seen], knobs: Knobs) -> None:
        self.log = log
        self.knobs = knobs

    def route(self, path: str, handler: Handler, *methods: str) -> Route:
        async def answer(request: Request) -> Response:
            body = await request.body()
            if (before := self.knobs.before.get(request.url.path)) is not None:
                await before()
            made = self.knobs.replies.get(request.url.path)
            response = await handler(request) if made is None else made()
            self.log.append(
                Seen(
                    method=request.method,
                    url=str(request.url),
                    authorization=request.headers.get("authorization", ""),
                    headers=dict(request.headers),
                    body=body,
                    status=response.status_code,
                )
            )
            return response

        return Route(path, answer, methods=list(methods))

    def document(self, request: Request, told: Mapping[str, object]) -> Response:
        changed = {**told, **self.knobs.changes.get(request.url.path, {})}
        return JSONResponse({name: value for name, value in changed.items() if value is not None})


def authorization_app(realm: Realm, log: list[Seen], knobs: Knobs) -> Starlette:
    """Return an authorization server: metadata, registration, consent (which says yes), tokens."""
    issuing, logged = Issuing(realm), _Logged(log, knobs)
    tenant = realm.settings.tenant

    async def metadata(request: Request) -> Response:
        return logged.document(request, realm.metadata())

    async def authorize(request: Request) -> Response:
        await _learn(realm, request.query_params.get("client_id", ""))
        try:
            return _response(issuing.authorize(await _asked(request)))
        except OAuth2Error as error:
            return _refusal(error, 400)

    async def token(request: Request) -> Response:
        await _learn(realm, dict(parse_qsl((await request.body()).decode())).get("client_id", ""))
        return _response(issuing.token(await _asked(request)))

    async def register(request: Request) -> Response:
        return _response(issuing.register(await _asked(request)))

    routes = [
        logged.route(f"/.well-known/oauth-authorization-server{tenant}", metadata, "GET"),
        logged.route(f"{tenant}/authorize", authorize, "GET"),
        logged.route(f"{tenant}/token", token, "POST"),
    ]
    if realm.settings.registers:
        routes.append(logged.route(f"{tenant}/register", register, "POST"))
    return Starlette(routes=[*routes, logged.route("/{rest:path}", _nothing, "GET", "POST")])


async def _nothing(request: Request) -> Response:
    return Response(status_code=404)


async def _asked(request: Request) -> Asked:
    body = await request.body()
    is_json = request.headers.get("content-type", "").startswith("application/json")
    return Asked(
        method=request.method,
        url=str(request.url),
        headers=request.headers,
        form={} if is_json else dict(parse_qsl(body.decode())),
        json=json.loads(body) if is_json else {},
    )


async def _learn(realm: Realm, client_id: str) -> None:
    """Fetch the document of a client that is a URL, and believe it if it names itself (CIMD)."""
    if not realm.settings.reads_documents or not client_id.startswith("http"):
        return
    async with httpx.AsyncClient(trust_env=False, timeout=5) as web:
        told = (await web.get(client_id)).json()
    if told.get("client_id") == client_id:
        uris = tuple(told.get("redirect_uris", ()))
        realm.register(Client(client_id=client_id, redirect_uris=uris, metadata=told))


def _response(answer: Answer) -> Response:
    if answer.location is not None:
        return Response(status_code=answer.status, headers=answer.headers)
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    return JSONResponse(answer.body, answer.status, headers)


def _refusal(error: Any, status: int) -> Response:
    return JSONResponse({"error": str(error.error)}, status)


# ------------------------------------------------------------------------------------ the resource


@dataclass(slots=True, kw_only=True)
class Resource:
    """An MCP server whose every message needs a token.

    Attributes:
        url: its own.
        issuers: the authorization servers that it names.
        held: calls of `hold` that wait; `release` lets them go.
        session_id: what it names its sessions; empty: it has none.
    """

    url: str
    realm: Realm
    issuers: list[str]
    scopes: tuple[str, ...] = ("read",)
    held: int = 0
    session_id: str = ""
    release: asyncio.Event = field(default_factory=asyncio.Event)


def resource_app(resource: Resource, log: list[Seen], knobs: Knobs) -> Starlette:
    """Return an MCP server (2025-11-25) with its metadata (RFC 9728)."""
    logged = _Logged(log, knobs)
    path = urlsplit(resource.url).path
    place = f"/.well-known/oauth-protected-resource{path}"
    origin = resource.url.removesuffix(path)
    judge = judging(resource.realm, resource.url)

    async def metadata(request: Request) -> Response:
        told = {
            "resource": resource.url,
            "authorization_servers": resource.issuers,
            "scopes_supported": [*resource.scopes],
            "bearer_methods_supported": ["header"],
        }
        return logged.document(request, told)

    async def client_document(request: Request) -> Response:
        told = {
            "client_id": f"{origin}/client.json",
            "client_name": "remit",
            "redirect_uris": ["http://127.0.0.1:1/cb"],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        }
        return logged.document(request, told)

    async def messages(request: Request) -> Response:
        message = json.loads(await request.body() or b"{}")
        wanted = WANTED.get(str(message.get("params", {}).get("name", "")), [])
        try:
            judge(wanted, request)
        except OAuth2Error as error:
            return _challenge(error, f"{origin}{place}", wanted)
        response = await _answer(message, resource) if request.method == "POST" else _not_allowed()
        if resource.session_id:
            response.headers["Mcp-Session-Id"] = resource.session_id
        return response

    return Starlette(
        routes=[
            logged.route(place, metadata, "GET"),
            logged.route("/client.json", client_document, "GET"),
            logged.route(path, messages, "GET", "POST", "DELETE"),
            logged.route("/{rest:path}", _nothing, "GET", "POST"),
        ]
    )


def _not_allowed() -> Response:
    return Response(status_code=405)


def _challenge(error: Any, place: str, wanted: list[str]) -> Response:
    parts = [f'resource_metadata="{place}"']
    if error.error in ("invalid_token", "insufficient_scope"):
        parts.append(f'error="{error.error}"')
    if error.error == "insufficient_scope":
        parts.append(f'scope="{" ".join(wanted)}"')
    status = 403 if error.error == "insufficient_scope" else 401
    return Response(status_code=status, headers={"WWW-Authenticate": f"Bearer {', '.join(parts)}"})


async def _answer(message: dict[str, Any], resource: Resource) -> Response:
    result: object = {}
    match message.get("method"):
        case "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        case "tools/list":
            result = TOOLS
        case "tools/call":
            if message["params"]["name"] == "hold":
                resource.held += 1
                await resource.release.wait()
            text = str(message["params"].get("arguments", {}).get("text", ""))
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            pass
    if "id" not in message:
        return Response(status_code=202)
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})
