"""What a stranger reads: the commands to type, links that lead somewhere, examples that hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.checking import check_pipeline
from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import PipelineSpec
from policies import Source, load, parse
from tests.architecture.sources import ROOT

DEMO = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[demo]' && .venv/bin/remit demo"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"

LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page that are marked with a language."""
    return [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == language]


def documents(root: Path) -> list[Path]:
    """The pages of the project: those at its root, and those below `docs` and `examples`."""
    return [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]


def dead_links(root: Path) -> Iterator[str]:
    """Relative links to what is not there."""
    for page in documents(root):
        for target in LINK.findall(page.read_text("utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                yield f"{page.relative_to(root)} -> {target}"


def pages_without_entry(folder: Path) -> list[str]:
    """Pages of a folder that its `README.md` does not link to."""
    index = (folder / "README.md").read_text("utf-8")
    pages = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    return [name for name in pages if f"]({name})" not in index]


def test_the_front_page_has_the_two_commands_each_on_a_line_of_its_own():
    lines = [line.strip() for line in (ROOT / "README.md").read_text("utf-8").splitlines()]

    assert lines.count(DEMO) == 1
    assert lines.count(TESTS) == 1


def front_page_pipeline(folder: Path, pipeline: str, policy: str) -> PipelineSpec:
    """Read and check a pipeline as `remit run` would, with the files that it names beside it."""
    (folder / "release.toml").write_text(pipeline)
    (folder / "release.policy").write_text(policy)
    (folder / "recipes.py").write_text("def historian(task): ...\ndef writer(task): ...\n")
    (folder / ".mcp.json").write_text('{"mcpServers": {}}')
    spec = load_pipeline(folder / "release.toml")
    rules = load([Source("release.policy", policy)], {"out": "/out"})
    check_pipeline(spec, policy=rules, servers=("git", "files"))
    return spec


def test_the_front_pages_policy_and_pipeline_fit_each_other(tmp_path: Path):
    (policy,) = blocks(ROOT / "README.md", "policy")
    (pipeline,) = blocks(ROOT / "README.md", "toml")

    spec = front_page_pipeline(tmp_path, pipeline, policy)

    assert [agent.name for agent in spec.agents] == ["historian", "writer"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("needs =", "need ="), ('role = "writer"', 'role = "wirter"'), ("git/git_log", "gti/git_log")],
)
def test_a_mistake_in_the_front_pages_pipeline_would_be_found(
    right: str, wrong: str, tmp_path: Path
):
    (policy,) = blocks(ROOT / "README.md", "policy")
    (pipeline,) = blocks(ROOT / "README.md", "toml")

    with pytest.raises(ConfigError):
        front_page_pipeline(tmp_path, pipeline.replace(right, wrong), policy)


def test_the_policies_shown_are_policies():
    shown = [text for page in documents(ROOT) for text in blocks(page, "policy")]

    assert all(parse(text, "page.md") for text in shown)


def test_every_link_leads_somewhere():
    assert list(dead_links(ROOT)) == []


def test_a_dead_link_is_found(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("[b](b.md) [up](../README.md#top) [out](https://x.y)")
    (tmp_path / "README.md").write_text("[a](docs/a.md)")

    assert list(dead_links(tmp_path)) == ["docs/a.md -> b.md"]


def test_every_decision_is_listed():
    assert pages_without_entry(ROOT / "docs" / "decisions") == []


def test_a_decision_that_is_not_listed_is_found(tmp_path: Path):
    (tmp_path / "README.md").write_text("[a](a.md)")
    (tmp_path / "a.md").touch()
    (tmp_path / "b.md").touch()

    assert pages_without_entry(tmp_path) == ["b.md"]
