from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from orchestrator.audit.log import AuditLog, head_path
from orchestrator.audit.read import read_records, verify_file
from orchestrator.audit.record import decode
from orchestrator.core.ids import RunId
from orchestrator.core.ports import AuditSink, Clock


@contextmanager
def _files_end_at(size: int) -> Generator[None, None, None]:
    """Let no file of this process grow beyond `size`, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_log_is_an_audit_sink(log: AuditLog) -> None:
    sink: AuditSink = log

    sink.append("sent", {"call": "c1"})
    sink.flush()


def test_a_new_log_names_its_format_and_its_run(log: AuditLog, path: Path) -> None:
    first = next(read_records(path))

    assert (first.kind, dict(first.fields)) == (
        "log_opened",
        {"format": "remit-audit/1", "run": "r1"},
    )
    log.close()


def test_a_log_is_for_its_owner_only(log: AuditLog, path: Path) -> None:
    log.close()

    modes = [stat.S_IMODE(file.stat().st_mode) for file in (path.parent, path, head_path(path))]

    assert modes == [0o700, 0o600, 0o600]


def test_a_log_is_never_taken_up_again(log: AuditLog, path: Path, clock: Clock) -> None:
    log.close()

    with pytest.raises(FileExistsError):
        AuditLog.create(path, RunId("r1"), clock)


def test_a_log_is_not_written_through_a_link(tmp_path: Path, clock: Clock) -> None:
    link = tmp_path / "audit.jsonl"
    link.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileExistsError):
        AuditLog.create(link, RunId("r1"), clock)


def test_an_appended_record_is_in_the_file_only_after_the_flush(log: AuditLog, path: Path) -> None:
    before = path.stat().st_size
    log.append("decision", {"call": "c1"})
    appended = path.stat().st_size
    log.flush()

    assert (appended, path.stat().st_size > before) == (before, True)


def test_records_stand_in_the_order_of_their_appends(log: AuditLog, path: Path) -> None:
    for number in range(50):
        log.append("decision", {"call": number})
        if number % 7 == 0:
            log.flush()
    log.close()

    assert [record.fields.get("call") for record in read_records(path)][1:] == list(range(50))


def test_closing_writes_what_waits_and_keeps_the_head(log: AuditLog, path: Path) -> None:
    log.append("run_ended", {"status": "ok"})
    log.close()

    found = verify_file(path)

    assert (found.ok, found.complete, found.records) == (True, True, 2)


@pytest.mark.requirement("I24")
def test_a_log_cut_behind_its_checkpoint_is_found(log: AuditLog, path: Path) -> None:
    log.append("decision", {"call": "c1"})
    log.close()
    first, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first)

    assert not verify_file(path).ok


def test_closing_twice_is_closing_once(log: AuditLog) -> None:
    log.close()
    log.close()
    log.flush()


@pytest.mark.requirement("I25")
def test_a_record_after_the_close_makes_the_flush_fail_and_never_the_append(log: AuditLog) -> None:
    log.close()
    log.append("revoked", {})

    with pytest.raises(OSError, match="closed"):
        log.flush()


@pytest.mark.requirement("I25")
def test_a_full_disk_stops_the_flush_and_never_the_append(log: AuditLog, path: Path) -> None:
    log.append("decision", {"call": "c1"})

    with _files_end_at(path.stat().st_size + 10):
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            log.flush()
        log.append("revoked", {"call": "c1"})


def test_what_a_full_disk_did_not_take_is_written_when_there_is_room(
    log: AuditLog, path: Path
) -> None:
    log.append("decision", {"call": "c1"})
    with _files_end_at(path.stat().st_size + 10), pytest.raises(OSError, match="File too large"):
        log.flush()
    torn = verify_file(path)
    log.append("decision", {"call": "c2"})
    log.close()

    assert (torn.ok, torn.torn_tail, torn.records) == (True, True, 1)
    assert (verify_file(path).ok, verify_file(path).records) == (True, 3)


def test_a_device_that_is_full_fails_the_flush(tmp_path: Path, clock: Clock) -> None:
    log = AuditLog(os.open("/dev/full", os.O_WRONLY), tmp_path / "audit.jsonl", RunId("r1"), clock)
    log.append("decision", {})

    for _ in range(2):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            log.flush()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        log.close()


def test_an_interrupt_while_the_kernel_takes_nothing_loses_no_record(
    tmp_path: Path, clock: Clock
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    with suppress(BlockingIOError):
        while True:
            filled += os.write(writing, bytes(1))
    os.set_blocking(writing, True)
    log = AuditLog(writing, tmp_path / "audit.jsonl", RunId("r1"), clock)
    log.append("decision", {"call": "c1"})
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            log.flush()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    while filled:
        filled -= len(os.read(reading, filled))
    log.append("decision", {"call": "c2"})
    log.flush()

    lines = os.read(reading, 10_000).splitlines()
    os.close(reading)
    os.close(writing)
    assert [decode(line).fields["call"] for line in lines] == ["c1", "c2"]
    assert decode(lines[1]).prev == decode(lines[0]).hash


def test_past_the_bound_records_are_dropped_aloud(path: Path, clock: Clock) -> None:
    log = AuditLog.create(path, RunId("r1"), clock, buffer_bytes_max=1_000)
    for number in range(100):
        log.append("decision", {"call": number})

    with pytest.raises(OSError, match="could not be kept"):
        log.flush()
    log.append("decision", {"call": "after"})
    log.close()

    records = list(read_records(path))
    kept = [record for record in records if record.kind == "decision"][:-1]
    assert verify_file(path).ok
    assert records[-2].kind == "records_dropped"
    assert records[-2].fields["count"] == 100 - len(kept)
    assert [record.fields["call"] for record in kept] == list(range(len(kept)))


WRITER = """
    import itertools, sys
    from pathlib import Path
    from orchestrator.audit.log import AuditLog

    class Clock:
        def now(self): return 1.0
        def wall(self): return 1.0

    log = AuditLog.create(Path(sys.argv[1]), "r1", Clock())
    for number in itertools.count():
        log.append("decision", {"call": number, "padding": "x" * (number % 900)})
        if number % 16 == 0:
            log.flush()
            print(number, flush=True)
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("lines", [1, 30, 200])
def test_a_killed_writer_leaves_a_log_that_verifies_and_has_all_that_was_flushed(
    path: Path, lines: int
) -> None:
    root = Path(__file__).parents[3]
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={"PYTHONPATH": str(root)},
    )
    with child:
        assert child.stdout is not None
        flushed = [int(child.stdout.readline()) for _ in range(lines)][-1]
        child.send_signal(signal.SIGKILL)

    found = verify_file(path)

    assert found.ok
    assert found.records >= flushed + 2


@pytest.mark.subprocess
def test_a_writer_killed_in_the_middle_of_a_write_leaves_whole_records(path: Path) -> None:
    root = Path(__file__).parents[3]
    script = textwrap.dedent(WRITER).replace(
        "for number",
        "import os; write = os.write\n"
        "os.write = lambda fd, data: (write(fd, data[:100]), os.kill(os.getpid(), 9))\n"
        "for number",
        1,
    )

    subprocess.run(
        [sys.executable, "-c", script, str(path)],
        check=False,
        cwd=root,
        env={"PYTHONPATH": str(root)},
        timeout=20,
        stdout=subprocess.DEVNULL,
    )

    found = verify_file(path)
    assert (found.ok, found.torn_tail, found.records) == (True, True, 1)
