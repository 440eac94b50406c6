"""The form of one audit record: fields in, one line of bytes out, and back. No chain, no file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from orchestrator.audit.forms import FilledRecord, check_names
from orchestrator.core.documents import read_bounded, read_json
from orchestrator.core.errors import ConfigError

__all__ = [
    "CHAIN_START",
    "FORMAT",
    "LINK_BYTES",
    "RECORD_BYTES_MAX",
    "BadRecordError",
    "Record",
    "begin",
    "chained",
    "decode",
    "encode",
    "hash_of",
    "reread",
]

FORMAT: Final = "remit-audit/1"
"""Named in the first record of each log."""
CHAIN_START: Final = "0" * 64
"""What the first record names as the hash before it."""
RECORD_BYTES_MAX: Final = 64 * 1024
"""One line. Records hold names, digests and counts; never content."""

_TIME_MAX: Final = 253_402_300_800
"""The year 10000."""
_DEPTH_SURE: Final = 24
"""A record with fewer opening brackets cannot be too deep to be read back."""
_HASH_TAIL: Final = len(',"hash":"') + 64 + len('"}')
LINK_BYTES: Final = len(',"prev":"') + 64 + len('"') + _HASH_TAIL + len("\n")
"""What a line has behind that with which its record was begun."""
_encode_fields: Final = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


class BadRecordError(ValueError):
    """A line that is not a whole, untouched record. The message says why; never shows the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record that was read. `time` is seconds since 1970-01-01 UTC, by the writer's clock."""

    seq: int
    time: float
    kind: str
    fields: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    prev: str
    hash: str


def encode(
    seq: int, time: float, kind: str, fields: Mapping[str, object], prev: str
) -> tuple[bytes, str]:
    """Return the line of one record, its newline included, and the record's hash.

    The line is ASCII: nothing in it moves a terminal. The hash is over all of the line before it.
    Raises ValueError as `begin`.
    """
    line, (digest,) = chained([begin(seq, time, kind, fields)], prev)
    return line, digest


def begin(seq: int, time: float, kind: str, fields: Mapping[str, object]) -> str:
    """Return what the line of a record says before it is chained to the one before it.

    Raises ValueError for a kind that is not a plain word, a reserved field, a value that JSON does
    not have, and past the bounds of size and depth: what `decode` would refuse is never written.
    """
    if type(fields) is FilledRecord and fields.form.kind == kind:  # most records
        return _within_bound(f'{{"seq":{seq},"time":{time:.6f}{fields.written()}', kind)
    members = _written(kind, fields)
    text = _within_bound(f'{{"seq":{seq},"time":{time:.6f}{members}', kind)
    if members.count("{") + members.count("[") > _DEPTH_SURE:
        decode(chained([text], CHAIN_START)[0][:-1])
    return text


def chained(texts: Iterable[str], prev: str) -> tuple[bytes, list[str]]:
    """Return the lines of the records that were begun with these texts, and the hash of each."""
    pieces: list[str] = []
    hashes: list[str] = []
    for text in texts:
        body = f'{text},"prev":"{prev}"'
        prev = sha256(body.encode("ascii")).hexdigest()
        pieces += (body, ',"hash":"', prev, '"}\n')
        hashes.append(prev)
    return "".join(pieces).encode("ascii"), hashes


def _within_bound(text: str, kind: str) -> str:
    if len(text) + LINK_BYTES > RECORD_BYTES_MAX:
        raise ValueError(f"a record of kind {kind} would have {len(text) + LINK_BYTES} bytes")
    return text


def _written(kind: str, fields: Mapping[str, object]) -> str:
    """Return the kind and the fields of a record as they stand in its line."""
    check_names(kind, fields)
    try:
        inside = _encode_fields(dict(fields))[1:-1]
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value in a record of kind {kind}") from error
    return f',"kind":"{kind}",{inside}' if inside else f',"kind":"{kind}"'


def hash_of(line: bytes) -> str:
    """Return the hash that a whole line, without its newline, ought to carry."""
    return sha256(line[:-_HASH_TAIL]).hexdigest()


def reread(line: bytes, seq: int, prev: str) -> Record:
    """Read a whole line, its newline included, that most likely is record `seq` after `prev`.

    What stands in its place as it was written is read at the speed of C; anything else, and whatever
    could have two meanings, goes to `decode`. Raises BadRecordError as that does.
    """
    end = len(line) - 1 - _HASH_TAIL
    body = line[:end]
    digest = sha256(body).hexdigest()
    if not (
        0 < end < RECORD_BYTES_MAX - _HASH_TAIL
        and line[end:] == b',"hash":"%b"}\n' % digest.encode("ascii")
        and body.startswith(b'{"seq":%d,"time":' % seq)
        and body.endswith(b',"prev":"%b"' % prev.encode("ascii"))
        and _named_once(body)
        and body.count(b"{") + body.count(b"[") <= _DEPTH_SURE
    ):
        return decode(line[:-1])
    try:
        values = read_bounded(line.decode("ascii"))
    except ValueError:
        return decode(line[:-1])
    time, kind = values.pop("time"), values.pop("kind")
    if not (type(time) is float and 0 <= time < _TIME_MAX and type(kind) is str):
        return decode(line[:-1])
    for name in ("seq", "prev", "hash"):
        del values[name]
    return Record(
        seq=seq,
        time=time,
        kind=kind,
        fields=MappingProxyType(values),
        prev=prev,
        hash=digest,
    )


def _named_once(body: bytes) -> bool:
    """Tell whether no field of the log's own can be meant twice. The last of two would count."""
    return (
        body.count(b'"seq":') == 1
        and body.count(b'"time":') == 1
        and body.count(b'"kind":') == 1
        and body.count(b'"prev":') == 1
        and b'"hash":' not in body
    )


def decode(line: bytes) -> Record:
    """Read one whole line, without its newline, and check its own hash. Raises BadRecordError."""
    if len(line) >= RECORD_BYTES_MAX:
        raise BadRecordError("longer than any record")
    try:
        values = dict(read_json(line, "record").root)
    except ConfigError as error:
        raise BadRecordError("not a JSON object") from error
    seq, time, kind = values.pop("seq", None), values.pop("time", None), values.pop("kind", None)
    prev, digest = values.pop("prev", None), values.pop("hash", None)
    if type(seq) is not int or not isinstance(time, int | float) or not isinstance(kind, str):
        raise BadRecordError("without seq, time or kind")
    if not 0 <= time < _TIME_MAX:
        raise BadRecordError("with a time that no clock shows")
    if not isinstance(prev, str) or not isinstance(digest, str):
        raise BadRecordError("without its hash or the one before it")
    if not line.endswith(f',"hash":"{digest}"}}'.encode()) or hash_of(line) != digest:
        raise BadRecordError("not as it was written: its hash does not match")
    return Record(
        seq=seq,
        time=float(time),
        kind=kind,
        fields=MappingProxyType(values),
        prev=prev,
        hash=digest,
    )
