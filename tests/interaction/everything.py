"""A server that offers every surface of one protocol version; it knows neither transport nor client.

Standard library only, so that it can run as a child process that starts fast. It is fed decoded
messages and says its own through `send`. What a test needs to see of the client's side it gets
through tools: `seen`, and `ask`, whose answer is what the client answered.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "hello", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"example.com/a": 1}},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "note:///one", "name": "one"},
    {"type": "resource", "resource": {"uri": "note:///one", "text": "1"}},
    {"type": "hologram", "data": "?"},
]
TOOLS: list[Any] = [
    {
        "name": name,
        "description": f"does {name}",
        "inputSchema": {"type": "object"},
        "icons": [{"src": "https://canary.invalid/icon.png"}],
        "_meta": {"example.com/kept": [1]},
    }
    for name in ("ask", "count", "echo", "fail", "log", "rich", "seen", "tell", "wait")
]
RESOURCES: list[Any] = [
    {"uri": f"note:///{name}", "name": name, "mimeType": "text/plain", "size": 1}
    for name in ("one", "two", "three")
]
TEMPLATES: list[Any] = [{"uriTemplate": "note:///{name}", "name": "note"}]
PROMPTS: list[Any] = [
    {
        "name": "greet",
        "title": "Greet",
        "arguments": [{"name": "who", "required": True}, {"name": "how"}],
    },
    {"name": "plain"},
]
BROKEN: list[Any] = [7, {"name": ""}]
"""Entries that no list can use."""


MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


def server_of(version: str, send: Callable[[dict[str, Any]], object]) -> Everything:
    """The server of a version."""
    return Modern(send) if version == MODERN else Everything(version, send)


class RefusedError(Exception):
    """An error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Everything:
    """One connection's server. `send` takes a message; it may be called at any time."""

    not_found = -32002

    def __init__(self, version: str, send: Callable[[dict[str, Any]], object]) -> None:
        self.version = version
        self.send = send
        self.seen: list[str] = []
        self.asked = 0
        self.waiting: dict[Any, Any] = {}
        self.subscribed: set[str] = set()
        self.level = "emergency"

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of the client."""
        method = message.get("method")
        if method is None:
            call = self.waiting.pop(message.get("id"), None)
            if call is not None:
                answer = {key: message[key] for key in ("result", "error") if key in message}
                self.answer(call, text(json.dumps(answer)))
            return
        self.seen.append(method)
        if "id" not in message:
            return
        params: dict[str, Any] = message.get("params", {})
        try:
            result = getattr(self, "on_" + method.replace("/", "_"), self.unknown)(
                message["id"], params
            )
        except RefusedError as failure:
            error = {"code": failure.code, "message": failure.message, "data": failure.data}
            self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        if result is not None:
            self.answer(message["id"], result)

    def answer(self, request_id: Any, result: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def unknown(self, _id: Any, _params: Any) -> dict[str, Any]:
        raise RefusedError(-32601, "method not found")

    # --------------------------------------------------------------------------------- lifecycle

    def on_initialize(self, _id: Any, _params: Any) -> dict[str, Any]:
        return {
            "protocolVersion": self.version,
            "capabilities": {
                "tools": {"listChanged": True},
                "resources": {"listChanged": True, "subscribe": True},
                "prompts": {"listChanged": True},
                "logging": {},
                "completions": {},
            },
            "serverInfo": {"name": "everything", "version": "1"},
            "instructions": "use everything",
        }

    def on_ping(self, _id: Any, _params: Any) -> dict[str, Any]:
        return {}

    # ------------------------------------------------------------------------------------- tools

    def on_tools_list(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        return page("tools", [*TOOLS, *BROKEN], params, size=4)

    def on_tools_call(self, request_id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        arguments = params.get("arguments", {})
        match params.get("name"):
            case "echo":
                return {**text(json.dumps(arguments)), "structuredContent": arguments}
            case "fail":
                return {**text("no"), "isError": True}
            case "rich":
                return {"content": CONTENT, "structuredContent": None, "_meta": {"a": 1}}
            case "seen":
                return text(json.dumps(self.seen))
            case "wait":
                return None
            case name:
                return self.speak(name, request_id, params)

    def speak(self, name: Any, request_id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        """The tools that say something before they answer."""
        arguments = params.get("arguments", {})
        match name:
            case "ask":
                self.asked += 1
                self.waiting[self.asked] = request_id
                request = {"method": arguments["method"], "params": arguments.get("params", {})}
                self.send({"jsonrpc": "2.0", "id": self.asked, **request})
                if arguments.get("take_back"):
                    self.notify("notifications/cancelled", {"requestId": self.asked})
                    del self.waiting[self.asked]
                    return text("taken back")
                return None
            case "count":
                token = params.get("_meta", {}).get("progressToken")
                for done in (1, 2, 3):
                    self.notify(
                        "notifications/progress", {"progressToken": token, "progress": done}
                    )
                return text("counted")
            case "log":
                self.notify("notifications/message", {"level": self.level, "data": arguments})
                return text("logged")
            case "tell":
                for _ in range(arguments.get("times", 1)):
                    self.notify(arguments["method"], arguments.get("params", {}))
                return text("told")
            case _:
                raise RefusedError(-32602, "unknown tool")

    # ----------------------------------------------------------------------- resources and prompts

    def on_resources_list(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        return page("resources", [*BROKEN, *RESOURCES], params, size=2)

    def on_resources_templates_list(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        return page("resourceTemplates", TEMPLATES, params, size=1)

    def on_resources_read(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        uri = params["uri"]
        if uri not in [each["uri"] for each in RESOURCES]:
            raise RefusedError(self.not_found, "no such note", {"uri": uri})
        blob = base64.b64encode(uri.encode()).decode()
        return {"contents": [{"uri": uri, "text": uri}, {"uri": uri + "/raw", "blob": blob}, None]}

    def on_resources_subscribe(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        self.subscribed.add(params["uri"])
        self.notify("notifications/resources/updated", {"uri": params["uri"]})
        return {}

    def on_resources_unsubscribe(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        self.subscribed.discard(params["uri"])
        return {}

    def on_prompts_list(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        return page("prompts", [*PROMPTS, *BROKEN], params, size=1)

    def on_prompts_get(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        arguments = params.get("arguments", {})
        if params["name"] == "greet" and "who" not in arguments:
            raise RefusedError(-32602, "who is missing")
        greeting = {"role": "user", "content": {"type": "text", "text": f"hello {arguments}"}}
        rest = [{"role": "assistant", "content": block} for block in CONTENT]
        return {"description": params["name"], "messages": [greeting, *rest]}

    def on_completion_complete(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        names = ["one", "two", "three"]
        known = params.get("context", {}).get("arguments", {})
        values = [name for name in names if name.startswith(params["argument"]["value"])]
        return {"completion": {"values": [*values, *known.values()], "total": 3, "hasMore": False}}

    def on_logging_setLevel(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.level = params["level"]
        return {}


class Modern(Everything):
    """The same without a handshake: it asks by unfinished answers, and tells in streams."""

    not_found = -32602

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        super().__init__(MODERN, send)
        self.streams: dict[Any, dict[str, Any]] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of the client."""
        super().take(message)
        if message.get("method") == "notifications/cancelled":
            self.streams.pop(message["params"]["requestId"], None)

    def answer(self, request_id: Any, result: dict[str, Any]) -> None:
        whole = {"resultType": "complete", **result}
        if any(member in result for member in ("tools", "prompts", "resources", "contents")):
            whole = {"ttlMs": 0, "cacheScope": "private", **whole}
        super().answer(request_id, whole)

    def on_initialize(self, _id: Any, params: dict[str, Any]) -> dict[str, Any]:
        data = {"supported": [MODERN], "requested": params["protocolVersion"]}
        raise RefusedError(-32022, "unsupported protocol version", data)

    def on_server_discover(self, _id: Any, _params: Any) -> dict[str, Any]:
        old = super().on_initialize(_id, _params)
        return {
            "supportedVersions": [MODERN],
            "capabilities": old["capabilities"],
            "instructions": old["instructions"],
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META + "serverInfo": old["serverInfo"]},
        }

    def on_subscriptions_listen(self, request_id: Any, params: dict[str, Any]) -> None:
        wanted = self.streams[request_id] = params["notifications"]
        self.tell(request_id, "notifications/subscriptions/acknowledged", {"notifications": wanted})
        for uri in wanted.get("resourceSubscriptions", ()):
            self.tell(request_id, "notifications/resources/updated", {"uri": uri})

    def tell(self, stream: Any, method: str, params: dict[str, Any]) -> None:
        self.notify(method, {**params, "_meta": {META + "subscriptionId": stream}})

    def speak(self, name: Any, request_id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        arguments = params.get("arguments", {})
        match name:
            case "ask" if "inputResponses" in params:
                assert params["requestState"] == "asked"
                return text(json.dumps({"result": params["inputResponses"]["q"]}))
            case "ask":
                question = {"method": arguments["method"], "params": arguments.get("params", {})}
                return {
                    "resultType": "input_required",
                    "inputRequests": {"q": question},
                    "requestState": "asked",
                }
            case "log":
                self.level = params["_meta"].get(META + "logLevel", self.level)
            case "tell":
                newest = [*self.streams][-1]
                for _ in range(arguments.get("times", 1)):
                    self.tell(newest, arguments["method"], arguments.get("params", {}))
                return text("told")
            case _:
                pass
        return super().speak(name, request_id, params)


def text(said: str) -> dict[str, Any]:
    """The result of a tool that says one thing."""
    return {"content": [{"type": "text", "text": said}]}


def page(member: str, entries: list[Any], params: dict[str, Any], *, size: int) -> dict[str, Any]:
    """One page of a listing; the cursor is the place where the next begins."""
    start = int(params.get("cursor", 0))
    result: dict[str, Any] = {member: entries[start : start + size]}
    if start + size < len(entries):
        result["nextCursor"] = str(start + size)
    return result
