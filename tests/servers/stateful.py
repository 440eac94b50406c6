"""A server with a memory, over stdio, in plain JSON: `put` keeps a text, `get` tells what was kept.

Argument: a folder, into which each process writes all that it reads, as `PID.log`. `hold` never answers,
`quit` ends the process, `ask` asks a person which branch, `pid` tells the process. Whatever is kept is
in the resource `memory:///kept`, in the template `memory:///{part}` and in the prompt `recall` too. A
file `odd` in the folder has the processes that start from then on describe `get` in other words;
`mute` has them end at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

TOOLS: Final = ("put", "get", "hold", "quit", "ask", "pid", "change")
FORM: Final[Mapping[str, object]] = {
    "mode": "form",
    "message": "which branch?",
    "requestedSchema": {"type": "object", "properties": {"branch": {"type": "string"}}},
}
CAPABILITIES: Final[Mapping[str, object]] = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {},
    "completions": {},
}


class Server:
    """One process, and what it keeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.odd = (folder / "odd").exists()
        self.kept = "nothing"

    def send(self, message: Mapping[str, object]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def serve(self) -> None:
        log = (self.folder / f"{os.getpid()}.log").open("a")
        for line in sys.stdin:
            log.write(line)
            log.flush()
            message = json.loads(line)
            if message.get("id") == "q1" and "method" not in message:
                self.told(message.get("result", {}))
            elif "method" in message and "id" in message:
                self.answer(message["id"], message["method"], message.get("params", {}))

    def told(self, answer: Mapping[str, Any]) -> None:
        self.say(self.asked, str(answer.get("content", {}).get("branch", answer.get("action"))))

    def say(self, request: object, text: str) -> None:
        self.send({"id": request, "result": {"content": [{"type": "text", "text": text}]}})

    def answer(self, request: object, method: str, params: Mapping[str, Any]) -> None:
        if method == "tools/call":
            self.call(request, params["name"], params.get("arguments", {}))
        else:
            self.send({"id": request, "result": self.offered(method, params)})

    def call(self, request: object, name: str, arguments: Mapping[str, Any]) -> None:
        if name == "put":
            self.kept = arguments["text"]
        if name == "quit":
            sys.exit(3)
        if name == "change":
            self.odd = True
            self.send({"method": "notifications/tools/list_changed"})
        if name == "ask":
            self.asked = request
            self.send({"id": "q1", "method": "elicitation/create", "params": FORM})
        elif name != "hold":
            self.say(request, str(os.getpid()) if name == "pid" else self.kept)

    def offered(self, method: str, params: Mapping[str, Any]) -> Mapping[str, object]:
        described = {"get": "tells other things"} if self.odd else {}
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": CAPABILITIES,
                    "serverInfo": {"name": "stateful", "version": "1"},
                }
            case "tools/list":
                schema = {"type": "object"}
                return {
                    "tools": [
                        {
                            "name": name,
                            "inputSchema": schema,
                            "description": described.get(name, ""),
                        }
                        for name in TOOLS
                    ]
                }
            case "resources/list":
                return {"resources": [{"uri": "memory:///kept", "name": "kept"}]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": "memory:///{part}", "name": "part"}]}
            case "prompts/list":
                argument = {"name": "style", "description": "how", "required": False}
                return {"prompts": [{"name": "recall", "arguments": [argument]}]}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": self.kept}]}
            case "prompts/get":
                content = {"type": "text", "text": self.kept}
                return {"messages": [{"role": "user", "content": content}]}
            case "completion/complete":
                return {"completion": {"values": [self.kept]}}
            case _:
                return {}


def main() -> None:
    folder = Path(sys.argv[1])
    if (folder / "mute").exists():
        sys.exit(4)
    Server(folder).serve()


if __name__ == "__main__":
    main()
