"""A project whose agents use hostile words, its runs, and the page's server: real processes, ended at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from orchestrator.cli.demo import files_server
from tests.orchestrator.cli.project import flags_of
from tests.orchestrator.cli.running import ROOT_FOLDER, Finished

__all__ = ["HOSTILE", "World", "new_world", "serving", "working"]

HOSTILE: Final = (
    "</script><script>document.title='owned';window.owned=1</script>"
    "<img src=x onerror=\"window.owned=1\"><svg onload='window.owned=1'>\"'`${7*7}\u202egnp.exe"
)
"""Words that a page which took them for markup would obey."""
_RECIPES: Final = f"""
from orchestrator import Call, Note, RemitError

HOSTILE = {HOSTILE!r}

def scout(task):
    yield Note(HOSTILE)
    for tool in (HOSTILE, "delete_file"):
        try:
            yield Call("files", tool, {{"path": "a"}})
        except RemitError:
            pass
    found = yield Call("files", "list_files")
    return HOSTILE + found.text

def writer(task):
    path = task.inputs["out"] + "/brief.md"
    try:
        yield Call("files", "write_file", {{"path": path, "content": HOSTILE}})
    except RemitError as error:
        return error.code
    return HOSTILE
"""
_PIPELINE: Final = """
remit = 1
name = "brief"
servers = ".mcp.json"
policy = ["project.policy"]

[inputs.out]
type = "path"

[agents.scout]
role = "scout"
model = "recipe:recipes.py:scout"
prompt = "Look."
grant = { tools = ["files/list_files", "files/write_file"] }

[agents.reader]
role = "scout"
model = "recipe:recipes.py:scout"
prompt = "Look too."
grant = { tools = ["files/list_files"] }

[agents.writer]
role = "writer"
needs = ["scout", "reader"]
model = "recipe:recipes.py:writer"
prompt = "Write the brief."
grant = { tools = ["files/write_file"] }
"""
_POLICY: Final = """
policy project v1 {
  role scout, writer
  permit "look" call on files/list_files for role scout
  ask "write" call on files/write_file for role writer when arg(/path) under "${out}"
}
"""
_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class World:
    """A project, and a state folder."""

    project: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT_FOLDER), "REMIT_HOME": str(self.home)}

    def remit(self, *words: str) -> Finished:
        """Run a command to its end."""
        ended = subprocess.run(
            self.command(*words),
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    def command(self, *words: str) -> list[str]:
        """Return the words that start remit."""
        return [sys.executable, "-m", "orchestrator.cli", *words]

    def approved(self) -> list[str]:
        """Return the options that approve the project as it is."""
        flags: list[str] = []
        for _ in range(2):
            ended = self.remit("run", "brief.toml", "--dry-run", "--json", *flags)
            if ended.code == 0:
                break
            flags += flags_of(ended)
        return flags


def new_world(folder: Path) -> World:
    """Write the project."""
    world = World(folder / "project", folder / "home")
    (world.project / ".git").mkdir(parents=True)
    out = "${REMIT_OUT}"
    arguments = ["-I", files_server.__file__, "--root", "${workspaceFolder}", "--out", out]
    entry = {"command": sys.executable, "args": arguments}
    files = {
        ".mcp.json": json.dumps({"mcpServers": {"files": entry}}),
        "recipes.py": _RECIPES,
        "brief.toml": _PIPELINE,
        "project.policy": _POLICY,
        "note.txt": "the note",
    }
    for name, text in files.items():
        (world.project / name).write_text(text)
    return world


@contextmanager
def working(world: World) -> Generator[subprocess.Popen[str]]:
    """Have a run at work, whose writer waits in the inbox; what is left of it at the end is ended."""
    command = world.command("run", "brief.toml", "--inbox", "--quiet", *world.approved())
    process = subprocess.Popen(
        command,
        cwd=world.project,
        env=world.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()  # how it is answered elsewhere: it can be reached now
        assert "remit approvals" in said, said
        yield process
    finally:
        _end(process)


@contextmanager
def serving(world: World, *words: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """Serve the page; yield its address, and the process."""
    process = subprocess.Popen(
        world.command("serve", "--json", *words),
        cwd=world.project,
        env=world.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        told = cast("dict[str, str]", json.loads(process.stdout.readline()))
        yield told["url"], process
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
