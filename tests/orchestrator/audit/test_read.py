from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from orchestrator.audit.log import AuditLog, head_path
from orchestrator.audit.read import (
    as_json,
    read_head,
    read_records,
    render,
    select,
    tail,
    verify_file,
)
from orchestrator.audit.record import RECORD_BYTES_MAX, BadRecordError, Record
from orchestrator.core.errors import ConfigError


def _record(**fields: object) -> Record:
    return Record(seq=7, time=1_790_000_000.25, kind="sent", fields=fields, prev="p", hash="h")


def test_a_record_is_one_line_for_a_person() -> None:
    line = render(_record(agent="historian", bytes_sent=0, rule='"git read" (x:1)', empty=""))

    assert line == (
        "2026-09-21T14:13:20.250Z #7 sent agent=historian bytes_sent=0 "
        'rule="\\"git read\\" (x:1)" empty=""'
    )


def _values(line: str) -> dict[str, object]:
    """Read a line as somebody would who knows that a value is a bare word or JSON."""
    rest = line.partition(" sent ")[2]
    found: dict[str, object] = {}
    while rest:
        name, _, rest = rest.partition("=")
        if rest[0] in '"[{':
            value, end = json.JSONDecoder().raw_decode(rest)
            found[name], rest = value, rest[end:]
        else:
            found[name], _, rest = rest.partition(" ")
        rest = rest.removeprefix(" ")
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(
            st.text(st.sampled_from(' ="\\[{}]ab:1'), max_size=8),
            st.dictionaries(st.sampled_from("ab"), st.sampled_from(['x" y=1', "z"])),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_value_of_a_line_passes_for_another_field(values: list[object]) -> None:
    fields = {f"f{number}": value for number, value in enumerate(values)}

    read = _values(render(_record(**fields)))

    folded = {
        name: re.sub(" +", " ", value) if isinstance(value, str) else value
        for name, value in fields.items()
    }
    assert read == folded


def test_a_line_for_a_person_has_nothing_that_a_terminal_obeys() -> None:
    line = render(_record(tool="a\x1b[31m\n\u202eb", **{"na\x9bme": {"deep": "\x1b"}}))

    assert line.isascii()
    assert line.isprintable()
    assert 'tool="a<U+001B>[31m <U+202E>b" na<U+009B>me=' in line


def test_a_record_is_one_json_object_for_a_machine() -> None:
    assert json.JSONDecoder().decode(as_json(_record(agent="ä", big=2**60))) == {
        "seq": 7,
        "time": 1_790_000_000.25,
        "kind": "sent",
        "agent": "ä",
        "big": 2**60,
        "prev": "p",
        "hash": "h",
    }


def test_records_are_selected_by_all_that_is_asked_for(log: AuditLog, path: Path) -> None:
    log.append("sent", {"agent": "a", "server": "git", "call": "c1"})
    log.append("sent", {"agent": "b", "server": "git", "call": "c2"})
    log.append("answered", {"agent": "a", "server": "git", "call": "c1"})
    log.close()

    def calls(**asked: str) -> list[object]:
        return [record.seq for record in select(read_records(path), **asked)]

    assert calls() == [0, 1, 2, 3]
    assert calls(agent="a") == [1, 3]
    assert calls(server="git", call="c2") == [2]
    assert calls(agent="a", server="files") == []
    assert [r.seq for r in select(read_records(path), kinds=("answered",), agent="a")] == [3]


def test_the_tail_is_the_end() -> None:
    records = [_record(number=number) for number in range(5)]

    assert tail(records, 2) == tuple(records[3:])


def test_an_unfinished_line_is_left_out(log: AuditLog, path: Path) -> None:
    log.append("sent", {})
    log.close()
    with path.open("ab") as file:
        file.write(b'{"seq":2')

    assert [record.kind for record in read_records(path)] == ["log_opened", "sent"]


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_a_line_longer_than_any_record_is_not_read_whole(
    log: AuditLog, path: Path, ending: bytes
) -> None:
    log.close()
    with path.open("ab") as file:
        file.write(b"x" * (3 * RECORD_BYTES_MAX) + ending)

    with pytest.raises(BadRecordError):
        list(read_records(path))
    assert not verify_file(path).ok


def test_a_log_without_a_checkpoint_has_no_head(log: AuditLog, path: Path) -> None:
    assert read_head(path) is None
    assert verify_file(path).ok
    log.close()


def test_the_head_is_that_of_the_last_checkpoint(log: AuditLog, path: Path) -> None:
    log.append("sent", {})
    head = log.checkpoint()
    log.append("answered", {})
    log.flush()

    assert (read_head(path), head.seq) == (head, 1)
    assert (verify_file(path).ok, verify_file(path).head.seq) == (True, 2)
    log.close()


def test_a_head_that_is_no_head_is_an_error_and_not_ignored(log: AuditLog, path: Path) -> None:
    log.close()
    head_path(path).write_text("{}")

    with pytest.raises(ConfigError):
        verify_file(path)
