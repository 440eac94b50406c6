"""What the shell's commands show and do, and `remit ask` on a narrow screen: real terminals, a real server."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.orchestrator.canary import canary
from tests.orchestrator.cli.child import Child
from tests.orchestrator.cli.test_shell import POLICY, PROMPT, project, shell, started

__all__ = ["project"]

pytestmark = pytest.mark.subprocess

NARROW = 40


def rows(shown: str) -> list[str]:
    """The rows of a screen, without what only moves or colours."""
    return re.split("[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))


def one_line(shown: str) -> str:
    """All that was shown, with its folds taken out."""
    return " ".join(" ".join(row.strip() for row in rows(shown)).split())


def own_policy(home: Path, text: str) -> None:
    (home / "config" / "own.policy").write_text(text)


def test_reload_takes_up_a_changed_policy_and_a_broken_one_changes_nothing(
    project: Path, home: Path
):
    with shell() as child:
        started(child)
        child.said("call say", "[y/s/a/N]")
        child.said("y", "answered: said", PROMPT)
        own_policy(home, POLICY.replace('ask "say"', 'forbid "say"'))
        child.said("/reload", "read anew", PROMPT)
        child.said("call say", "refused: E-AUTHORITY-FORBIDDEN", PROMPT)
        own_policy(home, "policy own v1 { permit")
        child.said("/reload", "E-POLICY", "own.policy:1", "permit", "^", PROMPT)
        child.said("call say", "refused: E-AUTHORITY-FORBIDDEN", PROMPT)


def test_a_reload_never_gives_an_agent_that_runs_more_than_it_had(project: Path, home: Path):
    own_policy(home, POLICY.replace('ask "say"', 'forbid "say"'))
    with shell() as child:
        started(child)
        child.said("call say", "refused: E-AUTHORITY-NOT-IN-SNAPSHOT", PROMPT)
        own_policy(home, POLICY.replace('ask "say"', 'permit "say"'))
        child.said("/reload", "bound by the old policy too", PROMPT)
        child.said("call say", "refused: E-AUTHORITY-NOT-IN-SNAPSHOT", PROMPT)


def test_explain_tells_what_a_call_would_be_and_why_the_last_ones_were_not(project: Path):
    with shell() as child:
        started(child)
        child.said("/explain", "no call was turned down", PROMPT)
        permitted = child.said("/explain asking/form", '"calls"', PROMPT)
        asked = child.said("/explain asking/say", '"say"', PROMPT)
        child.said("/explain nonsense", "E-SHELL-WORD", "/explain SERVER/TOOL", PROMPT)
        child.said("call say", "[y/s/a/N]")
        child.said("n", "refused: E-AUTHORITY-ASK-DECLINED", PROMPT)
        refused = child.said("/explain", "a person said no", PROMPT)

    assert "permit" in permitted
    assert "ask" in asked
    assert "asking/say" in refused
    assert 'rule: "say" (' in one_line(refused)
    assert "own.policy:3)" in one_line(refused).replace(" ", "")


def test_agents_and_cost_count_what_was_done(project: Path):
    with shell() as child:
        started(child)
        child.said("hello", "you said hello", PROMPT)
        first = child.said("/cost", "parent", PROMPT)
        child.said("call visit x:", "answered:", PROMPT)
        agents = child.said("/agents", "parent", PROMPT)
        child.said("/spawn scout call say", "scout wants to call")
        waiting = child.said("/agents", "WAITS FOR YOU", PROMPT)
        child.said("/deny 1", "denied", "scout has ended")

    assert "0 calls, 0 tokens, $0.0000" in one_line(first)
    assert "1 calls" in one_line(agents)
    assert "scout recipe:model.py:talk" in one_line(waiting)


def test_audit_shows_the_last_records(project: Path):
    with shell() as child:
        started(child)
        child.said("call say", "[y/s/a/N]")
        child.said("n", "refused: E-AUTHORITY-ASK-DECLINED", PROMPT)
        shown = child.said("/audit 8", "reason=ask_declined", PROMPT)
        child.said("/audit 0", "is no number from 1 to 1000", PROMPT)
        child.said("/audit 1001", "is no number from 1 to 1000", PROMPT)
        child.type("/quit\r")
        assert child.ended() == 0

    assert 'rule="\\"say\\" (' in one_line(shown)
    assert "approved=false" in one_line(shown)


# ----------------------------------------------------------------------------------- remit ask


def asked(line: str) -> AbstractContextManager[Child]:
    return shell(line, "--quiet", command="ask", columns=NARROW)


def opened_form(child: Child) -> str:
    return child.shows("which branch?", "or nothing:")


def test_a_form_of_ask_is_accepted_on_a_narrow_screen(project: Path):
    with asked("call form") as child:
        shown = opened_form(child)
        shown += child.said("y", "(branch):")
        shown += child.said("main", "count [3]:")
        shown += child.said("9", "force [no]:")
        shown += child.said("yes", "kind:")
        shown += child.said("1", "[y/N]")
        shown += child.said("y", '"action": "accept"')
        shown += child.to_the_end()
        assert child.ended() == 0

    assert '"branch": "main", "count": 9, "force": true, "kind": "merge"' in one_line(shown)
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize(
    ("typed", "action"),
    [("n", "decline"), ("", "cancel"), ("what", "cancel")],
)
def test_a_form_of_ask_is_declined_by_a_no_and_else_cancelled(
    project: Path, typed: str, action: str
):
    with asked("call form") as child:
        opened_form(child)
        child.said(typed, f'"action": "{action}"')
        assert child.ended() == 0


@pytest.mark.parametrize(("typed", "action"), [("/decline", "decline"), ("/cancel", "cancel")])
def test_a_form_of_ask_that_was_begun_is_given_up(project: Path, typed: str, action: str):
    with asked("call form") as child:
        opened_form(child)
        child.said("y", "(branch):")
        child.said("main", "count [3]:")
        child.said(typed, f'"action": "{action}"')
        assert child.ended() == 0


@pytest.mark.parametrize(("typed", "action"), [("y", "accept"), ("n", "decline"), ("", "cancel")])
def test_an_address_of_ask_is_shown_whole_and_is_never_fetched(
    project: Path, typed: str, action: str
):
    with canary() as heard:
        address = f"{heard.url}/{'consent/' * 8}end"
        with asked(f"call visit {address}") as child:
            shown = child.shows("or nothing:")
            child.said(typed, f'"action": "{action}"')
            assert child.ended() == 0
        visits = heard.visits

    assert visits == 0
    assert address in "".join(row.strip() for row in rows(shown))
    assert "host" in shown


def test_a_no_of_ask_refuses_the_call_and_says_so(project: Path):
    with asked("call say") as child:
        shown = child.shows("[y/s/a/N]")
        child.said("n", "refused: E-AUTHORITY-ASK-DECLINED")
        assert child.ended() == 0

    assert "parent wants to call asking/say" in one_line(shown)


def test_no_row_of_a_narrow_screen_is_wider_than_it(project: Path):
    with shell(columns=NARROW) as child:
        started(child)
        shown = child.said("/help", "twice ends", PROMPT)
        shown += child.said("/explain asking/say", '"say"', PROMPT)
        shown += child.said("/audit 5", "#", PROMPT)
        shown += child.said("/agents", "parent", PROMPT)
        shown += child.said("/cost", "parent", PROMPT)
        shown += child.said("call say", "[y/s/a/N]")
        shown += child.said("y", "answered: said", PROMPT)
        shown += child.said("call form", "or nothing:")
        shown += child.said("n", "decline", PROMPT)

    assert [row for row in rows(shown) if len(row) > NARROW and PROMPT not in row] == []
