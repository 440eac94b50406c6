"""JSON on the wire: the one bounded decoder, the one encoder, and what makes a message; no state.

What a server may break is refused here, before anything looks at it: bytes that are not UTF-8,
depth, NaN and infinities, numbers no float or reader can hold, member names of the envelope given
twice. Half a surrogate pair, as a server writes that cut a text within a character, becomes U+FFFD.
Names given twice deeper inside are not refused: finding them costs a
Python call for each object (measured: 30 % of a listing of 10,000 tools), and nothing that
decides looks there twice; the last one counts, as in every reader of the standard library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeGuard, cast

from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    PeerViolation,
    RequestId,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.limits import ClientLimits

__all__ = [
    "Message",
    "as_object",
    "canonical",
    "classify",
    "decode",
    "encode",
    "read_message",
    "reread",
]

Message = ResponseReceived | ErrorReceived | RequestReceived | NotificationReceived | PeerViolation
"""What a frame can be before anybody asks whether it was expected."""

DIGITS_MAX: Final = 308
"""Digits of an integer: each such one has a float, so that no reader of ours overflows."""
ID_CHARS_MAX: Final = 1_024
"""Characters of an id that a server chose: it is sent back as it came."""
ENDS_BYTES: Final = 64
"""Of a frame that cannot be read: in so many at its end an id is looked for."""
PIECE_BYTES: Final = 64 * 1024
"""Of a frame that is looked through at once: each few bytes may become a piece of their own."""
NESTING_DEPTH_MAX: Final = 64
"""What `encode` takes where no limits are at hand; the default of `ClientLimits`."""


def decode(frame: bytes, limits: ClientLimits) -> object:
    """Return the value of a JSON text. Raises RemoteProtocolError, which quotes nothing of it."""
    text = _text(frame, limits)
    try:
        at = _BLANKS(text, 0).end()
        # an object may be an envelope: its members are taken one by one, to find one given twice
        value, at = _members(text, at + 1) if text[at : at + 1] == "{" else _raw_decode(text, at)
        if _BLANKS(text, at).end() != len(text):
            raise ValueError("something follows the JSON text")
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from None
    return _without_surrogates(frame, value)


def read_message(frame: bytes, limits: ClientLimits) -> Message | list[object]:
    """Return what a frame is; a list if it is an array, whose elements are for `classify`.

    Never raises: noise and malformed messages are PeerViolation, which names the request that the
    frame would have answered, if that can be told.
    """
    try:
        value = _read_response(frame, limits)
        if value is not None:
            return value
        value = decode(frame, limits)
    except RemoteProtocolError as error:
        return PeerViolation(
            kind=Violation.NOT_JSON, detail=str(error), request_id=_id_at_the_ends(frame)
        )
    return cast("list[object]", value) if isinstance(value, list) else classify(value)


def classify(value: object) -> Message:
    """Return what one decoded message is. A boolean, a float or null is no id."""
    message = as_object(value)
    if message is None:
        return _malformed("a message is an object", {})
    if message.get("jsonrpc") != "2.0":
        return _malformed("the member jsonrpc is not 2.0", message)
    if "method" in message:
        return _classify_call(message)
    if "error" in message:
        return _classify_error(message)
    if "result" not in message:
        return _malformed("neither a method nor a result nor an error", message)
    request_id = message.get("id")
    if not _is_id(request_id):
        return _malformed("the id of a response is an integer or a string", message)
    return ResponseReceived(request_id, message["result"])


def encode(value: object, *, depth_max: int = NESTING_DEPTH_MAX) -> bytes:
    """Return the canonical JSON text of a value: compact, keys sorted, UTF-8.

    Takes dicts with str keys, lists, tuples, str, int, finite float, bool and None. Raises
    LocalProtocolError for everything else, and names it.
    """
    try:
        text = "".join(_pieces(value, 0))
    except (ValueError, TypeError, RecursionError):
        _check_encodable(value, depth_max)  # says what else may be wrong
        raise LocalProtocolError("a number is not finite", stage="send") from None
    is_plain = False
    # The encoder also takes what is no JSON. Nearly all arguments are an object of texts and the
    # like, with nothing within it and no room for an integer of too many digits.
    if type(value) is dict and depth_max > 0 and text.count("{") == 1 and "[" not in text:
        members: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
        is_plain = _ONLY_TEXT.issuperset(map(type, members)) and (
            len(text) <= DIGITS_MAX or _LEAVES.issuperset(map(type, members.values()))
        )
    if not is_plain:
        _check_encodable(value, depth_max)  # pyright: ignore[reportUnknownArgumentType]
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("a text holds a lone surrogate", stage="send") from None


def canonical(decoded: object) -> bytes:
    """Return the canonical JSON text of what `decode` returned, without looking through it again."""
    return "".join(_pieces(decoded, 0)).encode()


def reread(encoded: bytes) -> object:
    """Return the value of what `encode` returned: what `decode` looks for cannot be in there."""
    return _raw_decode(encoded.decode(), 0)[0]


def as_object(value: object) -> Mapping[str, object] | None:
    """Return a decoded value if it is a JSON object, else None."""
    # a call of `cast` would cost more than the question
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


# ------------------------------------------------------------------------------------- decoding


def _refuse_constant(_text: str) -> NoReturn:
    raise ValueError("NaN and infinities are no JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _parse_int(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError("an integer has too many digits")
    return int(text)


_decoder: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=_parse_int
)
_raw_decode: Final[Callable[[str, int], tuple[Any, int]]] = _decoder.raw_decode
# what that calls, and the library declares nowhere; it raises StopIteration where no value begins
_scan: Final = cast("Callable[[str, int], tuple[Any, int]]", vars(_decoder)["scan_once"])

# The two orders in which nearly all servers write a result.
_ID_FIRST: Final = re.compile(
    r'\{"jsonrpc": ?"2\.0", ?"id": ?(0|[1-9][0-9]{0,17}), ?"result": ?'
).match
_ID_LAST: Final = re.compile(r',"jsonrpc":"2\.0","id":(0|[1-9][0-9]{0,17})\}').fullmatch

_RESULT_FIRST: Final = '{"result":'

# The same orders and a few more, of an answer that is none.
_ANSWER_HEAD: Final = re.compile(
    rb'\s{0,8}\{ ?(?:"jsonrpc": ?"2\.0", ?"id": ?([1-9][0-9]{0,17}), ?"(?:result|error|id)":'
    rb'|"id": ?([1-9][0-9]{0,17}), ?"jsonrpc": ?"2\.0", ?"(?:result|error|id)":|"(?:result|error)":)'
).match
_ANSWER_TAIL: Final = re.compile(
    rb', ?"jsonrpc": ?"2\.0", ?"id": ?([1-9][0-9]{0,17}) ?\}\s{0,8}\Z'
).search

_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'{}[],:"')
# no piece ends within an escape: behind a backslash it goes on to what follows the last of them
_PIECE: Final = cast(
    "Callable[[bytes, int], re.Match[bytes]]",
    re.compile(rb"(?s).{1,%d}(?:(?<=\\)\\*+.?)?" % PIECE_BYTES).match,
)
_SAME_BRACKETS: Final = bytes.maketrans(b"[]", b"{}")

_SURROGATES: Final = re.compile("[\ud800-\udfff]").sub

_BLANKS: Final = cast(
    "Callable[[str, int], re.Match[str]]",  # it matches everywhere
    re.compile(r"[ \t\n\r]*").match,
)
_COLON: Final = re.compile(r"[ \t\n\r]*:[ \t\n\r]*").match
_NEXT: Final = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*").match


def _read_response(frame: bytes, limits: ClientLimits) -> ResponseReceived | None:
    """Read a result written in a usual order, without building its envelope; else None."""
    text = _text(frame, limits)
    head = _ID_FIRST(text)
    if head is None and not text.startswith(_RESULT_FIRST):
        return None
    try:
        result, end = _scan(text, len(_RESULT_FIRST) if head is None else head.end())
    except (ValueError, RecursionError, StopIteration) as error:
        raise _not_json(error) from None
    # nothing else stands in the envelope: three members, so none of them twice
    if head is None:
        head = _ID_LAST(text, end)
    elif end + 1 != len(text) or text[end] != "}":
        head = None
    if head is None:
        return None
    if b"\\" in frame:  # most have not even that
        result = _without_surrogates(frame, result)
    return ResponseReceived(int(head[1]), result)


def _text(frame: bytes, limits: ClientLimits) -> str:
    if len(frame) > limits.frame_bytes_max:
        raise RemoteProtocolError("a frame is over the bound of bytes", stage="receive")
    opened = frame.count(b"{") + frame.count(b"[")
    marks_max = limits.frame_marks_max
    # only a large frame can hold so many, and texts alone may: then they are told apart
    many = len(frame) > marks_max and (
        2 * opened + frame.count(b",") + frame.count(b":") > marks_max
    )
    if many or opened > limits.nesting_depth_max:
        _check_structure(frame, limits)
    try:
        return frame.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError("a frame is not UTF-8", stage="receive") from None


def _check_structure(frame: bytes, limits: ClientLimits) -> None:
    """Count brackets, commas and colons, and take out the innermost brackets layer by layer.

    All of it at the speed of C, and with less memory than the frame has.
    """
    marks = bytearray()
    for piece in _outside_of_texts(frame):
        marks += piece
        if len(marks) > limits.frame_marks_max:
            raise RemoteProtocolError("a frame holds too many values", stage="receive")
    brackets = bytes(marks).translate(_SAME_BRACKETS, b",:")
    for _ in range(limits.nesting_depth_max):
        fewer = brackets.replace(b"{}", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    if brackets:
        raise RemoteProtocolError("a frame is nested too deeply or unbalanced", stage="receive")


def _outside_of_texts(frame: bytes) -> Iterator[bytes]:
    """Yield the brackets, commas and colons of a JSON text that are not within its texts."""
    at = outside = 0
    while at < len(frame):
        start, at = at, _PIECE(frame, at).end()
        marks = frame[start:at]
        # once escapes are gone, every other piece between quotes is outside; what is between two
        # that stand side by side is nothing
        if b"\\" in marks:  # to look for two bytes takes as long as all the rest
            marks = marks.replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = marks.translate(None, _NO_MARKS).replace(b'""', b"").split(b'"')
        yield b"".join(pieces[outside::2])
        outside ^= 1 - len(pieces) % 2


def _members(text: str, at: int) -> tuple[dict[str, object], int]:
    """Read the members of an object from behind its brace; return where it ends."""
    members: dict[str, object] = {}
    at = _BLANKS(text, at).end()
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError("not JSON")
        name, at = _raw_decode(text, at)
        colon = _COLON(text, at)
        if colon is None:
            raise ValueError("not JSON")
        if name in members:
            raise ValueError("a member of the envelope is given twice")
        members[name], at = _raw_decode(text, colon.end())
        separator = _NEXT(text, at)
        if separator is None:
            raise ValueError("not JSON")
        at = separator.end()
        if separator[1] == "}":
            return members, at


def _without_surrogates(frame: bytes, value: object) -> object:
    # a surrogate can only come out of an escape: UTF-8 has none
    # one byte is found many times faster than two, and most frames have not even that one
    if b"\\" not in frame or (b"\\ud" not in frame and b"\\uD" not in frame):
        return value
    text = "".join(_pieces(value, 0))
    try:
        text.encode()
    except UnicodeEncodeError:
        return _raw_decode(_SURROGATES("\ufffd", text), 0)[0]
    return value


def _id_at_the_ends(frame: bytes) -> int | None:
    """Return the id of an answer that cannot be read, where servers write it: it fails at once.

    It is a guess, and harms nobody: a server can spoil its own answers in any way it likes.
    """
    head = _ANSWER_HEAD(frame)
    tail = None if head is None or head[1] or head[2] else _ANSWER_TAIL(frame[-ENDS_BYTES:])
    digits = b"" if head is None else head[1] or head[2] or (tail[1] if tail else b"")
    return int(digits) if digits else None


def _not_json(error: Exception) -> RemoteProtocolError:
    # the reader's own errors are of no use to anybody; the others are ours
    ours = not isinstance(error, json.JSONDecodeError | RecursionError | StopIteration)
    return RemoteProtocolError(str(error) if ours else "not JSON", stage="receive")


# ---------------------------------------------------------------------------------- classifying


def _classify_call(message: Mapping[str, object]) -> Message:
    method = message["method"]
    if not isinstance(method, str) or "result" in message or "error" in message:
        return PeerViolation(kind=Violation.MALFORMED, detail="a method is a text, and no answer")
    params = as_object(message.get("params", _NOTHING))
    if params is None:
        return PeerViolation(kind=Violation.MALFORMED, detail="params are an object")
    if "id" not in message:
        return NotificationReceived(method, params)
    request_id = message["id"]
    if not _is_id(request_id):
        return PeerViolation(kind=Violation.MALFORMED, detail="an id is an integer or a string")
    return RequestReceived(request_id=request_id, method=method, params=params)


def _classify_error(message: Mapping[str, object]) -> Message:
    if "result" in message:
        return _malformed("both a result and an error", message)
    error = as_object(message["error"])
    if error is None:
        return _malformed("an error is an object", message)
    code, text = error.get("code"), error.get("message")
    if type(code) is not int or not isinstance(text, str):
        return _malformed("an error has an integer code and a message", message)
    # without an id it is about a request that the server could not read
    request_id = message.get("id")
    if "id" in message and not _is_id(request_id):
        return _malformed("the id of a response is an integer or a string", message)
    return ErrorReceived(
        request_id=request_id if _is_id(request_id) else None,
        code=code,
        message=text,
        data=error.get("data"),
    )


def _is_id(value: object) -> TypeGuard[RequestId]:
    if type(value) is int:
        return True
    return isinstance(value, str) and len(value) <= ID_CHARS_MAX


def _malformed(detail: str, message: Mapping[str, object]) -> PeerViolation:
    """Name the request that the message would have answered: that one fails, no other."""
    request_id = None if "method" in message else message.get("id")
    return PeerViolation(
        kind=Violation.MALFORMED,
        detail=detail,
        request_id=request_id if _is_id(request_id) else None,
    )


_NOTHING: Final[Mapping[str, object]] = {}


# ------------------------------------------------------------------------------------- encoding


def _writer() -> Callable[[object, int], Iterable[str]]:
    """Return what writes the pieces of a canonical text of a value, which begins at depth 0."""
    encoder = json.JSONEncoder(
        ensure_ascii=False,
        check_circular=False,  # what is bounded in depth does not hold itself
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    # JSONEncoder.encode makes one of these for each value, which costs more than a small value
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without it
        return lambda value, _depth: (encoder.encode(value),)
    return make(
        markers=None,
        default=encoder.default,
        encoder=json.encoder.encode_basestring,
        indent=None,
        key_separator=":",
        item_separator=",",
        sort_keys=True,
        skipkeys=False,
        allow_nan=False,
    )


_pieces: Final = _writer()

_INT_MAX: Final = 10**DIGITS_MAX - 1
_INT_MIN: Final = 1 - 10 ** (DIGITS_MAX - 1)
_LEAVES: Final = frozenset({str, bool, float, type(None)})
_ONLY_TEXT: Final = frozenset({str})


def _check_encodable(value: object, depth_max: int) -> None:
    """Look through a value level by level: the encoder would write int keys and deep cycles."""
    level: list[object] = [value]
    depth = 0
    while level:
        below: list[object] = []
        for item in level:
            children = _children(item)
            if children is None:
                continue
            if depth >= depth_max:
                raise LocalProtocolError(
                    f"arrays and objects are nested more than {depth_max} deep", stage="send"
                )
            # nearly all that is in nearly all arguments is let through right here
            below += [
                child
                for child in children
                if (kind := type(child)) not in _LEAVES
                and not (kind is int and _INT_MIN <= child <= _INT_MAX)  # pyright: ignore[reportOperatorIssue]
            ]
        level = below
        depth += 1


def _children(item: object) -> Iterable[object] | None:
    """Return what is in an array or object, None for what holds nothing; raise if it is no JSON."""
    if isinstance(item, dict):
        members = cast("dict[object, object]", item)
        if not _ONLY_TEXT.issuperset(map(type, members)):
            for key in members:
                if not isinstance(key, str):
                    raise LocalProtocolError(
                        f"a key is of type {type(key).__name__}; JSON has only text", stage="send"
                    )
        return members.values()
    if isinstance(item, list | tuple):
        return cast("Iterable[object]", item)
    if isinstance(item, str | float) or item is None:
        return None
    if isinstance(item, int):
        if not _INT_MIN <= item <= _INT_MAX:
            raise LocalProtocolError("an integer has too many digits", stage="send")
        return None
    raise LocalProtocolError(f"a value of type {type(item).__name__} is not JSON", stage="send")
