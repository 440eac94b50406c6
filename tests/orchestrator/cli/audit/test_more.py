"""`remit audit show`, `query`, `export`, `prove`, `replay`: what a log says, and to whom it can be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.audit.log import AuditLog
from orchestrator.audit.signing import Signer
from orchestrator.core.ids import RunId
from tests.orchestrator.audit.conftest import StepClock
from tests.orchestrator.cli.running import Remit

POLICY = """
policy p v1 {
  role worker
  permit "read" call on files/read for role worker
  permit "small" call on files/pay for role worker when arg(/amount) <= 10
  ask "write" call on files/write for role worker
}
"""


def call(number: int, tool: str) -> dict[str, object]:
    return {
        "call": f"c{number}",
        "agent": "w",
        "server": "files",
        "tool": tool,
        "definition": "d",
        "arguments": "keyed",
    }


@pytest.fixture
def log(home: Path) -> Path:
    """The signed log of a run in the state folder."""
    path = home / "state" / "runs" / "r1" / "audit.jsonl"
    signer = Signer(home / "state" / "audit-signing.key")
    with AuditLog.create(path, RunId("r1"), StepClock(), signer=signer) as record:
        record.append(
            "snapshot_admitted",
            {"agent": "w", "role": "worker", "snapshot": "s", "policy": "p", "interactive": True},
        )
        record.append("decision", {**call(1, "read"), "effect": "permit", "rule": "r"})
        record.append("decision", {**call(2, "pay"), "effect": "permit", "rule": "r"})
        record.append("decision", {**call(3, "write"), "effect": "approved", "rule": "r"})
        record.append("refused", {**call(4, "drop"), "reason": "no_permit", "rule": ""})
        record.append("refused", {**call(5, "read"), "reason": "server_removed", "rule": ""})
        record.append("run_ended", {"status": "ok"})
    return path


@pytest.fixture
def policy(home: Path) -> Path:
    path = Path("p.policy")
    path.write_text(POLICY)
    return path


def test_verify_says_who_signed(remit: Remit, log: Path, home: Path):
    ended = remit("audit", "verify", "--json")

    key = Signer(home / "state" / "audit-signing.key").public_key()
    assert (ended.code, ended.json["signed_by"], ended.json["checkpoint"]) == (0, key, 7)


def test_a_log_of_ours_that_is_signed_by_another_key_is_bad(remit: Remit, log: Path, home: Path):
    (home / "state" / "audit-signing.key").unlink()
    Signer(home / "state" / "audit-signing.key").public_key()  # another one

    ended = remit("audit", "verify", "--json")

    assert (ended.code, ended.json["reason"]) == (1, "bad_signature")


def test_show_prints_one_record_with_everything(remit: Remit, log: Path):
    ended = remit("audit", "show", "2")

    assert ended.code == 0
    assert '"files"' in ended.out
    assert "prev" in ended.out


def test_a_record_that_is_not_there_is_an_error(remit: Remit, log: Path):
    ended = remit("audit", "show", "99", "--json")

    assert (ended.code, ended.json["code"]) == (1, "E-AUDIT-NO-RECORD")


def test_query_keeps_what_was_asked_for(remit: Remit, log: Path):
    ended = remit("audit", "query", "--kind", "refused", "--kind", "decision", "--json")
    records = [json.loads(line) for line in ended.out.splitlines()]

    assert [record["call"] for record in records] == ["c1", "c2", "c3", "c4", "c5"]
    assert remit("audit", "query", "--call", "c4", "--json").out.count("\n") == 1
    assert remit("audit", "query", "-n", "2", "--json").out.count("\n") == 2


def test_a_misspelt_kind_is_told(remit: Remit, log: Path):
    ended = remit("audit", "query", "--kind", "refusd")

    assert ended.code == 2
    assert "did you mean 'refused'?" in ended.err


def test_an_exported_log_verifies_by_its_key_elsewhere(remit: Remit, log: Path, tmp_path: Path):
    out = tmp_path / "for-you"
    key = remit("audit", "export", "--out", str(out), "--json").json["key"]

    assert remit("audit", "verify", str(out), "--key", str(key)).code == 0
    assert remit("audit", "verify", str(out), "--key", "00" * 32).code == 1


def test_nothing_is_exported_over_what_is_there(remit: Remit, log: Path, tmp_path: Path):
    ended = remit("audit", "export", "--out", str(tmp_path), "--json")

    assert (ended.code, ended.json["code"]) == (1, "E-AUDIT-EXPORT")


def test_a_log_that_is_bad_is_neither_exported_nor_proven_from(
    remit: Remit, log: Path, tmp_path: Path
):
    log.write_bytes(log.read_bytes().replace(b'"read"', b'"rear"'))

    for words in (["export", "--out", str(tmp_path / "x")], ["prove", "2"]):
        assert remit("audit", *words, "--json" if "--out" in words else "r1").code == 1


def test_a_proof_is_made_and_checked(remit: Remit, log: Path):
    made = remit("audit", "prove", "2")
    Path("proof.json").write_text(made.out)
    key = str(json.loads(made.out)["key"])

    good = remit("audit", "prove", "--check", "proof.json", "--key", key)
    bad = remit("audit", "prove", "--check", "proof.json", "--key", "00" * 32)

    assert (good.code, bad.code) == (0, 1)
    assert good.out.startswith("ok: of run r1")


@pytest.mark.parametrize("words", [[], ["--check", "x"], ["3", "r1", "--check", "x", "--key", "y"]])
def test_prove_says_what_it_needs(remit: Remit, log: Path, words: list[str]):
    assert remit("audit", "prove", *words).code == 2


def test_a_run_decided_again_under_its_own_policy_is_the_same(
    remit: Remit, log: Path, policy: Path
):
    ended = remit("audit", "replay", "--policy", str(policy), "--json")

    assert ended.code == 0
    assert ended.json == {"same": 3, "open": 1, "different": 0, "differences": []}


def test_a_difference_is_named(remit: Remit, log: Path, policy: Path):
    policy.write_text(POLICY.replace('permit "read"', 'forbid "read"'))
    ended = remit("audit", "replay", "--policy", str(policy), "--json")

    assert ended.code == 1
    assert ended.json["differences"] == [
        {"seq": 2, "agent": "w", "target": "files/read", "then": "permit", "now": ["forbid"]}
    ]


def test_a_difference_is_told_to_people_as_well(remit: Remit, log: Path, policy: Path):
    policy.write_text(POLICY.replace('ask "write"', 'permit "write"'))

    assert (
        "#4 w files/write: was ask, is permit"
        in remit("audit", "replay", "--policy", str(policy)).out
    )
