"""Fuzz targets of what reads messages and what is in them: only documented errors, bounded results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from mcp_client.protocol.capabilities import ServerCapabilities
from mcp_client.protocol.connection.legacy import ClientConnection
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError, PeerError, RemoteProtocolError
from mcp_client.protocol.events import PeerViolation, ResponseReceived
from mcp_client.protocol.http.headers import HeaderMarkError, mirrored_headers, read_header_marks
from mcp_client.protocol.jsonrpc import (
    as_object,
    canonical,
    classify,
    decode,
    encode,
    read_message,
    reread,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import read_log
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import (
    names_modern,
    read_discover,
    read_result_type,
    refine_error,
)
from mcp_client.protocol.modern.mrtr import read_input_required
from mcp_client.protocol.modern.subscriptions import read_filter, stream_of
from mcp_client.protocol.peer.elicitation import required_elicitations
from mcp_client.protocol.peer.requests import read_request
from mcp_client.protocol.progress import read_progress
from mcp_client.protocol.surfaces.completion import read_completion
from mcp_client.protocol.surfaces.content import checked_block
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.prompts import read_prompt, read_prompt_result
from mcp_client.protocol.surfaces.resources import (
    read_resource,
    read_resource_result,
    read_template,
)
from mcp_client.protocol.surfaces.results import read_tool_result
from mcp_client.protocol.surfaces.skills import read_skill
from mcp_client.protocol.surfaces.tasks import TaskShape, TaskSupport, read_task, read_tool_tasks
from mcp_client.protocol.surfaces.tools import read_tool
from tests.fuzz.values import value_of

__all__ = ["connection_frames", "json_messages", "readers"]

LIMITS = ClientLimits()
MODERN = ModernLimits()
SMALL = ClientLimits(nesting_depth_max=6, frame_bytes_max=4_096, frame_marks_max=200)
ALL = ClientCapabilities(
    roots=True, sampling=True, sampling_tools=True, elicitation_form=True, elicitation_url=True
)

# ------------------------------------------------------------------------------ JSON-RPC


def json_messages(data: bytes) -> None:
    """A frame is what the standard library makes of it, within bounds; reading never raises."""
    message = read_message(data, SMALL)
    expected = _slow(data)
    if expected is _REFUSED:
        assert isinstance(message, PeerViolation)
        return
    if isinstance(expected, list):
        assert message == expected
        return
    assert message == classify(expected)
    encoded = encode(expected)
    assert reread(encoded) == decode(encoded, LIMITS) == expected
    assert canonical(expected) == encoded
    if isinstance(message, ResponseReceived):
        assert type(message.request_id) in (int, str)


_REFUSED: Any = object()


def _slow(data: bytes) -> Any:
    if len(data) > SMALL.frame_bytes_max:
        return _REFUSED
    marks = 0

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        # which object is the outermost is known only at the end
        twice[id(members)] = len(members) != len(pairs)
        kept.append(members)
        return members

    twice: dict[int, bool] = {}
    kept: list[dict[str, Any]] = []
    try:
        text = data.decode()
        value = json.loads(
            text, object_pairs_hook=once, parse_constant=_refuse, parse_float=_float, parse_int=_int
        )
    except (ValueError, RecursionError):
        return _REFUSED
    marks = _marks(text)
    if twice.get(id(value)) or _depth(value) > SMALL.nesting_depth_max:
        return _REFUSED
    # only frames that are larger than the bound can be over it
    if marks > SMALL.frame_marks_max and (_opened(data) > 6 or len(data) > SMALL.frame_marks_max):
        return _REFUSED
    return _whole(value)


def _whole(value: Any) -> Any:
    """Return a value with U+FFFD for each half of a surrogate pair, in its names as well."""
    match value:
        case str():
            return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
        case list():
            return [_whole(item) for item in cast("list[Any]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {_whole(name): _whole(item) for name, item in members.items()}
        case _:
            return value


def _refuse(_text: str) -> Any:
    raise ValueError


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError
    return value


def _int(text: str) -> int:
    if len(text) > 400:
        raise ValueError
    return int(text)


def _opened(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _marks(text: str) -> int:
    marks, inside, escaped = 0, False, False
    for char in text:
        if inside:
            inside = escaped or char != '"'
            escaped = not escaped and char == "\\"
        elif char == '"':
            inside = True
        else:
            marks += char in "{}[],:"
    return marks


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return 1 + max((_depth(each) for each in members.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(each) for each in cast("list[Any]", value)), default=0)
    return 0


# -------------------------------------------------------------------------------- connection

_DECLARED: Any = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def connection_frames(data: bytes) -> None:
    """Whatever frames come, before and after the handshake, become events: nothing is raised."""
    version = _VERSIONS[data[0] % 4] if data else _VERSIONS[0]
    fresh, ready = ClientConnection(LIMITS), _ready(version)
    for line in data[1:].split(b"\n"):
        frame = line if line[:1] in b"{[" else canonical({**_ENVELOPE, **_members(line)})
        for connection in (fresh, ready):
            events = connection.receive(frame)
            assert len(events) <= LIMITS.batch_messages_max


_ENVELOPE = {"jsonrpc": "2.0", "id": 1}


def _members(line: bytes) -> Mapping[str, object]:
    return as_object(value_of(line)) or {"result": {}}


def _ready(version: str) -> ClientConnection:
    connection = ClientConnection(LIMITS, declared=ALL)
    request_id = connection.frame_initialize().request_id
    result = {
        "protocolVersion": version,
        "capabilities": _DECLARED,
        "serverInfo": {"name": "s", "version": "1"},
    }
    connection.receive(canonical({"jsonrpc": "2.0", "id": request_id, "result": result}))
    connection.frame_initialized()
    return connection


# ----------------------------------------------------------------------------------- readers


def readers(data: bytes) -> None:
    """Every reader of what servers send returns, or raises what it says; what it keeps is bounded."""
    value = value_of(data)
    members = as_object(value) or {}
    for read in _NEVER_RAISE:
        found = read(value)
        assert not isinstance(found, Quarantined) or found.reason
    for read in _RAISE_REMOTE:
        with suppress(RemoteProtocolError):
            read(value)
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping", "x"):
        read_request(method, members, ALL, LIMITS, server="s")
    _marked(members)
    _errors(value)


def _marked(members: Mapping[str, object]) -> None:
    schema = as_object(members.get("inputSchema")) or members
    try:
        marks = read_header_marks(schema)
    except HeaderMarkError:
        return
    with suppress(LocalProtocolError):
        for _, text in mirrored_headers(marks, members):
            assert text.isascii()
            assert text.isprintable()


def _errors(value: object) -> None:
    error = PeerError(code=-32_602, peer_message="m", data=value)
    refine_error(error, LIMITS, MODERN)
    for code in (-32_001, -32_020, -32_021, -32_022, -32_042):
        refine_error(PeerError(code=code, peer_message="m", data=value), LIMITS, MODERN)
    names_modern(-32_602, "m", value)


def _within(read: Callable[[object, ClientLimits], object]) -> Callable[[object], object]:
    return lambda value: read(value, LIMITS)


_Reader = Callable[[object], object]


def _task(shape: TaskShape) -> _Reader:
    return lambda value: read_task(value, shape, LIMITS, MODERN)


_NEVER_RAISE: list[_Reader] = [
    checked_block,
    _within(read_tool),
    _within(read_resource),
    _within(read_template),
    _within(read_prompt),
    lambda value: read_skill(value, LIMITS, MODERN, server="s"),
    lambda value: read_log(as_object(value) or {}, LIMITS),
    lambda value: read_progress(as_object(value) or {}, LIMITS),
    lambda value: required_elicitations(value, LIMITS, server="s"),
    read_filter,
    lambda value: stream_of("notifications/x", as_object(value) or {}),
    lambda value: stream_of("notifications/cancelled", as_object(value) or {}),
    lambda value: read_tool_tasks(as_object(value) or {}),
    lambda value: TaskSupport.parse(as_object(value) or {}, version="2025-11-25"),
    lambda value: ServerCapabilities.parse(as_object(value) or {}, version="2025-11-25"),
]
_RAISE_REMOTE: list[_Reader] = [
    _within(read_tool_result),
    _within(read_resource_result),
    _within(read_prompt_result),
    _within(read_completion),
    lambda value: read_discover(value, LIMITS, MODERN),
    lambda value: read_input_required(value, MODERN),
    lambda value: read_result_type("tools/call", value, {}),
    *map(_task, TaskShape),
]
