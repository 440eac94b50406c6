"""An MCP server that misbehaves in the way that its argument names; alone in its standard library.

It speaks just enough of MCP 2025-11-25 to be connected to. `good` does nothing wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

Answer = Callable[[object], None]


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def send(message: dict[str, object]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def result(request_id: object, text: str) -> None:
    send({"id": request_id, "result": {"content": [{"type": "text", "text": text}]}})


def good(request_id: object) -> None:
    result(request_id, "good")


def dies(_id: object) -> None:
    os.write(2, b"fatal: \x1b[31mout of cheese\n")
    os._exit(7)


def killed(_id: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def silent(_id: object) -> None:
    pass


def noise(request_id: object) -> None:
    write(b"\n\r\n   \n\xef\xbb\xbf\nStarting\xff\xfe up...\n{not json}\n[1]\n42\nnull\n\x00\n")
    write(b"\xef\xbb\xbf")
    result(request_id, "through the noise")


def too_noisy(_id: object) -> None:
    while True:
        write(b"debug: all is well\n" * 1000)


def stderr(request_id: object) -> None:
    for _ in range(1600):
        os.write(2, b"e" * 65536)
    result(request_id, "after the flood")


def twice(request_id: object) -> None:
    result(request_id, "first")
    result(request_id, "second")


def huge(request_id: object) -> None:
    start = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"x": ""}})[:-3].encode()
    write(start + b"x" * (8 * 1024 * 1024 + 1 - len(start) - 3) + b'"}}\n')


def endless(_id: object) -> None:
    while True:
        write(b'{"jsonrpc": "2.0", ' * 1000)


def deep(request_id: object) -> None:
    nested = b"[" * 100_000 + b"]" * 100_000
    write(
        b'{"jsonrpc": "2.0", "id": %s, "result": {"x": %s}}\n' % (str(request_id).encode(), nested)
    )
    result(request_id, "shallow")


def cut_text(request_id: object) -> None:
    """Cuts a text within a character, as programs do that count in UTF-16."""
    result(request_id, "cut \ud83d")


def no_number(request_id: object) -> None:
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"x": NaN}}\n' % int(str(request_id)))


def others(request_id: object) -> None:
    """Answers everything but what it was asked, then that."""
    for wrong in (999_999, -1, 0, str(request_id), None, True, 1.5):
        result(wrong, "stolen")
    result(request_id, "mine")


def asks(request_id: object) -> None:
    """Asks back, far more often than anybody would answer."""
    for number in range(5_000):
        send({"id": f"q{number}", "method": "sampling/createMessage", "params": {}})
    result(request_id, "asked enough")


def deafens(_id: object) -> None:
    """Reads no more."""
    while True:
        signal.pause()


def closes(_id: object) -> None:
    os.close(1)
    while True:
        signal.pause()


def leaves(_id: object) -> None:
    """Dies, and leaves a child that listens to nothing, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    os._exit(0)


CALLS: dict[str, Answer] = {
    "asks": asks,
    "closes": closes,
    "deafens": deafens,
    "deep": deep,
    "cut_text": cut_text,
    "no_number": no_number,
    "dies": dies,
    "endless": endless,
    "good": good,
    "huge": huge,
    "killed": killed,
    "leaves": leaves,
    "noise": noise,
    "others": others,
    "silent": silent,
    "stderr": stderr,
    "too_noisy": too_noisy,
    "twice": twice,
}


def initialize(way: str, request_id: object) -> None:
    if way == "mute":
        return
    if way == "dies_in_handshake":
        os._exit(5)
    if way == "refuses":
        send({"id": request_id, "error": {"code": -32603, "message": "no \x1b[2Jthanks"}})
        return
    version = "1999-01-01" if way == "ancient" else "2025-11-25"
    answer: dict[str, object] = {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    }
    send({"id": request_id, "result": [] if way == "malformed" else answer})
    if way == "initialized_twice":
        send({"id": request_id, "result": answer})


def main() -> None:
    way = sys.argv[1]
    if way == "dies_at_once":
        os.write(2, b"ModuleNotFoundError: No module named 'server'\n")
        os._exit(1)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                initialize(way, message["id"])
            case "tools/call":
                CALLS[way](message["id"])
            case "ping":
                send({"id": message["id"], "result": {}})
            case _:
                pass


if __name__ == "__main__":
    main()
