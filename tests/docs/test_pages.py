"""Every block of the pages for users is what it says it is, and the tables are those of the source."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from mcp_client.transports.stdio.environment import INHERITED_NAMES
from orchestrator.agents.budget import DEFAULT_BUDGET, Budget
from orchestrator.agents.model import AgentTask
from orchestrator.agents.recipe import RecipeSource, load_recipe
from orchestrator.audit.kinds import AuditKind
from orchestrator.cli.frame import ROOT as COMMAND
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import InputType
from orchestrator.pipelines.stepping import STEP_KEYS
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.configuration.keys import KNOWN, NARROWING, REMOTE, WIDENING
from orchestrator.sessions.entries import EntryState
from orchestrator.sessions.sandbox import Sandbox
from policies import parse
from tests.architecture.sources import ROOT, sources
from tests.docs.pages import PAGES, Block, blocks, commands

REFERENCE: Final = ROOT / "docs" / "reference"
ALL: Final = tuple(block for page in PAGES for block in blocks(page))
LANGUAGES: Final = {"toml", "policy", "json", "python", "console", "sh", "text", "markdown"}
RECIPE: Final = re.compile(r"^def (\w+)\(task(?:: AgentTask)?\):", re.MULTILINE)


def of(*languages: str) -> list[object]:
    return [pytest.param(each, id=str(each)) for each in ALL if each.language in languages]


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of a page's tables."""
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith("|---")
    ]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([a-zA-Z_]+)`", cell))


def first_words(text: str) -> set[str]:
    """The words in the first cells of a page's tables."""
    return {word for row in rows(text) for word in words(row[0])}


def section(text: str, heading: str) -> str:
    """What a page says under a heading, up to the next one of that level."""
    _, _, after = text.partition(f"\n## {heading}\n")
    return after.partition("\n## ")[0]


def test_every_block_says_what_it_is():
    assert [str(block) for block in ALL if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", of("toml"))
def test_a_pipeline_is_one(block: Block, tmp_path: Path):
    text = block.text if "remit = 1" in block.text else FRAME + block.text
    for file in tomllib.loads(text).get("policy", []):
        (tmp_path / file).touch()
    (tmp_path / ".mcp.json").touch()
    (tmp_path / "recipes.py").touch()
    (tmp_path / "pipeline.toml").write_text(text)

    assert load_pipeline(tmp_path / "pipeline.toml").agents != ()


FRAME: Final = 'remit = 1\nname = "part of one"\n[agents.clerk]\nmodel = "openai:x"\n'


# the tutorial's first policy has slips in it, which its own test follows to the end
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(each, id=str(each))
        for each in ALL
        if each.language == "policy" and each.page.name != "first-policy.md"
    ],
)
def test_a_policy_is_one(block: Block):
    assert parse(block.text, str(block)) != ()


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block):
    assert json.loads(block.text) is not None


@pytest.mark.parametrize("block", of("python"))
def test_a_program_compiles_and_its_recipes_load(block: Block):
    compile(block.text, str(block), "exec")
    source = RecipeSource(path=str(block), module="page", content=block.text.encode())
    for name in RECIPE.findall(block.text):
        load_recipe(source, name)


@pytest.mark.parametrize("block", of("console", "sh"))
def test_the_commands_of_a_page_are_commands(block: Block):
    assert [words for words in remit_commands(block) if usage_error(words)] == []


def remit_commands(block: Block) -> Iterator[str]:
    """The calls of `remit` in a block, without what a shell makes of their output."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [command.words for command in commands(block)]
    for line in lines:
        words = re.split(r" *(?:[;|]|#)", line)[0]
        if words.startswith("remit "):
            yield words


def usage_error(words: str) -> bool:
    """True if there is no such command, option or argument. Nothing is run."""
    command: click.Command = COMMAND
    rest = shlex.split(words)[1:]
    context = click.Context(command)
    try:
        while isinstance(command, click.Group):
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command = found
        command.make_context("remit", rest)
    except (click.ClickException, ConfigError):
        return True
    return False


@pytest.mark.parametrize(
    "words", ["remit rnu p.toml", "remit run p.toml --josn", "remit audit tail a b"]
)
def test_a_command_that_there_is_not_is_found(words: str):
    assert usage_error(words)


# ------------------------------------------------------------------------------------- pipelines


def wrong(text: str, folder: Path) -> str:
    """What is said about a pipeline in which something is wrong."""
    (folder / "p.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_pipeline(folder / "p.toml")
    return caught.value.code


HEAD: Final = 'remit = 1\nname = "x"\n'
PLACES: Final = {
    "The file": "KEY = 3.5\n" + HEAD + "[agents.a]",
    "`[inputs.NAME]`": HEAD + "[agents.a]\n[inputs.i]\nKEY = 3.5",
    "`[agents.NAME]`": HEAD + "[agents.a]\nKEY = 3.5",
    "`grant`": HEAD + "[agents.a]\ngrant = { KEY = 3.5 }",
    "`budget`": HEAD + '[agents.a]\nbudget = { KEY = "x" }',
}
"""For each table of keys a file with one of them, of a type that it may not have."""


@pytest.mark.parametrize("heading", PLACES)
def test_every_key_of_a_pipeline_is_known(heading: str, tmp_path: Path):
    text = section(page("pipelines.md"), heading)
    keys = {next(iter(words(row[0])), "") for row in rows(text)} - {""}
    codes = {key: wrong(PLACES[heading].replace("KEY", key), tmp_path) for key in keys}

    assert keys
    assert [key for key, code in codes.items() if code == "E-CONFIG-UNKNOWN-KEY"] == []


def keys_in(module: str) -> set[str]:
    """The keys that a module of the source lists as those that there are."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    return {
        constant.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "only"
        for argument in node.args
        for constant in ast.walk(argument)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }


def test_every_key_of_a_pipeline_is_described():
    keys = keys_in("orchestrator/pipelines/loading.py") | keys_in(
        "orchestrator/pipelines/rights.py"
    )

    assert (keys | set(STEP_KEYS)) - first_words(page("pipelines.md")) == set()


def test_every_type_of_an_input_is_described():
    assert {kind.value for kind in InputType} <= words(page("pipelines.md"))


def test_the_budget_without_one_is_the_one_described():
    described = {
        next(iter(words(row[0]))): row[3]
        for row in rows(section(page("pipelines.md"), "`budget`"))[1:]
    }
    values = {name: getattr(DEFAULT_BUDGET, name) for name in Budget.__slots__}

    assert described == {
        name: "none" if value is None else f"{value:,.0f}" for name, value in values.items()
    }


# ----------------------------------------------------------------------------------- servers files


def servers_blocks() -> list[Block]:
    """The first is a whole file, the second one with a sandbox."""
    return [block for block in blocks(REFERENCE / "servers-file.md") if block.language == "json"]


def test_the_sandbox_shown_is_read_as_the_page_says(tmp_path: Path):
    source = ServersSource(
        minimum=None, origin=Origin.PROFILE, project=tmp_path, home=Path("/home/u"), environ={}
    )
    found = read_servers(read_json(servers_blocks()[1].text.encode(), "page"), source)

    assert found.entries[0].sandbox == Sandbox(
        writes=(str(tmp_path / "out"),), reads=("/home/u/.nvm",), required=True
    )


def test_the_servers_file_shown_is_read_as_the_page_says(tmp_path: Path):
    source = ServersSource(
        minimum=None,
        origin=Origin.PROJECT,
        project=tmp_path,
        home=tmp_path,
        environ={},
        allow_variables=frozenset({"SHOP_LOG"}),
    )
    found = read_servers(read_json(servers_blocks()[0].text.encode(), "page"), source)

    assert {entry.name: entry.state for entry in found.entries} == {
        "git": EntryState.READY,
        "web": EntryState.READY,
        "old": EntryState.DISABLED,
    }
    assert found.warnings == ()


def test_every_key_of_a_server_is_described():
    named = KNOWN | REMOTE | WIDENING | NARROWING

    assert named - first_words(page("servers-file.md")) == set()


def test_every_variable_that_a_server_is_given_is_named():
    assert words(page("state.md")) >= INHERITED_NAMES


# ------------------------------------------------------------------------------------ the audit log


def written() -> dict[str, set[str]]:
    """The kinds of records that the source writes, each with those fields that can be seen there."""
    found: dict[str, set[str]] = {}
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                kind = kind_of(node.args[0]) if node.args else None
                if kind is not None and node.func.attr in {"append", "_record"}:
                    found.setdefault(kind, set()).update(fields_of(node))
    return found


def kind_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and node.value in set(AuditKind):
        return str(node.value)
    if isinstance(node, ast.Attribute) and node.attr in AuditKind.__members__:
        return AuditKind[node.attr].value
    return None


def fields_of(call: ast.Call) -> set[str]:
    keys = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    for argument in call.args[1:]:
        if isinstance(argument, ast.Dict):
            keys |= {
                key.value
                for key in argument.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return keys


def described() -> dict[str, set[str]]:
    kinds = section(page("audit.md"), "Kinds")
    return {
        next(iter(words(row[0]))): words(row[2])
        for row in rows(kinds)
        if len(row) == 3 and words(row[0])
    }


def test_every_kind_of_record_that_is_written_is_described_and_no_other():
    assert set(described()) == set(written())


@pytest.mark.parametrize("kind", sorted(written()))
def test_every_field_of_a_record_is_described(kind: str):
    assert written()[kind] - described().get(kind, set()) == set()


# ------------------------------------------------------------------------------------------- limits


@pytest.mark.subprocess
def test_the_pages_that_are_made_from_the_source_are_current():
    said = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (said.returncode, said.stderr) == (0, "")


def test_a_recipe_page_names_every_field_of_the_task():
    assert set(AgentTask.__slots__) <= first_words(page("recipes.md"))
