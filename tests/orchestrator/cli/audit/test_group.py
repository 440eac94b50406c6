from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.audit.chain import Chain
from orchestrator.audit.record import BadRecordError, Record
from orchestrator.cli.logs import follow_records
from tests.orchestrator.cli.running import Remit


def log_lines(*kinds: str, run: str = "r1") -> list[bytes]:
    chain = Chain()
    begun = [chain.begin("log_opened", 0.0, Chain.opening(run))]
    begun += [chain.begin(kind, 1.0, {"agent": "a"}) for kind in kinds]
    return chain.link(begun)[0].splitlines(keepends=True)


WriteLog = Callable[..., Path]


@pytest.fixture
def write_log(home: Path) -> WriteLog:
    def write(run: str, lines: list[bytes]) -> Path:
        path = home / "state" / "runs" / run / "audit.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines))
        return path

    return write


def test_a_whole_log_verifies(remit: Remit, write_log: WriteLog):
    write_log("r1", log_lines("run_started", "run_ended"))

    ended = remit("audit", "verify", "r1")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("ok: 3 records of run r1, up to ")


def test_the_newest_run_is_taken_by_default(remit: Remit, write_log: WriteLog):
    newest = write_log("r1", log_lines())
    older = write_log("r2", log_lines())
    os.utime(older, (1, 1))

    assert remit("audit", "verify", "--json").json["path"] == str(newest)


@pytest.mark.parametrize("folder", [False, True])
def test_a_log_is_named_by_its_file_or_its_folder(remit: Remit, write_log: WriteLog, folder: bool):
    path = write_log("r1", log_lines())
    named = path.parent if folder else path

    assert remit("audit", "verify", str(named), "--json").json["path"] == str(path)


def test_an_edited_record_is_found_with_its_line(remit: Remit, write_log: WriteLog):
    lines = log_lines("run_started", "run_ended")
    lines[1] = lines[1].replace(b'"agent":"a"', b'"agent":"b"')
    write_log("r1", lines)

    ended = remit("audit", "verify")

    assert ended.code == 1
    assert ended.out.startswith("bad: line 2: not_a_record: ")


def test_a_dropped_record_is_found(remit: Remit, write_log: WriteLog):
    lines = log_lines("run_started", "run_ended")
    write_log("r1", [lines[0], lines[2]])

    ended = remit("audit", "verify", "--json")

    assert ended.code == 1
    assert (ended.json["ok"], ended.json["first_bad"]) == (False, 2)


def test_a_torn_tail_is_told_and_no_error(remit: Remit, write_log: WriteLog):
    lines = log_lines("run_started")
    write_log("r1", [*lines, b'{"seq":2'])

    ended = remit("audit", "verify")

    assert ended.code == 0
    assert "the last line is not finished" in ended.out


def test_a_run_that_is_not_there_is_an_error_with_the_nearest(remit: Remit, write_log: WriteLog):
    write_log("r123456", log_lines())

    ended = remit("audit", "verify", "r123457")

    assert ended.code == 2
    assert ended.err.startswith("E-AUDIT-NO-LOG: ")
    assert "did you mean 'r123456'?" in ended.err


def test_without_any_run_it_says_how_to_make_one(remit: Remit):
    ended = remit("audit", "verify")

    assert ended.code == 2
    assert "`remit demo` makes one" in ended.err


def test_a_run_cannot_be_named_out_of_its_folder(remit: Remit):
    assert remit("audit", "verify", "..").code == 2


def test_the_last_records_are_printed_one_a_line(remit: Remit, write_log: WriteLog):
    write_log("r1", log_lines("run_started", "agent_started", "run_ended"))

    ended = remit("audit", "tail", "-n", "2")

    assert [line.split()[1:3] for line in ended.out.splitlines()] == [
        ["#2", "agent_started"],
        ["#3", "run_ended"],
    ]


def test_records_are_printed_as_objects_for_machines(remit: Remit, write_log: WriteLog):
    write_log("r1", log_lines("run_ended"))

    ended = remit("audit", "tail", "-n", "1", "--json")

    assert ended.json["kind"] == "run_ended"


def test_a_line_that_is_no_record_ends_the_tail(remit: Remit, write_log: WriteLog):
    write_log("r1", [*log_lines(), b"nonsense\n"])

    ended = remit("audit", "tail")

    assert ended.code == 1
    assert ended.err.startswith("E-AUDIT-BAD-RECORD: ")


def test_nothing_in_a_record_moves_the_terminal(remit: Remit, write_log: WriteLog):
    chain = Chain()
    begun = [
        chain.begin("log_opened", 0.0, Chain.opening("r1")),
        chain.begin("agent_started", 0.0, {"agent": "a\x1b[2J\u202eb"}),
    ]
    write_log("r1", [chain.link(begun)[0]])

    ended = remit("audit", "tail")

    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert "agent=a<U+001B>[2J<U+202E>b" in ended.out


def test_following_ends_with_the_run(remit: Remit, write_log: WriteLog):
    write_log("r1", log_lines("run_started", "run_ended"))

    ended = remit("audit", "tail", "--follow")

    assert ended.code == 0
    assert len(ended.out.splitlines()) == 3


def test_following_yields_what_is_written_later_however_it_is_cut(tmp_path: Path):
    lines = log_lines("run_started", "agent_started", "run_ended")
    later = b"".join(lines[1:])
    path = tmp_path / "audit.jsonl"
    path.write_bytes(lines[0])
    pieces = [later[at : at + 37] for at in range(0, len(later), 37)]

    def write_more() -> None:
        with path.open("ab") as file:
            file.write(pieces.pop(0))

    found = [record.seq for record in follow_records(path, 10, wait=write_more)]

    assert found == [0, 1, 2, 3]


def test_following_shows_the_last_few_first(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"".join(log_lines("run_started", "agent_started", "run_ended")))

    found: list[Record] = list(follow_records(path, 1, wait=lambda: None))

    assert [record.kind for record in found] == ["run_ended"]


def test_following_does_not_gather_a_line_without_an_end(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"x" * (64 * 1024 + 1))

    with pytest.raises(BadRecordError):
        list(follow_records(path, 1, wait=lambda: None))
