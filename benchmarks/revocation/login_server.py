"""An MCP server over HTTP that wants a login, with the authorization server for it. Standard library only.

    python login_server.py FOLDER

Writes its address to `FOLDER/address`, and every frame that it receives to `FOLDER/wire.jsonl` before it
deals with it: `with_login` says whether a token of its own came along. Whoever comes to `/authorize` is
let in at once. What it offers is what `server.py` does, without `slow`.
"""

from __future__ import annotations

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from server import FOLDER, SCHEMA, log, parameters

TOKENS: set[str] = set()
TOOLS = [{"name": "act", "description": "Looks at nothing.", "inputSchema": SCHEMA}]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    @property
    def base(self) -> str:
        return f"http://{self.headers['Host']}"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's own name
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path.startswith("/.well-known/oauth-protected-resource"):
            self.say({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]})
        elif parts.path == "/.well-known/oauth-authorization-server":
            self.say(
                {
                    "issuer": self.base,
                    "authorization_endpoint": f"{self.base}/authorize",
                    "token_endpoint": f"{self.base}/token",
                    "registration_endpoint": f"{self.base}/register",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code", "refresh_token"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "code_challenge_methods_supported": ["S256"],
                }
            )
        elif parts.path == "/authorize":
            asked = parse_qs(parts.query)
            back = {"code": secrets.token_hex(8), "state": asked.get("state", [""])[0]}
            self.answer(302, b"", Location=f"{asked['redirect_uri'][0]}?{urlencode(back)}")
        else:
            self.answer(405 if parts.path == "/mcp" else 404, b"")

    def do_DELETE(self) -> None:
        log(frame="DELETE")
        self.answer(200, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        match urlsplit(self.path).path:
            case "/register":
                registered = json.loads(body)
                registered |= {"client_id": "bench", "token_endpoint_auth_method": "none"}
                self.say(registered, 201)
            case "/token":
                token = secrets.token_hex(16)
                TOKENS.add(token)
                self.say({"access_token": token, "token_type": "Bearer", "expires_in": 3600})
            case "/mcp":
                self.mcp(json.loads(body))
            case _:
                self.answer(404, b"")

    def mcp(self, message: dict[str, Any]) -> None:
        """Answer one frame, after it was written down."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        params = parameters(message)
        log(
            frame=message.get("method", "answer"),
            tool=params.get("name", ""),
            with_login=token in TOKENS,
        )
        if token not in TOKENS:
            where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource"'
            self.answer(401, b"", **{"WWW-Authenticate": where})
            return
        number = message.get("id")
        if number is None:
            self.answer(202, b"")
            return
        results: dict[str, object] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "logging", "version": "1"},
            },
            "tools/list": {"tools": TOOLS},
            "tools/call": {"content": [{"type": "text", "text": "act is done"}]},
            "ping": {},
        }
        result = results.get(str(message.get("method")))
        if result is None:
            error = {"code": -32601, "message": "no such method"}
            self.say({"jsonrpc": "2.0", "id": number, "error": error})
        else:
            self.say({"jsonrpc": "2.0", "id": number, "result": result})

    def say(self, value: object, status: int = 200) -> None:
        """Answer with JSON."""
        self.answer(status, json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A thread for each connection; a client that goes away is nothing to tell of."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


def main() -> None:
    server = Server(("127.0.0.1", 0), Handler)
    part = FOLDER / "address.part"
    part.write_text(f"http://127.0.0.1:{server.server_port}/mcp")
    part.rename(FOLDER / "address")
    server.serve_forever()


if __name__ == "__main__":
    main()
