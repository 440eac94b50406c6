"""The fuzz targets by name, and their seeds. A target takes bytes and fails by raising."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.fuzz.messages import connection_frames, json_messages, readers
from tests.fuzz.texts import auth_challenges, header_values, policy_files, uri_templates, uris
from tests.fuzz.values import WORDS
from tests.fuzz.wire import http_responses, sse_events, stdio_lines

__all__ = ["SEEDS", "TARGETS", "WORDS_OF", "Target", "seeds_of"]

Target = Callable[[bytes], None]

SEEDS: Final = Path(__file__).with_name("seeds")
TARGETS: Final[dict[str, Target]] = {
    "framing": stdio_lines,
    "sse": sse_events,
    "http": http_responses,
    "jsonrpc": json_messages,
    "connection": connection_frames,
    "readers": readers,
    "headers": header_values,
    "challenges": auth_challenges,
    "templates": uri_templates,
    "uris": uris,
    "policy": policy_files,
}
WORDS_OF: Final[dict[str, tuple[str, ...]]] = {
    "framing": ("\n", "\r\n", " ", "\t", "\ufeff", "x" * 64),
    "sse": ("data: ", "data:", "event: ", "id: ", "retry: 1", ":", "\r", "\n\n", "\r\n", "\0"),
    "http": (
        *("HTTP/1.1 200 OK\r\n", "HTTP/1.0 404 \r\n", "HTTP/1.1 100 C\r\n\r\n", "\r\n\r\n", "\r\n"),
        *("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"),
        *("Content-Encoding: gzip\r\n", "Keep-Alive: timeout=5\r\n", "5\r\nhello\r\n", "0\r\n\r\n"),
    ),
    "jsonrpc": (
        *('{"jsonrpc":"2.0","id":1,"result":', '"method":"x",', '"error":{"code":1,"message":""}'),
        *("{", "}", "[", "]", '"', "\\", ",", ":", "null", "1e999", "\\ud800", "NaN", "true"),
    ),
    "connection": WORDS,
    "readers": WORDS,
    "headers": ("=?base64?", "?=", "\r\n", " ", "\ud7ff", "AAAA"),
    "challenges": ("Bearer ", 'realm="', '", ', "error=", "Basic abc==", ",", "=", "\\", "\n"),
    "templates": ("{", "}", "{?a,b}", "{+c}", "{/d}", "{;e}", "{#f}", ":3", "*", "%41", "\n", ","),
    "uris": (
        *("https://", "http://127.0.0.1", "file:///", "//", "@", "\\", "..", "%2e", "[::1]", ":80"),
        *("/", "?", "#", "xn--", "localhost"),
    ),
    "policy": (
        *("policy p v1 {", "}", "default deny", "role a", "set s = server(", "permit ", "forbid "),
        *("ask ", '"id" ', "call ", "read ", "on ", "any server", "/*", "tool ", "for role a "),
        *("depth <= 2 ", "when ", "unless ", "arg(/a) ", "== ", "in [", "]", '"x"', "1 .. 2"),
        *("under ", "exists ", "not ", "and ", "or ", "(", ")", "${x}", "{a,b}", "#", "\n"),
    ),
}


def seeds_of(name: str) -> list[bytes]:
    """Return the inputs that are kept for a target, findings of the past among them."""
    return [path.read_bytes() for path in sorted((SEEDS / name).iterdir())]
