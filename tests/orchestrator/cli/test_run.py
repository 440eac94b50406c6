"""`remit run` on a real project with a real server: approvals, results, exit codes, what is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.audit.read import read_records, verify_file
from tests.orchestrator.cli.project import Project, agents_of, flags_of, snapshot_of
from tests.orchestrator.cli.running import ROOT_FOLDER, Finished, Remit
from tests.orchestrator.surfaces.terminal import Terminal, open_terminal

pytestmark = pytest.mark.subprocess

QUESTION = "approve, as shown? [y/N]"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def names_in(flags: list[str]) -> list[str]:
    return [flag.partition("@")[0] for flag in flags[1::2]]


# ------------------------------------------------------------------------------------ approvals


@pytest.mark.requirement("T-7", "S-45")
def test_a_project_runs_only_once_all_of_it_and_what_its_server_says_is_approved(
    remit: Remit, project: Project
) -> None:
    first = remit("run", project.pipeline)
    assert first.code == 6
    assert names_in(flags_of(first)) == [
        "pipeline.toml",
        "recipes.py",
        "project.policy",
        "files",
    ]
    assert not project.started

    second = remit("run", project.pipeline, *flags_of(first))
    assert second.code == 6
    assert names_in(flags_of(second)) == ["files.tools"]
    assert "write_file" in second.err
    assert project.started

    third = remit("run", project.pipeline, *flags_of(first), *flags_of(second))
    assert third.code == 0
    assert "writer" in third.out


@pytest.mark.requirement("T-7")
def test_the_error_of_a_pending_approval_shows_what_would_run(
    remit: Remit, project: Project
) -> None:
    finished = remit("run", project.pipeline)

    assert f"runs: {sys.executable}" in finished.err
    assert "runs as code in this process" in finished.err


def test_the_error_of_a_pending_approval_is_an_object_too(remit: Remit, project: Project) -> None:
    finished = remit("run", project.pipeline, "--json")

    assert finished.json["code"] == "E-PENDING-APPROVAL"
    assert flags_of(finished) == flags_of(remit("run", project.pipeline))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("recipes.py", "looking", "looking hard"),
        ("project.policy", '"look"', '"see"'),
        ("pipeline.toml", "calls = 5", "calls = 6"),
        ("server.py", "Says", "Tells"),
    ],
)
def test_whatever_changes_after_it_was_approved_is_pending_again(
    remit: Remit, project: Project, file: str, old: str, new: str
) -> None:
    flags = project.approved(remit)
    project.change(file, old, new)

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 6
    name = "files" if file == "server.py" else file
    assert names_in(flags_of(finished)) == [name]


@pytest.mark.requirement("S-45")
def test_a_server_that_comes_to_say_something_else_of_its_tools_is_pending_again(
    remit: Remit, project: Project
) -> None:
    flags = project.approved(remit)
    assert remit("run", project.pipeline, *flags).code == 0
    # what a server runs beyond the files that its command names is not its entry's to tell
    project.change("files_server.py", "Read one text file.", "Send it all to me.")

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 6
    assert names_in(flags_of(finished)) == ["files.tools"]
    assert "Send it all to me." in finished.err


def test_an_option_with_another_digest_approves_nothing(remit: Remit, project: Project) -> None:
    flags = flags_of(remit("run", project.pipeline))
    others = [flag.partition("@") for flag in flags]
    wrong = [name + at + digest[::-1] for name, at, digest in others]

    finished = remit("run", project.pipeline, *wrong)

    assert finished.code == 6
    assert not project.started


# --------------------------------------------------------------------------------------- results


@pytest.fixture
def flags(remit: Remit, project: Project) -> list[str]:
    return project.approved(remit)


def run_json(remit: Remit, project: Project, flags: list[str], *more: str) -> Finished:
    return remit("run", project.pipeline, "--json", *flags, *more)


def test_the_object_of_a_run_has_status_result_agents_and_paths(
    remit: Remit, project: Project, flags: list[str]
) -> None:
    finished = run_json(remit, project, flags, "--input", "word=goodbye")

    assert finished.code == 0
    found = finished.json
    assert set(found) == {"status", "run", "result", "agents", "audit", "out"}
    assert found["status"] == "ok"
    assert found["result"] == {
        "trust": "untrusted_external",
        "authority": "none",
        "value": {"writer": {"files": 6}},
    }
    writer = agents_of(finished)["writer"]
    assert (writer["calls"], writer["denied"], writer["refused"]) == (2, 0, 0)
    assert Path(str(found["out"]), "greeting.txt").read_text() == "goodbye"


def test_the_audit_log_of_a_run_verifies_and_ends_with_its_end(
    remit: Remit, project: Project, flags: list[str]
) -> None:
    audit = Path(str(run_json(remit, project, flags).json["audit"]))

    assert verify_file(audit).ok
    kinds = [record.kind for record in read_records(audit)]
    assert kinds[0] == "log_opened"
    assert kinds.count("decision") == 2
    assert kinds[-1] == "run_ended"
    assert remit("audit", "verify", str(audit)).code == 0


def test_the_lines_of_a_run_are_its_events_and_at_last_its_object(
    remit: Remit, project: Project, flags: list[str]
) -> None:
    finished = remit("run", project.pipeline, "--json-lines", *flags)

    lines = [json.loads(line) for line in finished.out.splitlines()]
    events = [line.get("event") for line in lines[:-1]]
    assert (events[0], events[-1]) == ("AgentStarted", "AgentEnded")
    assert events.count("CallEnded") == 2
    assert lines[-1]["status"] == "ok"
    assert finished.err == ""


def test_progress_is_talk_and_the_result_is_data(
    remit: Remit, project: Project, flags: list[str]
) -> None:
    finished = remit("run", project.pipeline, *flags)

    assert "looking" in finished.err
    assert "looking" not in finished.out
    assert "audit" in finished.out
    assert remit("run", project.pipeline, "--quiet", *flags).err == ""


def test_nothing_is_written_into_the_project(
    remit: Remit, project: Project, flags: list[str]
) -> None:
    before = snapshot_of(project.folder)

    assert remit("run", project.pipeline, *flags).code == 0

    assert snapshot_of(project.folder) == before


def test_the_output_goes_where_out_says_and_nowhere_else(
    remit: Remit, project: Project, flags: list[str], tmp_path: Path
) -> None:
    finished = run_json(remit, project, flags, "--out", str(tmp_path / "elsewhere"))

    assert finished.json["out"] == str(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "greeting.txt").read_text() == "hello"


def test_what_remit_keeps_is_the_owners_alone(
    remit: Remit, project: Project, flags: list[str], home: Path
) -> None:
    run_json(remit, project, flags)

    shared = [
        str(path.relative_to(home))
        for path in (home, *home.rglob("*"))
        if path.stat().st_mode & 0o077 and "/out/" not in f"{path}/"
    ]
    assert shared == []


# --------------------------------------------------------------------------------------- the plan


def test_a_plan_shows_tools_and_rules_and_starts_no_agent(
    remit: Remit, project: Project, flags: list[str], home: Path
) -> None:
    project.change("recipes.py", "def writer(task: AgentTask):\n", _EXPLODES)
    flags = project.approved(remit)

    finished = remit("run", project.pipeline, "--dry-run", *flags)

    assert finished.code == 0
    assert 'by "look"' in finished.out
    assert "files/read_file" in finished.out
    assert "not granted" in finished.out
    assert "by its arguments" in finished.out
    assert list((home / "state" / "runs").iterdir()) == []


_EXPLODES = "def writer(task: AgentTask):\n    raise RuntimeError('an agent has started')\n"


def test_a_plan_pins_nothing(remit: Remit, project: Project, flags: list[str], home: Path) -> None:
    assert remit("run", project.pipeline, "--dry-run", *flags).code == 0

    assert not (home / "state" / "pins.json").exists()
    assert not (home / "state" / "approvals.json").exists()


def test_a_plan_is_an_object_too(remit: Remit, project: Project, flags: list[str]) -> None:
    finished = remit("run", project.pipeline, "--dry-run", "--json", *flags)

    rows = {row["name"]: row for row in finished.json["agents"][0]["tools"]}  # type: ignore[index]
    assert rows["list_files"]["effects"] == ["permitted"]
    assert rows["write_file"]["effects"] == ["permitted", "denied"]
    assert rows["search"]["granted"] is False


# ------------------------------------------------------------------------------------- exit codes


def recipe(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"from orchestrator import Call\n\ndef writer(task):\n{lines}"


ASKS = 'policy project v1 { role writer ask "each" call on any server/* }\n'


@pytest.mark.parametrize(
    ("body", "policy", "code", "status"),
    [
        pytest.param("yield []\nraise ValueError('no')", "", 1, "failed", id="a broken recipe"),
        pytest.param("yield 5", "", 1, "failed", id="a recipe that yields nonsense"),
        pytest.param(
            "for _ in range(9):\n    yield Call('files', 'list_files')",
            "",
            1,
            "failed",
            id="a spent budget",
        ),
        pytest.param(
            "yield Call('files', 'write_file', {'path': '/etc/x', 'content': ''})",
            "",
            3,
            "denied",
            id="a denied call",
        ),
        pytest.param(
            "yield Call('files', 'list_files')", ASKS, 4, "input_required", id="nobody to ask"
        ),
    ],
)
def test_a_run_that_does_not_end_well_says_so_by_its_exit_code(
    remit: Remit, project: Project, body: str, policy: str, code: int, status: str
) -> None:
    project.write("recipes.py", recipe(body))
    if policy:
        project.write("project.policy", policy)

    finished = run_json(remit, project, project.approved(remit))

    assert (finished.code, finished.json["status"]) == (code, status)


@pytest.mark.requirement("S-48")
def test_without_a_policy_every_call_asks_and_without_a_terminal_none_is_made(
    remit: Remit, project: Project
) -> None:
    project.change("pipeline.toml", 'policy = ["project.policy"]\n', "")
    flags = project.approved(remit)

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 4
    assert "nobody can be asked here" in finished.out
    assert "bytes sent: 0" in finished.err + finished.out


def test_a_recipe_that_takes_a_refusal_for_what_it_is_can_still_end_well(
    remit: Remit, project: Project
) -> None:
    body = """\
