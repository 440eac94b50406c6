"""`remit init`: the first files of a project. Writes only what is not there yet, and starts nothing."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ConfigError, ExitCode
from orchestrator.core.nearest import did_you_mean

__all__ = ["POLICIES", "init"]

POLICIES: Final = ("default",)
"""The policies that there are to begin with, by the name that `--policy` takes."""
_SERVERS: Final = '{\n  "mcpServers": {}\n}\n'
_WORDS: Final = {
    "written": "written",
    "there already": "there already",
    "different": "kept as it is",
}
_DIFF_LINES_MAX: Final = 200
"""Of one file that differs: more says no more."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    text: str


@click.command(short_help="Write a policy and a pipeline to begin with.")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--policy",
    "policy",
    is_flag=False,
    flag_value="default",
    metavar="[NAME]",
    help="Only the policy of that name: " + ", ".join(POLICIES) + ".",
)
@json_option
@click.pass_context
def init(context: click.Context, folder: Path | None, policy: str | None, as_json: bool) -> None:
    """Write a servers file, a policy and a pipeline that runs, into FOLDER, by default this one.

    A file that is there already is never replaced: where it differs, the difference is shown.
    """
    root = folder or Path()
    files = [_policy(root, policy or "default")]
    if policy is None:
        files += [
            _File(root / ".mcp.json", _SERVERS),
            _File(root / "pipelines" / "first.toml", _text("first.toml")),
            _File(root / "pipelines" / "first.py", _text("first.py.txt")),
        ]
    fates = [(file, _write(file)) for file in files]
    if as_json:
        print_json({"files": [{"path": str(file.path), "state": fate} for file, fate in fates]})
    else:
        _tell(fates, root=root, whole=policy is None)
    context.exit(ExitCode.OK.value)


def _policy(root: Path, name: str) -> _File:
    if name not in POLICIES:
        raise ConfigError(
            f"there is no policy {name!r} to begin with",
            code="E-INIT-POLICY",
            fix=did_you_mean(name, POLICIES) or "use one of " + ", ".join(POLICIES),
        )
    text = _text(f"{name}.policy")
    rules = "".join(map(_rule, _labels(root)))
    return _File(
        root / "policies" / f"{name}.policy",
        text.removesuffix("}\n") + f"\n{rules}}}\n" if rules else text,
    )


def _labels(root: Path) -> list[str]:
    """Return the labels of the servers that this project and the profile have."""
    from orchestrator.sessions.layers import SERVERS_FILE, configured_servers
    from orchestrator.sessions.state import StatePaths

    file = root / SERVERS_FILE
    paths = StatePaths.from_environment(os.environ)
    found = configured_servers(
        paths, file if file.exists() else None, environ=os.environ, home=Path.home()
    )
    return [str(entry.name) for entry in found.file.entries]


def _rule(label: str) -> str:
    return f'  ask "{label}"  call, read, get_prompt, complete on "{label}"/*\n'


def _text(name: str) -> str:
    return (resources.files("orchestrator.cli.starter") / name).read_text("utf-8")


def _write(file: _File) -> str:
    """Write a file that is not there, and say what became of it. Raises ConfigError."""
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        # "x": neither a file nor a link that stands there is ever written through
        with file.path.open("x", encoding="utf-8") as opened:
            opened.write(file.text)
    except FileExistsError:
        return "there already" if _there(file) == file.text else "different"
    except OSError as error:
        raise ConfigError(
            f"cannot write {file.path}: {error.strerror}",
            code="E-INIT-FILE",
            fix="name a folder that you can write to",
        ) from error
    return "written"


def _there(file: _File) -> str | None:
    try:
        with file.path.open(encoding="utf-8") as opened:
            return opened.read(len(file.text) * 64)
    except (OSError, UnicodeDecodeError):
        return None


def _tell(fates: list[tuple[_File, str]], *, root: Path, whole: bool) -> None:
    for file, fate in fates:
        print_text(f"{_WORDS[fate]}: {file.path}")
        there = _there(file) if fate == "different" else None
        # what a servers file holds may be secret, and what is new in ours is nothing
        if there is not None and file.path.suffix != ".json":
            _show_difference(file, there)
    if whole:
        pipeline = root / "pipelines" / "first.toml"
        print_text(
            f"next: remit run {pipeline}, then add servers to .mcp.json or take them over with "
            "`remit mcp import`",
            to_stderr=True,
        )
    else:
        print_text(
            f"next: name it in a pipeline (policy = [...]), or check it: "
            f"remit policy check {fates[0][0].path}",
            to_stderr=True,
        )


def _show_difference(file: _File, there: str) -> None:
    lines = list(
        difflib.unified_diff(
            there.splitlines(),
            file.text.splitlines(),
            fromfile=f"{file.path} (kept)",
            tofile="what would have been written",
            lineterm="",
        )
    )
    for line in lines[:_DIFF_LINES_MAX]:
        print_text(f"  {line}")
    if len(lines) > _DIFF_LINES_MAX:
        print_text(f"  … {len(lines) - _DIFF_LINES_MAX} lines more")
