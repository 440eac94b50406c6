"""Runs a pipeline, kills it with SIGKILL, takes it up again, and judges by the server's log."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, cast

from tests.orchestrator.cli.running import ROOT_FOLDER

__all__ = ["CALLS", "Killed", "Project", "Told", "killed", "killed_and_resumed", "resumed", "rows"]

PIPELINE: Final = "pipeline.toml"
STEPS: Final = 12
TURNS: Final = 3
CALLS: Final = STEPS * TURNS
"""Calls of a whole run of the twelve steps."""
SECONDS: Final = 60.0
JITTER: Final = 0.012
"""Longer than a call takes: a kill comes before, in and after one."""
RESUMES_MAX: Final = 6

RECIPES: Final = """\
from orchestrator import Call

def step(task):
    number = int(task.agent.removeprefix("s"))
    total = sum(value for name, value in task.inputs.items() if name.startswith("s"))
    first = yield Call("books", "book", {"step": number, "turn": 0})
    total += int(first.text)
    rest = yield [Call("books", "book", {"step": number, "turn": turn}) for turn in (1, 2)]
    return total + sum(int(result.unwrap().text) for result in rest)
"""
POLICY: Final = 'policy p v1 { permit "book" call on books/book }\n'
DOUBT: Final = re.compile(r"^\s+(\S+#\d+)  books/book  (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Told:
    """How a killed run went on: by whom it was ended, and how often it had to be taken up."""

    lines_before: int
    doubts: int
    resumes: int
    result: object


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed: what its server had carried out, and its folder if it had begun."""

    lines: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Project:
    """A pipeline with the log of its server. `calls` are those of a whole run."""

    folder: Path
    calls: int
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def make(cls, folder: Path) -> Project:
        """Write all files of one of twelve steps, three wide."""
        made = cls(folder, CALLS)
        made.write("".join(_step(number) for number in range(STEPS)))
        (folder / "recipes.py").write_text(RECIPES)
        return made

    def write(self, agents: str) -> None:
        """Write the server's entry, the policy, and a pipeline with these agents."""
        self.folder.mkdir(parents=True, exist_ok=True)
        server = ROOT_FOLDER / "tests" / "servers" / "ledgered.py"
        entry = {"command": sys.executable, "args": ["-I", str(server), str(self.log)]}
        (self.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"books": entry}}))
        (self.folder / "p.policy").write_text(POLICY)
        head = 'remit = 1\nname = "p"\nservers = ".mcp.json"\npolicy = ["p.policy"]\n'
        (self.folder / PIPELINE).write_text(head + agents)

    @property
    def log(self) -> Path:
        """What the server carried out, a line for each call. Outside of the project."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def forget(self) -> None:
        """Make it as it was before its first run."""
        shutil.rmtree(self.folder / "home", ignore_errors=True)
        self.log.unlink(missing_ok=True)

    def carried_out(self) -> list[dict[str, int]]:
        """Return the whole lines of the server's log."""
        if not self.log.exists():
            return []
        lines = self.log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def command(self, *words: str) -> list[str]:
        """Return a command of remit."""
        return [sys.executable, "-m", "orchestrator.cli", *words]

    def environment(self) -> dict[str, str]:
        """Return the environment of every command."""
        home = str(self.folder / "home")
        own = {"PYTHONPATH": str(ROOT_FOLDER), "REMIT_HOME": home}
        return {**os.environ, **self.variables, **own}

    def remit(self, *words: str) -> tuple[int, dict[str, object]]:
        """Run a command to its end, and return its exit code and its object."""
        ended = subprocess.run(
            self.command(*words, "--json"),
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return ended.returncode, json.loads(ended.stdout)

    def approvals(self) -> list[str]:
        """Return the options that approve all of it."""
        options: list[str] = []
        for _ in range(2):
            code, told = self.remit("run", PIPELINE, "--dry-run", *options)
            if code == 0:
                break
            options += shlex.split(str(told["fix"]).partition(" add ")[2])
        return options

    def run_folder(self) -> Path | None:
        """Return the folder of the one run that there is."""
        runs = list((self.folder / "home" / "state" / "runs").glob("*/checkpoint.sqlite"))
        return runs[0].parent if runs else None


def killed_and_resumed(project: Project, approvals: list[str], random: Random) -> Told:
    """Kill a run at a point that `random` chooses, take it up to its end, and return what was told.

    Raises AssertionError if a step that had ended began again, or a call was carried out twice.
    """
    return resumed(project, approvals, killed(project, approvals, random))


def killed(
    project: Project, approvals: list[str], random: Random, jitter: float = JITTER
) -> Killed:
    """Kill a run at a point that `random` chooses, and return what there is of it."""
    _killed(project, approvals, random.randrange(project.calls), random.uniform(0, jitter))
    _until_ended(project)
    folder = project.run_folder()
    has_begun = folder is not None and _usable(folder / "checkpoint.sqlite")
    return Killed(len(project.carried_out()), folder if has_begun else None)


def resumed(project: Project, approvals: list[str], run: Killed) -> Told:
    """Take a killed run up to its end. Raises AssertionError as `killed_and_resumed` does."""
    before, folder = run.lines, run.folder
    if folder is None:
        assert before == 0  # it had not begun
        _, told = project.remit("run", PIPELINE, *approvals)
        return Told(before, 0, 0, _value(told))
    ended = _ended_well(folder / "checkpoint.sqlite")
    settle: list[str] = []
    resumes = 0
    for resumes in range(1, RESUMES_MAX):  # noqa: B007 - counted
        code, told = project.remit("run", "--resume", folder.name, *approvals, *settle)
        if code != 4:
            break
        settle = _settled(project, str(told["why"]))
    else:
        raise AssertionError("it was never taken up")
    if told.get("code") == "E-RESUME-DONE":  # the kill came after its end
        assert before == project.calls
        return Told(before, 0, 0, None)
    assert code == 0, told
    again = ended & _begun(folder, after=1)
    assert not again, f"begun again: {again}"
    times = Counter((line["step"], line["turn"]) for line in project.carried_out())
    twice = {call: count for call, count in times.items() if count != 1}
    assert not twice, f"not carried out once: {twice}"
    assert len(times) == project.calls
    return Told(before, len(settle) // 2, resumes, _value(told))


def rows(checkpoint: Path, query: str) -> list[tuple[str, ...]]:
    """Return what a checkpoint holds."""
    with closing(sqlite3.connect(checkpoint)) as database:
        return database.execute(query).fetchall()


def _step(number: int) -> str:
    needs = [f"s{other}" for other in (number - 3, number - 4) if other >= 0]
    return (
        f'[agents.s{number}]\nmodel = "recipe:recipes.py:step"\nneeds = {json.dumps(needs)}\n'
        'grant = { tools = ["books/book"] }\n'
    )


def _killed(project: Project, approvals: list[str], lines: int, seconds: float) -> None:
    """Start a run, and kill it some time after the server's log has so many lines."""
    running = subprocess.Popen(
        project.command("run", PIPELINE, "--quiet", *approvals),
        cwd=project.folder,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def there() -> bool:
        return running.poll() is not None or len(project.carried_out()) >= lines

    _wait(there)
    time.sleep(seconds)  # noqa: TID251 - the point of the kill is chosen by luck
    running.send_signal(signal.SIGKILL)
    running.wait()


def _until_ended(project: Project) -> None:
    """Wait until the servers of a killed run are gone: nothing is carried out after that."""
    for process in {line["pid"] for line in project.carried_out()}:
        _wait(lambda process=process: not Path(f"/proc/{process}").exists())


def _wait(there: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not there():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.001)  # noqa: TID251 - another process has no event of ours


def _usable(checkpoint: Path) -> bool:
    try:
        return bool(rows(checkpoint, "SELECT value FROM run WHERE name = 'content'"))
    except sqlite3.Error:
        return False


def _ended_well(checkpoint: Path) -> set[str]:
    return {name for (name,) in rows(checkpoint, "SELECT step FROM steps WHERE status = 'ok'")}


def _begun(folder: Path, *, after: int) -> set[str]:
    """Return the agents that began in the logs behind the first ones."""
    logs = sorted(folder.glob("audit-*.jsonl"))[after - 1 :]
    records = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return {record["agent"] for record in records if record["kind"] == "agent_started"}


def _settled(project: Project, why: str) -> list[str]:
    """Return what a person would say who looks at the server: what it did, and what it answered."""
    done = {(line["step"], line["turn"]): line["worth"] for line in project.carried_out()}
    options: list[str] = []
    for call, text in DOUBT.findall(why):
        arguments = json.loads(text)
        worth = done.get((arguments["step"], arguments["turn"]))
        how = "repeat" if worth is None else f"answered:{worth}"
        options += ["--settle", f"{call}={how}"]
    assert options, why
    return options


def _value(told: dict[str, object]) -> object:
    return cast("dict[str, object]", told["result"])["value"]
