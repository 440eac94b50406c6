from __future__ import annotations

from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.memory import MemoryAudit
from orchestrator.core.ports import AuditSink


def test_records_are_kept_as_they_were_appended() -> None:
    audit = MemoryAudit()
    sink: AuditSink = audit
    fields = {"call": "c1"}
    sink.append(AuditKind.DECISION, fields)
    fields["call"] = "c2"

    assert [(record.kind, dict(record.fields)) for record in audit.records] == [
        ("decision", {"call": "c1"})
    ]


def test_a_flush_counts_what_came_before_it() -> None:
    audit = MemoryAudit()
    audit.append("decision", {})
    audit.flush()
    audit.append("answered", {})

    assert audit.flushed == 1


def test_one_record_past_the_bound_takes_the_place_of_the_oldest() -> None:
    audit = MemoryAudit(records_max=2)
    for number in range(3):
        audit.append("decision", {"call": number})
    audit.flush()

    assert [record.fields["call"] for record in audit.records] == [1, 2]
    assert (audit.dropped, audit.flushed) == (1, 3)


def test_records_are_found_by_kind() -> None:
    audit = MemoryAudit()
    for kind in ("decision", "sent", "answered"):
        audit.append(kind, {})

    found = [record.kind for record in audit.of_kind(AuditKind.DECISION, AuditKind.ANSWERED)]

    assert found == ["decision", "answered"]
