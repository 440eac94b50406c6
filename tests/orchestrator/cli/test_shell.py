"""`remit shell` through a real terminal, 60 columns wide, with a recipe for a model."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.canary import canary
from tests.orchestrator.cli.child import COLUMNS, Child, on_terminal
from tests.orchestrator.cli.running import Remit
from tests.servers import asking as asking_server

pytestmark = pytest.mark.subprocess

PROMPT = "you>"
MODEL = """
import json
from orchestrator import Call, RemitError

def talk(task):
    words = task.prompt.split()
    if "/" in task.agent:
        yield []
        return task.prompt
    if words[0] == "make":
        wanted = {"name": words[1], "prompt": "Now.", "definition": "reviewer"}
        try:
            made = yield Call("remit", "spawn_subagent", wanted)
        except RemitError as error:
            return f"refused: {error.code}"
        return "it said: " + json.loads(made.text)["answer"]
    if words[0] == "call":
        arguments = {"url": words[2]} if len(words) > 2 else {}
        try:
            answer = yield Call("asking", words[1], arguments)
        except RemitError as error:
            return f"refused: {error.code}"
        return "answered: " + answer.text
    yield []
    return f"you said {task.prompt}, with {sorted(task.inputs.items())}"
"""
POLICY = """policy own v1 {
  permit "calls" call on asking/{form,visit,hang}
  ask "say" call on asking/say
  permit "own" call on remit/*
  permit "prompts" get_prompt, complete on asking prompt "*"
  permit "docs" read, complete on asking resource "doc:///**"
}
"""


@pytest.fixture
def project(home: Path) -> Path:
    here = Path.cwd()
    (here / ".git").mkdir()
    (here / "model.py").write_text(MODEL)
    config = home / "config"
    config.mkdir(parents=True)
    (config / "own.policy").write_text(POLICY)
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    server = {"command": sys.executable, "args": [asking_server.__file__]}
    entry = {"asking": {**server, "description_trust": "first-use"}}
    (config / "mcp.json").write_text(json.dumps({"mcpServers": entry}))
    return here


@contextmanager
def shell(*words: str, command: str = "shell", columns: int = COLUMNS) -> Generator[Child]:
    digest = hashlib.sha256(Path("model.py").read_bytes()).hexdigest()
    model = ("--model", "recipe:model.py:talk", "--approve", f"model.py@{digest}")
    with on_terminal(command, *words, *model, columns=columns) as child:
        yield child


def started(child: Child) -> None:
    child.shows("/quit ends", PROMPT)


@pytest.mark.requirement("S-10", "F-1")
def test_a_conversation_with_an_approval_a_form_and_an_address(project: Path, home: Path):
    with shell() as child, canary() as heard:
        started(child)
        child.said("hello", "you said hello", PROMPT)
        # an approval, and who asks
        child.said("call say", "parent wants to call asking/say", "[y/s/a/N]")
        child.said("n", "refused: E-AUTHORITY-ASK-DECLINED", PROMPT)
        child.said("call say", "[y/s/a/N]")
        child.said("y", "answered: said", PROMPT)
        # a form: accepted, declined, cancelled
        child.said("call form", "for        agent parent", "or nothing:")
        child.said("y", "(branch):")
        child.said("main", "count [3]:")
        child.said("", "force [no]:")
        child.said("", "kind:")
        child.said("1", "send this to asking? [y/N]")
        child.said("y", '"main"', PROMPT)
        child.said("call form", "or nothing:")
        child.said("n", '"action": "decline"', PROMPT)
        child.said("call form", "or nothing:")
        child.interrupt()
        child.shows('"action": "cancel"')
        child.shows(PROMPT)
        # an address: shown whole, its host apart, and not fetched before or after the yes
        child.said(f"call visit {heard.url}/x", "host       127.0.0.1", "or nothing:")
        child.said("y", "visit it by yourself", '"action": "accept"', PROMPT)
        assert heard.visits == 0
        child.type("/quit\r")

        assert child.ended() == 0
    assert (home / "state" / "shell-history").stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("S-41")
def test_a_person_uses_prompts_and_resources_and_the_tab_completes_them(project: Path):
    with shell() as child:
        started(child)
        child.type("/mcp__asking__review path=be\t")
        child.shows("ta.py")
        child.said("", "you said I chose the prompt", "review beta.py", PROMPT)
        child.type("look at @asking:doc:///be\t")
        child.shows("ta.py")
        child.said("", "you said look at", "content of", PROMPT)
        child.type("/serv\t")
        child.shows("ers")
        child.said("", "asking  connected")


def test_agents_in_the_background_wait_in_the_inbox(project: Path):
    with shell() as child:
        started(child)
        child.said("/spawn scout call say", "works in the background", "scout wants to call")
        child.said("/approvals", "1. scout wants to call asking/say")
        child.said("/allow 1", "allowed, once", "scout has ended: ok", "answered: said")
        child.said("/deny 1", "E-SHELL-ASK", "/approvals shows what waits")
        child.said("/agents", "parent  recipe:")
        child.said("/sevrers", "there is no command", "servers")


def test_ctrl_c_once_stops_the_turn_and_twice_ends_the_shell(project: Path):
    with shell() as child:
        started(child)
        child.type("call hang\r")
        child.shows("started")
        child.interrupt()
        child.shows("(stopped)")
        child.shows(PROMPT)
        child.said("still there", "you said still there", PROMPT)
        child.interrupt()
        child.shows("Ctrl-C again")
        child.shows(PROMPT)
        child.interrupt()

        assert child.ended() == 0


@pytest.mark.requirement("S-48")
def test_a_servers_words_move_no_terminal_and_no_line_is_wider_than_it(project: Path):
    with shell() as child:
        started(child)
        shown = child.said("call form", "or nothing:")
        shown += child.said("y", "(branch):")
        shown += child.said("/cancel", "cancel", PROMPT)
        shown += child.said("look at @asking:doc:///handbook", "content of", PROMPT)
        shown += child.said("call say", "[y/s/a/N]")
        shown += child.said("y", "answered: said", PROMPT)
        shown += child.said("/tools", "remit/get_prompt", PROMPT)

    assert "\x1b]0;stolen" not in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    lines = re.split("[\r\n]+", plain)
    assert [line for line in lines if len(line) > COLUMNS and PROMPT not in line] == []


def test_a_screen_that_becomes_wider_has_wider_lines(project: Path):
    with shell() as child:
        started(child)
        narrow = child.said("/help", "/mcp__SERVER__PROMPT", PROMPT)
        child.resize(200)
        wide = child.said("/help", "/mcp__SERVER__PROMPT", PROMPT)

    assert "twice ends the shell" in wide
    assert len(narrow.splitlines()) > len(wide.splitlines())


def test_without_a_terminal_it_says_what_to_use(remit: Remit, project: Path):
    finished = remit("shell")

    assert finished.code == 2
    assert "E-SHELL-TERMINAL" in finished.err


@pytest.mark.requirement("S-10")
@pytest.mark.requirement("S-11")
def test_ask_on_a_terminal_collects_a_form_and_asks_before_an_address(project: Path):
    with shell("call form", "--quiet", command="ask") as child:
        child.shows("or nothing:")
        child.said("y", "(branch):")
        child.said("main", "count [3]:")
        child.said("", "force [no]:")
        child.said("", "kind:")
        child.said("2", "[y/N]")
        child.said("y", '"kind": "rebase"')
        assert child.ended() == 0
    with (
        canary() as heard,
        shell(f"call visit {heard.url}/x", "--quiet", command="ask") as child,
    ):
        child.shows(f"{heard.url}/x")
        child.shows("or nothing:")
        child.said("y", '"action": "accept"')
        assert child.ended() == 0
        assert heard.visits == 0


def test_always_shows_the_rule_before_it_is_kept_and_can_be_taken_back(
    remit: Remit, project: Path, home: Path
):
    with shell() as child:
        started(child)
        child.said("call say", "allow this one call? [y/s/a/N]")
        shown = child.said("a", "policy always-", "asking", "keep this permit? [y/N]")
        child.said("n", "allow this one call? [y/s/a/N]")
        assert not (home / "config" / "policies" / "always.policy").exists()
        child.said("a", "keep this permit? [y/N]")
        child.said("y", "answered: said", PROMPT)
        child.said("call say", "answered: said", PROMPT)
        child.type("/quit\r")
        assert child.ended() == 0
    listed = remit("policy", "always", "list", "--json").json
    (permit,) = cast("list[dict[str, str]]", listed["permits"])
    assert permit["id"] in shown
    assert remit("policy", "always", "revoke", permit["id"]).code == 0
    with shell() as child:
        started(child)
        child.said("call say", "[y/s/a/N]")


def test_a_yes_for_the_session_is_for_the_session(project: Path, home: Path):
    with shell() as child:
        started(child)
        child.said("call say", "[y/s/a/N]")
        child.said("s", "answered: said", PROMPT)
        child.said("call say", "answered: said", PROMPT)
    assert not (home / "config" / "policies" / "always.policy").exists()


def test_what_waits_in_the_inbox_is_let_through_always_once_its_rule_was_seen(
    project: Path, home: Path
):
    with shell() as child:
        started(child)
        child.said("/spawn scout call say", "scout wants to call")
        child.said("/allow 1 always", "keep this permit? [y/N]")
        child.said("n", "not kept", PROMPT)
        child.said("/allow 1 always", "keep this permit? [y/N]")
        child.said("y", "allowed, and kept", "scout has ended: ok")
    assert (home / "config" / "policies" / "always.policy").exists()


def test_ask_on_a_terminal_takes_always_too(project: Path, home: Path):
    with shell("call say", "--quiet", command="ask") as child:
        child.shows("[y/s/a/N]")
        child.said("a", "keep this permit? [y/N]")
        child.said("y", "answered: said")
        assert child.ended() == 0
    with shell("call say", "--quiet", command="ask") as child:
        child.shows("answered: said")
        assert child.ended() == 0


def test_a_definition_makes_a_child_once_it_is_approved(project: Path):
    place = Path(".remit/agents/reviewer.md")
    place.parent.mkdir(parents=True)
    place.write_text("---\nname: reviewer\n---\nIt reviews.")
    digest = hashlib.sha256(place.read_bytes()).hexdigest()

    with shell() as child:
        started(child)
        child.said("make one", "refused: ", PROMPT)
        child.said("/quit")
        child.ended()
    with shell("--approve", f"{place}@{digest}") as child:
        started(child)
        child.said("make two", "it said: It reviews.", PROMPT)
        child.said("/quit")
        assert child.ended() == 0
