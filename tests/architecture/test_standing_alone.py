"""What each part needs to be loaded: the two libraries nothing of ours, the command little at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.architecture.sources import PACKAGES, ROOT

pytestmark = pytest.mark.subprocess

HEAVY = ("authlib", "httpx", "networkx", "opentelemetry.sdk", "pydantic", "rich")
"""What `remit --help`, `--version` and completion may not load."""


def run_python(code: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", dedent(code)],
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# ------------------------------------------------------------------------------- the two libraries


def import_alone(package: str, folder: Path) -> str:
    """Import every module of a package with the checkout off the path; return what went wrong."""
    code = f"""
        import importlib, pkgutil, sys
        from pathlib import Path

        root = Path({str(ROOT)!r})
        sys.path = [{str(folder)!r}] + [p for p in sys.path if p and Path(p).resolve() != root]
        package = importlib.import_module({package!r})
        assert Path(package.__file__).is_relative_to({str(folder)!r}), package.__file__
        for module in pkgutil.walk_packages(package.__path__, {package!r} + "."):
            importlib.import_module(module.name)
        tops = {{name.partition(".")[0] for name in sys.modules}}
        others = tops & set({PACKAGES!r}) - {{{package!r}}}
        assert not others, others
        """
    finished = run_python(code, folder)
    return finished.stderr


@pytest.mark.parametrize("package", ["mcp_client", "policies"])
def test_a_library_imports_alone(package: str, tmp_path: Path):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)

    assert import_alone(package, tmp_path) == ""


def test_a_library_that_leans_on_another_is_found(tmp_path: Path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "__init__.py").touch()
    (tmp_path / "policies" / "model.py").write_text("import mcp_client\n")

    assert "No module named 'mcp_client'" in import_alone("policies", tmp_path)


# ------------------------------------------------------------------------------------ the command


def heavy_modules(code: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run code that may exit; return the heavy libraries it loaded, or how it failed."""
    script = f"""
        import sys
        try:
            {code}
        except SystemExit as end:
            assert not end.code, end.code
        finally:
            loaded = [name for name in {HEAVY!r} if name in sys.modules]
            sys.stderr.write(" ".join(loaded))
        """
    return run_python(script, cwd, **(env or {})).stderr


def call_remit(*arguments: str) -> str:
    argv = ["remit", *arguments]
    return f"sys.argv = {argv!r}; from orchestrator.cli import main; main()"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_asking_the_command_about_itself_loads_nothing_heavy(option: str, tmp_path: Path):
    assert heavy_modules(call_remit(option), tmp_path) == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("words", ["remit ", "remit policy ", "remit run "])
def test_completion_loads_nothing_heavy(shell: str, words: str, tmp_path: Path):
    env = {
        "_REMIT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }

    assert heavy_modules(call_remit(), tmp_path, env) == ""


def test_completion_completes(tmp_path: Path):
    env = {"_REMIT_COMPLETE": "bash_complete", "COMP_WORDS": "remit de", "COMP_CWORD": "1"}

    finished = run_python(
        "from orchestrator.cli import main; import sys; sys.argv = ['remit']; main()",
        tmp_path,
        **env,
    )

    assert finished.stdout.split() == ["plain,demo"]


def test_a_heavy_import_is_found(tmp_path: Path):
    code = "import pydantic, opentelemetry.sdk"

    assert heavy_modules(code, tmp_path) == "opentelemetry.sdk pydantic"


# ---------------------------------------------------------------------------- nothing from outside

OUTSIDE = ("../" + "shared",)
"""Folders beside a checkout: a stranger's clone has none."""


def outside_mentions(root: Path) -> list[str]:
    """Tracked files of a checkout that mention a folder outside of it."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "grep", "-lIF"]
    patterns = [part for place in OUTSIDE for part in ("-e", place)]
    finished = subprocess.run(
        [*command, *patterns], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode in (0, 1), finished.stderr
    return finished.stdout.splitlines()


def test_nothing_mentions_a_folder_outside_the_project():
    assert outside_mentions(ROOT) == []


def test_a_mention_of_an_outside_folder_is_found(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    (tmp_path / "notes.md").write_text(f"see {OUTSIDE[0]}/design\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "notes.md"], check=True, timeout=60)

    assert outside_mentions(tmp_path) == ["notes.md"]
