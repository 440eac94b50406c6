"""Reads the log of a run: verifies it, filters it, shows it to people. Writes nothing."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from orchestrator.audit.chain import BadReason, Head, Verification, verify
from orchestrator.audit.log import CHECKPOINT_RECORDS, head_path, segment_path
from orchestrator.audit.record import RECORD_BYTES_MAX, BadRecordError, Record, decode
from orchestrator.audit.signing import is_signed_by
from orchestrator.core.display import safe_line
from orchestrator.core.documents import read_json

__all__ = [
    "as_json",
    "log_lines",
    "read_head",
    "read_records",
    "render",
    "select",
    "tail",
    "verify_file",
]

_VALUE_CHARS: Final = 256
"""Of one value on a line for a person; the line for a machine has all of it."""
_BARE: Final = re.compile(r'[^\s"\\\[{][^\s"\\]*')


def verify_file(path: Path, key: str = "", *, demanded: bool = False) -> Verification:
    """Verify a log, all its parts, against its last checkpoint where there is one.

    With `key`, a public key in hexadecimal, that checkpoint has to be signed by it; a signature that
    is there has to be good in any case. A log that goes on beyond its first checkpoint, or came to
    its end, has one; with `demanded` any log has. Raises OSError, ConfigError.
    """
    # the head first: a log that is still being written only grows beyond it
    head = read_head(path)
    found = verify(log_lines(path), head)
    if head is None:
        has_one = demanded or found.complete or found.records > CHECKPOINT_RECORDS
        if not (found.ok and key and has_one):
            return found
        return replace(
            found,
            ok=False,
            first_bad=found.records,
            reason=BadReason.BAD_SIGNATURE,
            detail="its checkpoint is not there any more: what stood behind this record may be gone",
        )
    if not (key or head.signature):
        return found
    if is_signed_by(head, found.run, key or head.key):
        return found
    return replace(
        found,
        ok=False,
        first_bad=head.size,
        reason=BadReason.BAD_SIGNATURE,
        detail="the checkpoint at this record is not signed by the key that it has to be signed by",
    )


def log_lines(path: Path) -> Iterator[bytes]:
    """Go through the lines of a log, part after part; see `verify`. Raises OSError."""
    number = 0
    part = path
    while True:
        with part.open("rb") as file:
            yield from _lines(file)
        number += 1
        part = segment_path(path, number)
        if not part.exists():
            return


def read_head(path: Path) -> Head | None:
    """Return the last checkpoint of a log; None if there was none. Raises OSError, ConfigError."""
    head = head_path(path)
    try:
        with head.open("rb") as file:
            text = file.read(RECORD_BYTES_MAX)
    except FileNotFoundError:
        return None
    table = read_json(text, str(head)).table()
    table.only({"seq", "hash", "root", "key", "signature"})
    signed = {name: table.text(name) for name in ("root", "key", "signature") if name in table}
    return Head(table.integer("seq"), table.text("hash"), **signed)


def read_records(path: Path) -> Iterator[Record]:
    """Go through the records of a log; an unfinished last line is left out.

    Each record's own hash is checked, the chain is not: that is `verify_file`'s. Raises
    BadRecordError at the first line that is no record, and OSError.
    """
    for line in log_lines(path):
        if line.endswith(b"\n"):
            yield decode(line[:-1])
        elif len(line) >= RECORD_BYTES_MAX:
            raise BadRecordError("longer than any record")


def select(
    records: Iterable[Record],
    *,
    kinds: Collection[str] = (),
    agent: str = "",
    server: str = "",
    call: str = "",
) -> Iterator[Record]:
    """Keep the records that have all that is asked for. Nothing asked for keeps everything."""
    wanted = {name: value for name, value in _named(agent, server, call) if value}
    for record in records:
        if kinds and record.kind not in kinds:
            continue
        if all(record.fields.get(name) == value for name, value in wanted.items()):
            yield record


def tail(records: Iterable[Record], count: int) -> tuple[Record, ...]:
    """Return the last `count` records."""
    return tuple(deque(records, maxlen=count))


def render(record: Record) -> str:
    """Return one line for a person: time in UTC, number, kind, fields. Safe for a terminal."""
    moment = datetime.fromtimestamp(record.time, UTC)
    fields = "".join(f" {_label(name)}={_plain(value)}" for name, value in record.fields.items())
    when = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{when} #{record.seq} {safe_line(record.kind)}{fields}"


def as_json(record: Record) -> str:
    """Return one line for a machine: the record as a JSON object, in ASCII."""
    own = {"seq": record.seq, "time": record.time, "kind": record.kind}
    links = {"prev": record.prev, "hash": record.hash}
    return json.dumps({**own, **record.fields, **links}, separators=(",", ":"))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines, each cut at one past the longest record: a cut one has no newline, or is no record."""
    while line := file.readline(RECORD_BYTES_MAX + 1):
        yield line


def _named(agent: str, server: str, call: str) -> tuple[tuple[str, str], ...]:
    return (("agent", agent), ("server", server), ("call", call))


def _label(name: str) -> str:
    return safe_line(name, reveal=True, chars_max=64)


def _plain(value: object) -> str:
    """Return a value so that it can be told from what follows: a bare word, or JSON."""
    if not isinstance(value, str):
        text = json.dumps(value, separators=(",", ":"))
        if safe_line(text, reveal=True, chars_max=_VALUE_CHARS) == text:
            return text
        value = text
    shown = safe_line(value, reveal=True, chars_max=_VALUE_CHARS)
    return shown if _BARE.fullmatch(shown) else json.dumps(shown, ensure_ascii=False)
