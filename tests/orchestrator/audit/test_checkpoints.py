"""Checkpoints: signed, made in between, found to be another's; logs in parts; proofs of one record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.audit.chain import BadReason, Head
from orchestrator.audit.log import (
    CHECKPOINT_RECORDS,
    CHECKPOINT_SECONDS,
    AuditLog,
    head_path,
    segment_path,
)
from orchestrator.audit.proof import Proof, prove
from orchestrator.audit.read import log_lines, read_head, read_records, verify_file
from orchestrator.audit.signing import Signer, is_signed_by
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import RunId
from tests.orchestrator.audit.conftest import StepClock


class SlowClock(StepClock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = 0.0

    def wall(self) -> float:
        return super().wall() + self.moved


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """A key of its own."""
    return Signer(tmp_path / "state" / "audit-signing.key")


@pytest.fixture
def signed(path: Path, signer: Signer) -> Path:
    """A log of fifty records whose end is signed."""
    with AuditLog.create(path, RunId("r1"), StepClock(), signer=signer) as log:
        fill(log, 49)
    return path


def fill(log: AuditLog, count: int) -> None:
    for number in range(count):
        log.append("decision", {"call": f"c{number}", "agent": "a"})
    log.flush()


def head_of(path: Path) -> Head:
    head = read_head(path)
    assert head is not None
    return head


# ------------------------------------------------------------------------------------- signatures


def test_the_end_of_a_log_is_signed_by_the_key_of_the_state_folder(
    signed: Path, signer: Signer
) -> None:
    found = verify_file(signed, signer.public_key())

    assert (found.ok, found.records, found.checkpoint) == (True, 50, head_of(signed))
    assert found.head.root == head_of(signed).root


@pytest.mark.requirement("I24")
def test_a_log_that_was_written_anew_and_signed_by_another_key_is_found(
    signed: Path, signer: Signer, tmp_path: Path
) -> None:
    forged = tmp_path / "forged" / "audit.jsonl"
    other = Signer(tmp_path / "other.key")
    with AuditLog.create(forged, RunId("r1"), StepClock(), signer=other) as log:
        fill(log, 10)

    assert verify_file(forged).ok
    found = verify_file(forged, signer.public_key())
    assert (found.ok, found.reason) == (False, BadReason.BAD_SIGNATURE)


@pytest.mark.requirement("I24")
@pytest.mark.parametrize("name", ["root", "signature", "key"])
def test_a_checkpoint_that_was_edited_is_found(signed: Path, name: str) -> None:
    values = json.loads(head_path(signed).read_text())
    values[name] = values[name][:-2] + ("00" if values[name][-2:] != "00" else "11")
    head_path(signed).write_text(json.dumps(values))

    assert not verify_file(signed).ok


@pytest.mark.requirement("I24")
def test_a_checkpoint_without_its_signature_does_not_pass_where_a_key_is_asked_for(
    signed: Path, signer: Signer
) -> None:
    head = head_of(signed)
    head_path(signed).write_text(json.dumps({"seq": head.seq, "hash": head.hash}))

    assert verify_file(signed, signer.public_key()).reason is BadReason.BAD_SIGNATURE


@pytest.mark.requirement("I24")
def test_a_log_whose_checkpoint_is_gone_does_not_pass_where_a_key_is_asked_for(
    signed: Path, signer: Signer
) -> None:
    head_path(signed).unlink()
    lines = signed.read_bytes().splitlines(keepends=True)
    signed.write_bytes(b"".join(lines[:20]))

    assert verify_file(signed).ok
    assert verify_file(signed, signer.public_key()).ok  # killed before there was one, as it seems
    found = verify_file(signed, signer.public_key(), demanded=True)
    assert (found.ok, found.reason, found.first_bad) == (False, BadReason.BAD_SIGNATURE, 20)


@pytest.mark.parametrize("count", [CHECKPOINT_RECORDS - 1, CHECKPOINT_RECORDS])
def test_a_log_that_was_long_enough_for_a_checkpoint_has_one(
    path: Path, signer: Signer, count: int
) -> None:
    with AuditLog.create(path, RunId("r1"), StepClock(), signer=signer) as log:
        fill(log, count)
    head_path(path).unlink()

    assert verify_file(path, signer.public_key()).ok is (count < CHECKPOINT_RECORDS)


def test_a_log_that_came_to_its_end_has_a_checkpoint(path: Path, signer: Signer) -> None:
    with AuditLog.create(path, RunId("r1"), StepClock(), signer=signer) as log:
        log.append("run_ended", {"status": "ok"})
    assert verify_file(path, signer.public_key()).ok
    head_path(path).unlink()

    assert not verify_file(path, signer.public_key()).ok


def test_a_signature_holds_for_one_run_only(signed: Path, signer: Signer) -> None:
    head = head_of(signed)

    assert is_signed_by(head, "r1", signer.public_key())
    assert not is_signed_by(head, "r2", signer.public_key())


@pytest.mark.parametrize("key", ["", "zz", "00" * 31, "00" * 32])
def test_a_key_that_is_none_has_signed_nothing(signed: Path, key: str) -> None:
    assert not is_signed_by(head_of(signed), "r1", key)


def test_a_signing_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "audit-signing.key"
    key.write_bytes(bytes(32))
    key.chmod(0o644)

    with pytest.raises(ConfigError):
        Signer(key).public_key()


# ------------------------------------------------------------------------------------- in between


@pytest.mark.requirement("I24")
def test_a_log_of_a_program_that_was_killed_cannot_be_cut_behind_its_last_checkpoint(
    path: Path, signer: Signer
) -> None:
    log = AuditLog.create(path, RunId("r1"), StepClock(), signer=signer)
    fill(log, CHECKPOINT_RECORDS)  # and never closed

    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))

    assert verify_file(path).reason is BadReason.CUT_SHORT


def test_a_log_that_grows_slowly_has_a_checkpoint_after_a_while(path: Path, signer: Signer) -> None:
    clock = SlowClock()
    log = AuditLog.create(path, RunId("r1"), clock, signer=signer)
    fill(log, 1)
    assert read_head(path) is None
    clock.moved = CHECKPOINT_SECONDS
    fill(log, 1)

    assert head_of(path).size == 3
    log.close()


def test_a_checkpoint_in_between_that_cannot_be_kept_loses_no_record(
    path: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"no key")
    log = AuditLog.create(path, RunId("r1"), StepClock(), signer=Signer(key))
    fill(log, CHECKPOINT_RECORDS + 5)

    assert len(list(read_records(path))) == CHECKPOINT_RECORDS + 6
    with pytest.raises(ConfigError):
        log.close()


# ------------------------------------------------------------------------------------------ parts


@pytest.fixture
def parts(path: Path, signer: Signer) -> Path:
    """A log in several parts."""
    log = AuditLog.create(path, RunId("r1"), StepClock(), signer=signer, segment_bytes_max=2_000)
    for _ in range(6):
        fill(log, 8)
    log.close()
    assert segment_path(path, 2).exists()
    return path


def test_a_log_in_parts_is_one_log(parts: Path) -> None:
    found = verify_file(parts)

    assert (found.ok, found.records) == (True, 49)
    assert [record.seq for record in read_records(parts)] == list(range(49))


def test_every_part_is_for_its_owner_only(parts: Path) -> None:
    assert segment_path(parts, 1).stat().st_mode & 0o077 == 0


@pytest.mark.requirement("I24")
def test_a_part_that_is_missing_is_found(parts: Path) -> None:
    segment_path(parts, 1).unlink()

    assert not verify_file(parts).ok


@pytest.mark.requirement("I24")
def test_parts_that_were_swapped_are_found(parts: Path) -> None:
    first, second = segment_path(parts, 1), segment_path(parts, 2)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)

    assert verify_file(parts).reason is BadReason.BROKEN_LINK


def test_where_no_part_can_be_begun_the_log_goes_on_in_the_last(path: Path) -> None:
    log = AuditLog.create(path, RunId("r1"), StepClock(), segment_bytes_max=500)
    segment_path(path, 1).mkdir()
    fill(log, 20)
    fill(log, 20)
    log.close()
    segment_path(path, 1).rmdir()

    assert verify_file(path).records == 41


# ----------------------------------------------------------------------------------------- proofs


def proof_of(path: Path, seq: int) -> Proof:
    proof = prove(log_lines(path), seq, head_of(path), "r1")
    assert proof is not None
    return proof


@pytest.mark.parametrize("seq", [0, 1, 31, 32, 49])
def test_a_record_is_proven_to_who_has_only_the_key(signed: Path, signer: Signer, seq: int) -> None:
    written = read_json(json.dumps(proof_of(signed, seq).to_json()), "proof")

    assert Proof.from_json(written).fault(signer.public_key()) == ""


def test_a_proof_shows_no_other_record(signed: Path) -> None:
    text = json.dumps(proof_of(signed, 7).to_json())

    assert "c6" in text  # record 7 itself
    assert not any(f'"c{other}\\"' in text for other in range(49) if other != 6)


@pytest.mark.requirement("I24")
def test_a_proof_of_another_record_run_root_or_key_proves_nothing(
    signed: Path, signer: Signer, tmp_path: Path
) -> None:
    proof, key = proof_of(signed, 7), signer.public_key()
    other = proof_of(signed, 8)

    assert replace(proof, record=other.record).fault(key)
    assert replace(proof, path=other.path[::-1]).fault(key)
    assert replace(proof, run="r2").fault(key)
    assert replace(proof, head=replace(proof.head, root="00" * 32)).fault(key)
    assert replace(proof, path=("00" * 31,)).fault(key)
    assert replace(proof, path=("no hash",)).fault(key)
    assert proof.fault(Signer(tmp_path / "other.key").public_key())


def test_there_is_no_proof_of_a_record_behind_the_checkpoint(signed: Path) -> None:
    assert prove(log_lines(signed), 50, head_of(signed), "r1") is None


def test_a_proof_of_another_format_is_refused(signed: Path) -> None:
    values = proof_of(signed, 7).to_json() | {"format": "other"}

    with pytest.raises(ConfigError):
        Proof.from_json(read_json(json.dumps(values), "proof"))
