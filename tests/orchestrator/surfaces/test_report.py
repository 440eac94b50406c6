from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from html.parser import HTMLParser

import pytest

from orchestrator.audit.record import Record
from orchestrator.surfaces.report.facts import ROWS_MAX, Facts, facts_of
from orchestrator.surfaces.report.page import report_page
from orchestrator.surfaces.report.style import REPORT_STYLE
from orchestrator.surfaces.report.timeline import TIMELINE_ROWS_MAX, timeline

HOSTILE = '"><script>alert(1)</script><img src=http://x/y onerror=z>\u202e'


def records(*items: tuple[str, float, Mapping[str, object]]) -> list[Record]:
    return [
        Record(seq=number, time=1000 + at, kind=kind, fields=fields, prev="", hash="")
        for number, (kind, at, fields) in enumerate(items)
    ]


def call(name: str, agent: str, tool: str, began: float, ended: float | None) -> list[Record]:
    fields: dict[str, object] = {"call": name, "agent": agent, "server": "s", "tool": tool}
    found = records(("decision", began, {**fields, "rule": "r"}))
    if ended is not None:
        found += records(("call_ended", ended, {"call": name, "outcome": "ok"}))
    return found


def a_run(name: str = "writer") -> Facts:
    refused: dict[str, object] = {
        "agent": name, "server": "files", "tool": "write_file", "reason": "no_permit",
        "rule": "nearest x", "delivery": "not_sent", "bytes_sent": 0,
    }  # fmt: skip
    ended: dict[str, object] = {
        "agent": name, "status": "ok", "code": "", "calls": 2, "denied": 1, "refused": 0,
        "failed": 0, "tokens": 70, "usd": 0.25,
    }  # fmt: skip
    return facts_of(
        [
            *records(
                ("log_opened", 0, {"run": "r-1"}),
                ("run_started", 1, {"pipeline": name}),
                ("agent_started", 2, {"agent": name, "model": "recipe:x"}),
            ),
            *call("c1", name, "read", 2, 3),
            *records(
                ("refused", 4, refused),
                ("approval", 4, {"agent": name, "rule": "asks", "approved": True}),
                ("revoked", 4, {"what": "server", "name": "git", "reason": "server_removed"}),
                ("agent_ended", 5, ended),
                ("run_ended", 5, {"status": "ok"}),
            ),
        ]
    )


class Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("after", ["decision", "refused"])
def test_what_a_person_was_asked_is_told_with_the_call_that_it_was_about(after: str):
    fields: dict[str, object] = {"call": "c1", "agent": "a", "server": "mail", "tool": "send"}
    facts = facts_of(
        records(
            ("approval", 1, {"call": "c1", "agent": "a", "rule": "asks", "approved": True}),
            (after, 1, fields),
            ("gate", 2, {"step": "ship", "passed": False}),
        )
    )

    assert [(each.about, each.rule, each.yes) for each in facts.approvals] == [
        ("mail/send", "asks", True),
        ("a gate", "", False),
    ]
    assert 'data-head="about"><code>mail/send</code>' in report_page(facts, style=REPORT_STYLE)


def test_a_report_tells_what_was_done_and_what_was_not():
    page = report_page(a_run(), style=REPORT_STYLE)

    assert "no permit" in page
    assert 'data-head="bytes sent">0<' in page
    assert "$ 0.2500" in page
    assert "server git: server_removed" in page
    assert ">yes</span>" in page


def test_nothing_of_a_server_or_a_project_is_markup_in_a_report():
    seen = Seen(report_page(a_run(HOSTILE), style=REPORT_STYLE))

    assert seen.tags & {"script", "img", "a", "link", "iframe", "object", "form"} == set()
    assert not any(name.startswith("on") or name in ("src", "href", "style") for name in seen.attributes)  # fmt: skip


def test_hidden_characters_are_written_out():
    assert "\u202e" not in report_page(a_run(HOSTILE), style=REPORT_STYLE)


def test_a_report_allows_its_own_style_and_nothing_else():
    page = report_page(a_run(), style=REPORT_STYLE)
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()

    assert len(style) == 1
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page


def test_a_run_without_its_end_is_interrupted_and_so_are_its_agents():
    facts = facts_of(
        records(
            ("log_opened", 0, {"run": "r"}),
            ("run_started", 0, {"pipeline": "p"}),
            ("agent_started", 1, {"agent": "a", "model": "m"}),
        )
    )

    assert (facts.status, facts.agents["a"].status) == ("interrupted", "interrupted")


def test_the_attempts_of_an_agent_are_counted_together():
    one: dict[str, object] = {"agent": "a", "status": "failed", "calls": 2, "tokens": 5}
    facts = facts_of(
        records(
            ("agent_started", 0, {"agent": "a", "model": "m"}),
            ("agent_ended", 1, one),
            ("agent_started", 2, {"agent": "a", "model": "m"}),
            ("agent_ended", 3, {**one, "status": "ok"}),
        )
    )

    assert (facts.agents["a"].status, facts.agents["a"].calls) == ("ok", 4)


@pytest.mark.parametrize(
    "kind", ["agent_started", "decision", "refused", "approval", "server_lost"]
)
def test_one_row_too_many_is_left_out_and_counted(kind: str):
    facts = facts_of(
        records(*((kind, 0, {"agent": f"a{n}", "call": f"c{n}"}) for n in range(ROWS_MAX + 1)))
    )

    assert facts.left_out == 1


def test_items_of_a_map_share_rows_of_the_timeline():
    facts = facts_of(
        records(
            *(
                (kind, number + later, {"agent": f"reader-{number}", "model": "m", "status": "ok"})
                for number in range(5)
                for kind, later in (("agent_started", 0.0), ("agent_ended", 0.5))
            )
        )
    )

    assert timeline(facts).count('text-anchor="end">') == 2  # one row, and the last tick


def test_a_call_at_work_is_drawn_as_such_and_one_that_its_agent_left_behind_as_bad():
    begun = records(("agent_started", 0, {"agent": "a", "model": "m"}))
    at_work = [*begun, *call("c1", "a", "read", 1, None)]
    left = [*at_work, *records(("agent_ended", 2, {"agent": "a", "status": "failed"}))]

    running, over = timeline(facts_of(at_work)), timeline(facts_of(left))

    assert '<g class="call open"><title>s/read: not ended yet</title>' in running
    assert '<g class="call bad"><title>s/read: not ended</title>' in over
    assert ".time .call.open rect" in REPORT_STYLE


def test_a_timeline_has_no_more_rows_than_fit():
    facts = facts_of(
        records(
            *(
                ("agent_started", 0, {"agent": f"a{number}x", "model": "m"})
                for number in range(TIMELINE_ROWS_MAX + 1)
            )
        )
    )

    assert "and 1 more agents" in timeline(facts)