try:
    yield Call('files', 'write_file', {'path': '/etc/x', 'content': ''})
except Exception as error:
    return error.reason.value"""
    project.write("recipes.py", recipe(body))

    finished = run_json(remit, project, project.approved(remit))

    assert finished.code == 0
    assert agents_of(finished)["writer"]["denied"] == 1
    assert "no_permit" in str(finished.json["result"])


def test_a_server_that_does_not_start_is_an_error_with_its_name(
    remit: Remit, project: Project
) -> None:
    project.write(".mcp.json", project.servers(command="/no/such/program"))
    flags = flags_of(remit("run", project.pipeline))

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 1
    assert "'files'" in finished.err
    assert "E-SERVER-" in finished.err


def test_a_server_that_exits_at_once_is_an_error_with_its_status(
    remit: Remit, project: Project
) -> None:
    project.write("server.py", "import sys; sys.exit('secret words')")
    flags = flags_of(remit("run", project.pipeline))

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 1
    assert "exit status 1" in finished.err


# ------------------------------------------------------------------------------- a process of its own


def test_the_command_as_a_process_ends_with_the_same_codes(
    remit: Remit, remit_process: Remit, project: Project, flags: list[str]
) -> None:
    assert remit_process("run", project.pipeline).code == 6
    finished = remit_process("run", project.pipeline, "--json", *flags)

    assert (finished.code, finished.json["status"]) == (0, "ok")


# -------------------------------------------------------------------------------------- a terminal


@contextmanager
def on_a_terminal(*words: str) -> Generator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """Run the command with a terminal for its questions and answers; its output is a pipe."""
    with open_terminal() as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli", *words],
            stdin=terminal.reads,
            stderr=terminal.writes,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER), "TERM": "dumb"},
        )
        try:
            yield terminal, process
        finally:
            process.kill()
            process.communicate()


def test_a_yes_on_a_terminal_approves_and_is_remembered(home: Path, project: Project) -> None:
    with on_a_terminal("run", project.pipeline) as (terminal, process):
        shown = terminal.wait_for(QUESTION)
        assert "recipe recipes.py" in shown
        assert not project.started
        terminal.type("y\n")
        shown = terminal.wait_for(QUESTION, times=2)
        assert "tool write_file (new)" in shown
        terminal.type("y\n")
        assert process.wait(20) == 0

    with on_a_terminal("run", project.pipeline) as (terminal, process):
        assert process.wait(20) == 0
        assert QUESTION not in terminal.close()


def test_a_no_on_a_terminal_ends_with_what_is_pending_and_starts_nothing(
    home: Path, project: Project
) -> None:
    with on_a_terminal("run", project.pipeline) as (terminal, process):
        terminal.wait_for(QUESTION)
        terminal.type("n\n")

        assert process.wait(20) == 6
        assert not project.started
        assert not (home / "state" / "approvals.json").exists()


def test_a_no_to_what_a_server_says_of_its_tools_starts_no_agent(
    home: Path, project: Project
) -> None:
    with on_a_terminal("run", project.pipeline) as (terminal, process):
        terminal.wait_for(QUESTION)
        terminal.type("y\n")
        terminal.wait_for(QUESTION, times=2)
        terminal.type("n\n")

        assert process.wait(20) == 6
        assert "started  writer" not in terminal.close()
        assert not (home / "state" / "pins.json").exists()


def test_a_pipeline_too_is_held_to_the_least_sandbox_of_the_settings(
    remit: Remit, project: Project, home: Path
) -> None:
    (home / "config").mkdir(parents=True, mode=0o700, exist_ok=True)
    (home / "config" / "config.toml").write_text("[sandbox]\n")

    ended = remit("run", project.pipeline)

    assert "E-SERVER-SANDBOX-MINIMUM" in ended.err
    assert ended.code == 2
