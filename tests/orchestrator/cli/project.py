"""A project of a test: a pipeline with a recipe, a policy and one small real server."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from tests.orchestrator.cli.running import ROOT_FOLDER, Finished, Remit

__all__ = ["PIPELINE", "POLICY", "RECIPES", "Project", "flags_of", "snapshot_of"]

PIPELINE: Final = """\
remit = 1
name = "greeting"
servers = ".mcp.json"
policy = ["project.policy"]

[inputs.word]
type = "text"
default = "hello"

[inputs.out]
type = "path"

[agents.writer]
role = "writer"
model = "recipe:recipes.py:writer"
prompt = "Write ${inputs.word}."
grant = { tools = ["files/write_file", "files/list_files"] }
budget = { turns = 5, calls = 5, seconds = 20 }
"""
POLICY: Final = """\
policy project v1 {
  role writer
  permit "look"  call on files/list_files for role writer
  permit "write" call on files/write_file for role writer
    when arg(/path) under "${out}"
  forbid "dots" call on files/write_file when arg(/content) == "forbidden"
}
"""
RECIPES: Final = """\
from orchestrator import AgentTask, Call, Note

def writer(task: AgentTask):
    yield Note("looking")
    found = yield Call("files", "list_files")
    path = f"{task.inputs['out']}/greeting.txt"
    yield Call("files", "write_file", {"path": path, "content": str(task.inputs["word"])})
    return {"files": len(found.text.splitlines())}
"""
_SERVER: Final = '''\
"""Says that it has started, then serves files."""
import pathlib, runpy, sys
pathlib.Path(sys.argv.pop()).touch()
runpy.run_path(str(pathlib.Path(__file__).with_name("files_server.py")), run_name="__main__")
'''


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a pipeline, and a file outside of it that its server makes when it starts."""

    folder: Path
    marker: Path

    @classmethod
    def make(cls, place: Path) -> Project:
        """Write all files of the project."""
        project = cls(place / "project", place / "a-server-has-started")
        project.folder.mkdir()
        project.write("pipeline.toml", PIPELINE)
        project.write("project.policy", POLICY)
        project.write("recipes.py", RECIPES)
        project.write("server.py", _SERVER)
        shipped = ROOT_FOLDER / "orchestrator" / "cli" / "demo" / "files_server.py"
        shutil.copy(shipped, project.folder / "files_server.py")
        project.write(".mcp.json", project.servers())
        return project

    def servers(self, **more: object) -> str:
        """Return the servers file; `more` stands beside the keys of its one entry."""
        here = "${workspaceFolder}"
        arguments = ["-I", f"{here}/server.py", "--root", here, "--out", "${REMIT_OUT}"]
        entry = {"command": sys.executable, "args": [*arguments, str(self.marker)], **more}
        return json.dumps({"mcpServers": {"files": entry}}, indent=2)

    @property
    def pipeline(self) -> str:
        return str(self.folder / "pipeline.toml")

    @property
    def started(self) -> bool:
        """True if its server was ever started."""
        return self.marker.exists()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def change(self, name: str, old: str, new: str) -> None:
        """Replace one text in a file by another. It must stand there."""
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new, 1))

    def approved(self, remit: Remit) -> list[str]:
        """Return the options that approve all of it as it is now, as a script would collect them."""
        flags: list[str] = []
        for _ in range(2):
            finished = remit("run", self.pipeline, "--dry-run", "--json", *flags)
            if finished.code == 0:
                return flags
            flags += flags_of(finished)
        return flags


def flags_of(finished: Finished) -> list[str]:
    """Return the options that a refused run names, ready to paste; from its JSON or its text."""
    if finished.out.startswith("{"):
        fix = str(finished.json["fix"])
    else:
        fix = next(line for line in finished.err.splitlines() if "--approve" in line)
    words = shlex.split(fix[fix.index("--approve") :])
    assert words[::2] == ["--approve"] * (len(words) // 2), words
    return words


def snapshot_of(folder: Path) -> dict[str, bytes]:
    """Return everything in a folder: names and contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def agents_of(finished: Finished) -> dict[str, dict[str, object]]:
    """Return the agents of `--json` by name."""
    agents = cast("list[dict[str, object]]", finished.json["agents"])
    return {str(agent["name"]): agent for agent in agents}
