"""`remit ask`: one question, a typed answer, and no wait for anybody."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path
from typing import cast

import pytest

from orchestrator.cli.demo import files_server
from tests.orchestrator.canary import canary
from tests.orchestrator.cli.running import Finished, Remit
from tests.orchestrator.reviewing import MAKES, REVIEWER
from tests.servers import asking as asking_server

SAYS = """
from orchestrator import AuthorityError, Call

def says(task):
    yield []
    return "you asked: " + task.prompt

def reads(task):
    try:
        answer = yield Call("files", "read_file", {"path": "note.txt"})
    except AuthorityError as error:
        return "no: " + error.reason.value
    return answer.text

def sees(task):
    listed = yield Call("remit", "list_capabilities")
    return listed.text
"""
READS = """policy reading v1 {
  permit "notes" call on files/read_file
  permit "own" call on remit/*
}
"""
ASKS = 'policy asking v1 { ask "notes" call on files/read_file }\n'


@pytest.fixture
def project(home: Path) -> Path:
    """A project with a recipe, a note, and a server of the profile whose tools count as seen."""
    here = Path.cwd()
    (here / ".git").mkdir()
    (here / "model.py").write_text(SAYS + MAKES)
    (here / "note.txt").write_text("the note")
    config = home / "config"
    config.mkdir(parents=True)
    server = {
        "command": sys.executable,
        "args": ["-I", files_server.__file__, "--root", str(here), "--out", str(here)],
        "description_trust": "first-use",
    }
    (config / "mcp.json").write_text(json.dumps({"mcpServers": {"files": server}}))
    return here


def approved(*files: str) -> list[str]:
    words: list[str] = []
    for file in files:
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        words += ["--approve", f"{file}@{digest}"]
    return words


def asked(remit: Remit, function: str, *words: str) -> Finished:
    model = f"recipe:model.py:{function}"
    return remit("ask", "what?", "--model", model, "--quiet", *approved("model.py"), *words)


def test_the_answer_and_nothing_else_goes_to_stdout(remit: Remit, project: Path):
    ended = asked(remit, "says")

    assert (ended.code, ended.out, ended.err) == (0, "you asked: what?\n", "")


def test_a_session_is_among_the_runs(remit: Remit, project: Path):
    asked(remit, "says")

    (row,) = cast("list[dict[str, object]]", remit("runs", "list", "--json").json["runs"])
    run = str(row.pop("run"))
    listed, shown = remit("runs", "list").out, remit("runs", "show", run)
    drawn = remit("runs", "show", run, "--format", "svg")

    assert row == {"state": "ended", "pipeline": "", "steps": 0, "ended": 0}
    assert f"{run}  ended  -      (a session)" in listed
    assert shown.out.startswith(f"{run}: ended, a session")
    assert (drawn.code, "E-STATE-RUN" in drawn.err) == (2, True)


def test_a_question_comes_in_on_stdin(remit: Remit, project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))

    ended = remit("ask", "--model", "recipe:model.py:says", "--quiet", *approved("model.py"))

    assert ended.out == "you asked: from a pipe\n"


def test_a_profiles_server_is_used_as_a_profiles_policy_says(
    remit: Remit, project: Path, home: Path
):
    (home / "config" / "own.policy").write_text(READS)
    (home / "config" / "config.toml").write_text('policy = ["own.policy"]\n')

    ended = asked(remit, "reads", "--json")

    assert ended.code == 0, ended.out
    assert ended.json["result"] == {
        "trust": "untrusted_external",
        "authority": "none",
        "value": "the note",
    }
    assert ended.json["sources"] == ["files/read_file"]


def test_a_projects_permit_never_widens_what_a_profile_says(
    remit: Remit, project: Path, home: Path
):
    config = home / "config"
    (config / "own.policy").write_text('policy own v1 { permit "mine" call on remit/* }\n')
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    Path("project.policy").write_text(READS)
    Path("remit.toml").write_text('policy = ["project.policy"]\n')
    words = approved("remit.toml", "project.policy")

    narrow = asked(remit, "reads", "--json", *words)
    (config / "own.policy").write_text(READS.replace("reading", "mine"))
    wide = asked(remit, "reads", "--json", *words)

    assert "no: " in json.dumps(narrow.json["result"])
    assert cast("dict[str, str]", wide.json["result"])["value"] == "the note"


def test_a_projects_forbid_narrows_what_a_profile_permits(remit: Remit, project: Path, home: Path):
    config = home / "config"
    (config / "own.policy").write_text(READS)
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    Path("project.policy").write_text('policy less v1 { permit "seen" call on remit/* }\n')
    Path("remit.toml").write_text('policy = ["project.policy"]\n')

    ended = asked(remit, "reads", "--json", *approved("remit.toml", "project.policy"))

    assert "no: " in json.dumps(ended.json["result"])


@pytest.mark.requirement("S-12")
@pytest.mark.requirement("S-48")
def test_where_nobody_can_be_asked_it_says_what_was_wanted_and_waits_for_nobody(
    remit: Remit, project: Path
):
    Path("ask.policy").write_text(ASKS)

    ended = asked(remit, "reads", "--json", "--policy", "ask.policy", *approved("ask.policy"))

    assert ended.code == 4
    assert ended.json["status"] == "input_required"
    (wanted,) = cast("list[dict[str, str]]", ended.json["input_required"])
    assert (wanted["agent"], wanted["server"], wanted["tool"]) == ("parent", "files", "read_file")
    assert '"notes"' in wanted["rule"]


def test_what_a_person_lets_through_always_needs_nobody_to_ask(
    remit: Remit, project: Path, home: Path
):
    Path("ask.policy").write_text(ASKS)
    kept = home / "config" / "policies" / "always.policy"
    kept.parent.mkdir()
    here = hashlib.sha256(str(project.resolve()).encode()).hexdigest()[:12]
    kept.write_text(
        f'policy always-{here}-1 v1 {{ permit "1" call on files/read_file unknown args deny '
        'when arg(/path) == "note.txt" }\n'
    )

    ended = asked(remit, "reads", "--json", "--policy", "ask.policy", *approved("ask.policy"))

    assert cast("dict[str, str]", ended.json["result"])["value"] == "the note"


KEEPS = """policy k v1 {
  permit "notes" call on files/read_file
  oblige "evidence" call on files/* keep arguments
}"""


def test_a_policy_of_the_profile_may_keep_argument_values_in_the_audit_log(
    remit: Remit, project: Path, home: Path
):
    own = home / "config" / "policies" / "own.policy"
    own.parent.mkdir()
    own.write_text(KEEPS)

    ended = asked(remit, "reads", "--json", "--policy", str(own))
    shown = remit("audit", "query", "--kind", "arguments_kept", "--server", "files", "--json")

    assert cast("dict[str, str]", ended.json["result"])["value"] == "the note"
    assert shown.json["values"] == {"/path": '"note.txt"'}


def test_a_policy_of_a_project_may_not(remit: Remit, project: Path):
    Path("keeps.policy").write_text(KEEPS)

    ended = asked(remit, "reads", "--json", "--policy", "keeps.policy", *approved("keeps.policy"))

    assert ended.code == 2
    assert ended.json["code"] == "E-POLICY-KEEP"


@pytest.mark.requirement("S-48")
def test_without_a_policy_each_call_asks(remit: Remit, project: Path):
    ended = asked(remit, "sees", "--json")

    assert ended.code == 4
    error = cast("dict[str, str]", ended.json["error"])
    assert "remit init --policy" in error["fix"]


@pytest.mark.requirement("S-20")
def test_what_comes_with_a_project_is_pending_until_it_is_approved(remit: Remit, project: Path):
    Path(".mcp.json").write_text('{"mcpServers": {"own": {"command": "no-such-program"}}}')

    ended = asked(remit, "says", "--json")

    assert ended.code == 6
    assert ended.json["status"] == "pending_approval"
    assert "own" in cast("dict[str, str]", ended.json["error"])["message"]


@pytest.mark.requirement("S-20")
def test_a_profiles_entry_wins_over_a_projects_of_the_same_name(remit: Remit, project: Path):
    Path(".mcp.json").write_text('{"mcpServers": {"files": {"command": "no-such-program"}}}')
    Path("own.policy").write_text(READS)

    ended = asked(remit, "reads", "--json", "--policy", "own.policy", *approved("own.policy"))

    assert ended.code == 0, ended.out
    notices = cast("list[dict[str, str]]", ended.json["notices"])
    assert any("the profile has that name" in notice["message"] for notice in notices)


def test_without_the_project_nothing_of_it_is_looked_at(remit: Remit, project: Path):
    Path(".mcp.json").write_text("{ not json")
    Path("remit.toml").write_text("not toml")

    ended = asked(remit, "says", "--no-project")

    assert ended.out == "you asked: what?\n"


def test_a_server_that_cannot_be_had_is_a_notice_and_the_others_go_on(
    remit: Remit, project: Path, home: Path
):
    file = home / "config" / "mcp.json"
    servers = json.loads(file.read_text())
    servers["mcpServers"]["gone"] = {"command": sys.executable, "args": ["-c", "raise SystemExit"]}
    file.write_text(json.dumps(servers))
    Path("own.policy").write_text(READS)

    ended = asked(remit, "reads", "--json", "--policy", "own.policy", *approved("own.policy"))

    assert ended.code == 0, ended.out
    notices = cast("list[dict[str, str]]", ended.json["notices"])
    assert [(notice["name"], notice["state"]) for notice in notices] == [("gone", "failed")]


def test_a_projects_settings_count_once_they_are_approved(remit: Remit, project: Path):
    Path("own.policy").write_text(READS)
    Path("remit.toml").write_text('policy = ["own.policy"]\n[budget]\ncalls = 0\n')

    pending = asked(remit, "reads", "--json", *approved("own.policy"))
    ended = asked(remit, "reads", "--json", *approved("own.policy", "remit.toml"))

    assert pending.code == 6
    assert ended.json["result"] != {"value": "the note"}
    assert cast("dict[str, object]", ended.json["usage"])["refused"] == 1


def test_without_a_model_it_says_how_to_name_one(remit: Remit, home: Path):
    ended = remit("ask", "what?")

    assert ended.code == 2
    assert "E-ASK-MODEL" in ended.err
    assert "--model" in ended.err


@pytest.mark.parametrize("question", ["", "   \n"])
def test_an_empty_question_is_an_error(remit: Remit, home: Path, question: str):
    ended = remit("ask", question, "--model", "openai:x")

    assert ended.code == 2
    assert "E-ASK-QUESTION" in ended.err


def test_a_question_past_the_bound_is_an_error(
    remit: Remit, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("x" * (1024 * 1024 + 1)))

    ended = remit("ask", "-", "--model", "openai:x")

    assert ended.code == 2
    assert "E-ASK-QUESTION" in ended.err


def test_a_budget_of_the_command_line_holds(remit: Remit, project: Path):
    Path("own.policy").write_text(READS)

    ended = asked(
        remit,
        "reads",
        "--json",
        "--max-calls",
        "0",
        "--policy",
        "own.policy",
        *approved("own.policy"),
    )

    assert cast("dict[str, object]", ended.json["usage"])["refused"] == 1


# --------------------------------------------------------------------- what servers want of people

FORM = """
from orchestrator import Call

def forms(task):
    answer = yield Call("asking", "form", {})
    return answer.text

def visits(task):
    answer = yield Call("asking", "visit", {"url": task.prompt})
    return answer.text
"""


@pytest.fixture
def asking(project: Path, home: Path) -> None:
    """A project with a server of the profile that asks a person before it answers."""
    Path("model.py").write_text(FORM)
    Path("open.policy").write_text('policy open v1 { permit "all" call on asking/* }\n')
    server = {"command": sys.executable, "args": [asking_server.__file__]}
    entry = {"asking": {**server, "description_trust": "first-use"}}
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": entry}))


def asked_of(remit: Remit, function: str, question: str = "what?") -> Finished:
    words = ["--policy", "open.policy", *approved("model.py", "open.policy")]
    model = f"recipe:model.py:{function}"
    return remit("ask", question, "--model", model, "--json", *words)


@pytest.mark.requirement("S-12")
def test_a_servers_form_is_cancelled_at_once_and_told_with_its_schema(remit: Remit, asking: None):
    ended = asked_of(remit, "forms")

    assert ended.code == 4, ended.err
    assert ended.json["status"] == "input_required"
    (wanted,) = cast("list[dict[str, object]]", ended.json["input_required"])
    assert (wanted["kind"], wanted["server"], wanted["agent"], wanted["mode"]) == (
        "elicitation",
        "asking",
        "parent",
        "form",
    )
    message = cast("dict[str, str]", wanted["message"])
    assert message["value"].startswith("which branch?")
    assert message["trust"] == "untrusted_external"
    schema = cast("dict[str, dict[str, object]]", wanted["schema"])
    assert list(schema["properties"]) == ["branch", "count", "force", "kind"]
    result = cast("dict[str, str]", ended.json["result"])
    assert json.loads(result["value"]) == {"action": "cancel"}


@pytest.mark.requirement("S-11")
@pytest.mark.requirement("S-12")
def test_an_address_that_a_server_wants_visited_is_told_and_never_fetched(
    remit: Remit, asking: None
):
    with canary() as heard:
        ended = asked_of(remit, "visits", f"{heard.url}/consent")

    assert ended.code == 4
    (wanted,) = cast("list[dict[str, object]]", ended.json["input_required"])
    assert (wanted["mode"], wanted["host"]) == ("url", "127.0.0.1")
    assert heard.visits == 0


def test_a_definition_of_the_profile_makes_a_child(remit: Remit, project: Path, home: Path):
    config = home / "config"
    (config / "own.policy").write_text(READS)
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    (config / "agents").mkdir()
    (config / "agents" / "reviewer.md").write_text(REVIEWER)

    ended = asked(remit, "makes")

    assert "You review.\\n\\nNow." in ended.out


def test_a_projects_definition_makes_no_child_until_it_is_approved(
    remit: Remit, project: Path, home: Path
):
    (home / "config" / "own.policy").write_text(READS)
    (home / "config" / "config.toml").write_text('policy = ["own.policy"]\n')
    place = Path(".remit/agents/reviewer.md")
    place.parent.mkdir(parents=True)
    place.write_text(REVIEWER)

    before = asked(remit, "makes")
    after = asked(remit, "makes", *approved(str(place)))

    assert "it comes with the project and is not approved" in before.out
    assert "You review.\\n\\nNow." in after.out
