from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import pytest
from hypothesis import assume, given, strategies as st

from orchestrator.audit.chain import BadReason, Chain, Head, verify


def linked(chain: Chain, kind: str, time: float, fields: Mapping[str, object]) -> bytes:
    return chain.link([chain.begin(kind, time, fields)])[0]


def _log(records: int = 12, run: str = "r1") -> list[bytes]:
    chain = Chain()
    lines = [linked(chain, "log_opened", 1.0, Chain.opening(run))]
    for number in range(1, records - 1):
        kind = ("decision", "sent", "answered")[number % 3]
        fields = {"agent": "historian", "call": f"c{number}", "server": "git"}
        lines.append(linked(chain, kind, 1.0 + number, fields))
    lines.append(linked(chain, "run_ended", 99.0, {"status": "ok"}))
    return lines


LOG = _log()
HEAD = verify(LOG).head
WHOLE = b"".join(LOG)


def _verify(data: bytes, checkpoint: Head | None = HEAD) -> bool:
    found = verify(data.splitlines(keepends=True), checkpoint)
    return found.ok and not found.torn_tail


def test_an_untouched_log_verifies() -> None:
    found = verify(LOG, HEAD)

    assert (found.ok, found.records, found.run) == (True, 12, "r1")
    assert (found.complete, found.torn_tail, found.first_bad) == (True, False, 0)


@pytest.mark.requirement("I24")
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_any_byte_changed_is_found(at: int, byte: int) -> None:
    assume(WHOLE[at] != byte)

    assert not _verify(WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :])


@pytest.mark.requirement("I24")
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 2_000))
def test_any_bytes_dropped_are_found(at: int, count: int) -> None:
    assert not _verify(WHOLE[:at] + WHOLE[at + count :])


@pytest.mark.requirement("I24")
@given(st.integers(0, len(WHOLE)), st.binary(min_size=1, max_size=40))
def test_any_bytes_put_in_are_found(at: int, extra: bytes) -> None:
    assume(at < len(WHOLE))

    assert not _verify(WHOLE[:at] + extra + WHOLE[at:])


@pytest.mark.requirement("I24")
@given(st.permutations(range(len(LOG))))
def test_any_other_order_is_found(order: list[int]) -> None:
    assume(order != sorted(order))

    assert not _verify(b"".join(LOG[index] for index in order))


@pytest.mark.requirement("I24")
@given(st.sets(st.integers(0, len(LOG) - 1), min_size=1))
def test_any_records_dropped_are_found(gone: set[int]) -> None:
    assert not _verify(b"".join(line for index, line in enumerate(LOG) if index not in gone))


@pytest.mark.requirement("I24")
@given(st.integers(0, len(LOG) - 1), st.integers(0, len(LOG)))
def test_any_record_repeated_is_found(which: int, at: int) -> None:
    assert not _verify(b"".join([*LOG[:at], LOG[which], *LOG[at:]]))


@pytest.mark.requirement("I24")
@given(st.integers(0, len(LOG) - 1))
def test_a_record_of_another_run_is_found(which: int) -> None:
    other = _log(run="r2")

    assert not _verify(b"".join([*LOG[:which], other[which], *LOG[which + 1 :]]))


def _sealed(line: bytes) -> bytes:
    """Give an edited line a hash that fits it, as somebody who knows the format would."""
    body = line[: line.rindex(b',"hash":')]
    return body + b',"hash":"' + sha256(body).hexdigest().encode() + b'"}\n'


@pytest.mark.requirement("I24")
@pytest.mark.parametrize("which", range(12))
def test_an_edit_with_a_new_hash_is_found_by_what_follows_or_by_the_checkpoint(which: int) -> None:
    edited = _sealed(LOG[which].replace(b'"time":', b'"time":4'))

    found = verify([*LOG[:which], edited, *LOG[which + 1 :]], HEAD)

    at_end = which == len(LOG) - 1
    assert not found.ok
    assert found.first_bad == (which + 1 if at_end else which + 2)
    assert found.reason is (BadReason.OTHER_CHAIN if at_end else BadReason.BROKEN_LINK)


@pytest.mark.requirement("I24")
@pytest.mark.parametrize("kept", range(12))
def test_records_taken_from_the_end_are_found_behind_a_checkpoint(kept: int) -> None:
    found = verify(LOG[:kept], HEAD)

    assert (found.ok, found.reason, found.records) == (False, BadReason.CUT_SHORT, kept)


def test_records_taken_from_the_end_without_a_checkpoint_leave_an_incomplete_log() -> None:
    found = verify(LOG[:-1])

    assert (found.ok, found.complete) == (True, False)


def test_a_log_that_grew_since_its_checkpoint_verifies() -> None:
    assert verify(LOG, verify(LOG[:5]).head).ok


@pytest.mark.parametrize("cut", [1, 40, len(LOG[-1]) - 1])
def test_an_unfinished_last_line_is_told_apart_from_damage(cut: int) -> None:
    found = verify([*LOG[:-1], LOG[-1][:cut]], verify(LOG[:-1]).head)

    assert (found.ok, found.torn_tail, found.records) == (True, True, 11)
    assert not found.complete


def test_a_log_of_which_nothing_was_written_yet_is_torn_and_not_wrong() -> None:
    found = verify([])

    assert (found.ok, found.torn_tail, found.records, found.head) == (
        True,
        True,
        0,
        Head(-1, "0" * 64),
    )


def test_an_unfinished_line_behind_a_checkpoint_is_damage() -> None:
    assert verify([*LOG[:-1], LOG[-1][:-1]], HEAD).reason is BadReason.CUT_SHORT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"log_opened", b"run_started"),
        (b"remit-audit/1", b"remit-audit/2"),
        (b'"seq":0', b'"seq":1'),
        (b'"prev":"0', b'"prev":"1'),
    ],
)
def test_a_log_must_begin_at_the_beginning(old: bytes, new: bytes) -> None:
    found = verify([_sealed(LOG[0].replace(old, new)), *LOG[1:]])

    assert (found.first_bad, found.reason) == (1, BadReason.BAD_START)


def test_the_report_names_the_line_and_shows_nothing_of_it() -> None:
    found = verify([*LOG[:3], b'{"evil": "\x1b[31m"}\n', *LOG[3:]])

    assert (found.first_bad, found.records, found.reason) == (4, 3, BadReason.NOT_A_RECORD)
    assert "evil" not in found.detail


def test_records_are_begun_in_any_number_before_they_are_linked() -> None:
    chain = Chain()
    begun = [chain.begin("log_opened", 1.0, Chain.opening("r1"))]
    begun += [chain.begin("sent", 2.0, {"call": str(number)}) for number in range(3)]
    assert chain.head == Head(-1, "0" * 64)

    lines, hashes = chain.link(begun)

    assert verify(lines.splitlines(keepends=True)).ok
    assert chain.head == Head(3, hashes[-1])
    assert chain.link([]) == (b"", [])
    assert chain.head == Head(3, hashes[-1])


def test_a_record_that_is_refused_leaves_the_chain_as_it_was() -> None:
    chain = Chain()
    lines = [linked(chain, "log_opened", 1.0, Chain.opening("r1"))]
    with pytest.raises(ValueError, match="belong to the log"):
        linked(chain, "sent", 1.0, {"hash": ""})
    lines.append(linked(chain, "sent", 1.0, {}))

    assert verify(lines).ok
