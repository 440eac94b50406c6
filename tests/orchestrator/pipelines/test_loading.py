from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.agents.budget import Budget
from orchestrator.core.errors import ConfigError, ExitCode
from orchestrator.pipelines.loading import AGENTS_MAX, INPUTS_MAX, load_pipeline
from orchestrator.pipelines.spec import InputType, PipelineSpec

Load = Callable[[str], PipelineSpec]

WHOLE = """\
remit = 1
name = "release brief"
servers = ".mcp.json"
policy = ["p.policy"]

[inputs.repo]
type = "path"
default = "."

[agents.historian]
role = "history"
model = "recipe:recipes.py:brief"
prompt = "look at ${inputs.repo}"
grant = { tools = ["git/git_log", "git/git_{show,diff*}"] }
budget = { turns = 20, usd = 0.5 }

[agents.reader]
model = "openai:gpt-5"

[agents.writer]
needs = ["historian", "reader"]
"""
BARE = 'remit = 1\nname = "x"\n'


def refused(load: Load, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(text)
    return caught.value


def line_of(error: ConfigError) -> int:
    assert error.where is not None
    return error.where.line


def test_a_pipeline_is_read_with_everything_that_it_names(load: Load, tmp_path: Path) -> None:
    spec = load(WHOLE)

    assert spec.name == "release brief"
    assert spec.file.name == "brief.toml"
    assert spec.servers is not None
    assert spec.servers.path == tmp_path.resolve() / ".mcp.json"
    assert [file.name for file in spec.policies] == ["p.policy"]
    assert spec.recipes["recipes.py"].content == b"def brief(): ..."


def test_an_agent_is_read_whole(load: Load) -> None:
    historian = load(WHOLE).agent("historian")

    assert (historian.role, historian.model) == ("history", "recipe:recipes.py:brief")
    assert historian.budget == Budget(turns=20, usd=0.5)
    assert historian.authority.tools == ("git/git_log", "git/git_{show,diff*}")
    assert historian.where.line == 10


def test_what_an_agent_does_not_say_is_its_name_or_nothing(load: Load) -> None:
    writer = load(WHOLE).agent("writer")

    assert (writer.role, writer.model, writer.prompt) == ("writer", None, "")
    assert writer.budget == Budget()
    assert writer.grant is None


def test_no_grant_leaves_the_policy_alone_and_an_empty_one_leaves_nothing(load: Load) -> None:
    spec = load(BARE + "[agents.a]\n[agents.b.grant]\n")

    assert spec.agent("a").authority.tools is None
    assert spec.agent("b").authority.tools == ()


def test_agents_stand_in_generations(load: Load) -> None:
    assert load(WHOLE).order == (("historian", "reader"), ("writer",))


def test_inputs_are_read_with_their_types(load: Load) -> None:
    spec = load(
        BARE + "[inputs.a]\n[inputs.n]\ntype = 'integer'\ndefault = 3\n"
        "[inputs.b]\ntype = 'boolean'\ndefault = false\n[agents.a]\n"
    )

    assert [(item.name, item.type, item.default) for item in spec.inputs] == [
        ("a", InputType.TEXT, None),
        ("n", InputType.INTEGER, 3),
        ("b", InputType.BOOLEAN, False),
    ]


@pytest.mark.parametrize(
    ("text", "line", "near"),
    [
        (BARE + 'sevrers = "x"\n[agents.a]\n', 3, "servers"),
        (BARE + "[agents.a]\nrol = 'x'\n", 4, "role"),
        (BARE + "[agents.a]\nbudget = { turn = 1 }\n", 4, "turns"),
        (BARE + "[agents.a]\ngrant = { tool = [] }\n", 4, "tools"),
        (BARE + "[inputs.a]\ntyp = 'text'\n[agents.a]\n", 4, "type"),
        (BARE + "[inputs.a]\ntype = 'txt'\n[agents.a]\n", 4, "text"),
        (BARE + "[agents.reader]\n[agents.a]\nneeds = ['raeder']\n", 5, "reader"),
        (BARE + "[inputs.repo]\n[agents.a]\nprompt = '${inputs.rep}'\n", 5, "repo"),
        (BARE + "[agents.a]\nmodel = 'recipe:recipse.py:brief'\n", 4, "recipes.py"),
        (BARE + "[agents.a]\nmodel = 'recipes:recipes.py:brief'\n", 4, "recipe:"),
        (BARE + "policy = ['p.polcy']\n[agents.a]\n", 3, "p.policy"),
        (BARE + "servers = '.mpc.json'\n[agents.a]\n", 3, ".mcp.json"),
    ],
)
def test_a_misspelt_name_is_an_error_with_its_line_and_the_right_one(
    load: Load, text: str, line: int, near: str
) -> None:
    error = refused(load, text)

    assert near in error.fix
    assert line_of(error) == line
    assert error.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    "text",
    [
        "",
        'name = "x"\n[agents.a]\n',
        "remit = 2\nname = 'x'\n[agents.a]\n",
        "remit = true\nname = 'x'\n[agents.a]\n",
        "remit = 1\n[agents.a]\n",
        "remit = 1\nname = ''\n[agents.a]\n",
        f"remit = 1\nname = '{'x' * 129}'\n[agents.a]\n",
        BARE,
        BARE + "agents = []\n",
        BARE + "[agents]\n",
        BARE + "agents.a = 1\n",
        BARE + "[agents.'a b']\n",
        BARE + "[agents.parent]\n",
        BARE + "[inputs.'a-b']\n[agents.a]\n",
        BARE + "[inputs.a]\ntype = 'integer'\ndefault = '3'\n[agents.a]\n",
        BARE + "[inputs.a]\ntype = 'integer'\ndefault = true\n[agents.a]\n",
        BARE + "[inputs.a]\ntype = 'boolean'\ndefault = 1\n[agents.a]\n",
        BARE + "[inputs.a]\ndefault = 1\n[agents.a]\n",
        BARE + "[agents.a]\nneeds = 'b'\n[agents.b]\n",
        BARE + "[agents.a]\nneeds = ['b', 'b']\n[agents.b]\n",
        BARE + "[agents.a]\nprompt = '${repo}'\n",
        BARE + "[agents.a]\nprompt = '${inputs.a'\n",
        BARE + "[agents.a]\nbudget = { turns = -1 }\n",
        BARE + "[agents.a]\nbudget = { turns = 1.5 }\n",
        BARE + "[agents.a]\nbudget = { seconds = inf }\n",
        BARE + "[agents.a]\nmap = 'inputs.documents'\n",
        BARE + "[agents.a]\nreturns = 'x.json'\n",
        BARE + "servers = 3\n[agents.a]\n",
        BARE + "policy = 'p.policy'\n[agents.a]\n",
    ],
)
def test_what_is_no_pipeline_is_an_error_in_that_file(load: Load, text: str) -> None:
    error = refused(load, text)

    assert error.where is not None
    assert error.where.path.endswith("brief.toml")


@pytest.mark.parametrize(
    "model", ["", "gpt", "openai:", ":x", "recipe:recipes.py", "recipe:recipes.py:a b", "O P:x"]
)
def test_what_names_no_model_is_an_error(load: Load, model: str) -> None:
    assert line_of(refused(load, BARE + f"[agents.a]\nmodel = '{model}'\n")) == 4


@pytest.mark.parametrize(
    "entry", ["git", "git/", "/git_log", "*/x", "a b/x", "git/{a", "git/{a,}", "git/" + "x" * 513]
)
def test_what_grants_nothing_is_an_error_at_its_place(load: Load, entry: str) -> None:
    error = refused(load, BARE + f"[agents.a.grant]\ntools = [\n 'git/ok',\n '{entry}',\n]\n")

    assert error.code == "E-PIPELINE-GRANT"
    assert line_of(error) == 6


def test_a_resource_is_granted_by_its_uri(load: Load) -> None:
    spec = load(BARE + "[agents.a.grant]\nresources = ['docs/doc://x/**']\n")
    assert spec.agent("a").grant is not None

    error = refused(load, BARE + "[agents.a.grant]\nresources = ['docs/readme']\n")

    assert error.code == "E-PIPELINE-GRANT"


def test_a_circle_is_named_member_by_member(load: Load) -> None:
    error = refused(
        load,
        BARE + "[agents.start]\nneeds = ['c']\n[agents.a]\nneeds = ['b']\n"
        "[agents.b]\nneeds = ['c']\n[agents.c]\nneeds = ['a']\n",
    )

    assert "a needs b needs c needs a" in error.message
    assert line_of(error) == 6


def test_an_agent_that_needs_itself_is_a_circle(load: Load) -> None:
    assert "a needs a" in refused(load, BARE + "[agents.a]\nneeds = ['a']\n").message


def test_one_agent_too_many_is_an_error(load: Load) -> None:
    agents = "".join(f"[agents.a{n}]\n" for n in range(AGENTS_MAX))
    assert len(load(BARE + agents).agents) == AGENTS_MAX

    assert "agents" in refused(load, BARE + agents + "[agents.b]\n").message


def test_one_input_too_many_is_an_error(load: Load) -> None:
    inputs = "".join(f"[inputs.a{n}]\n" for n in range(INPUTS_MAX))
    assert len(load(BARE + inputs + "[agents.a]\n").inputs) == INPUTS_MAX

    assert "inputs" in refused(load, BARE + inputs + "[inputs.b]\n[agents.a]\n").message


# ---------------------------------------------------------------------------- files of a project


def test_a_file_above_is_found_as_long_as_it_is_the_projects(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{}")
    (tmp_path / "pipelines").mkdir()
    path = tmp_path / "pipelines" / "p.toml"
    path.write_text(BARE + 'servers = "../.mcp.json"\n[agents.a]\n')

    spec = load_pipeline(path, root=tmp_path)

    assert spec.servers is not None
    assert spec.servers.name == ".mcp.json"
    assert spec.file.name == "pipelines/p.toml"


@pytest.mark.parametrize(
    "text", ["../secret", "/etc/passwd", "link", "sub/../../secret", "", "a\\\\b", "sub", "\\u0000"]
)
def test_a_project_names_no_file_outside_of_it(tmp_path: Path, text: str) -> None:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("hush")
    (root / "link").symlink_to(tmp_path / "secret")
    path = root / "p.toml"
    path.write_text(BARE + f'servers = "{text}"\n[agents.a]\n')

    with pytest.raises(ConfigError) as caught:
        load_pipeline(path, root=root)

    assert line_of(caught.value) == 3
    assert "hush" not in caught.value.message


def test_links_that_lead_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "p.toml").write_text(BARE + 'servers = "a"\n[agents.a]\n')

    with pytest.raises(ConfigError):
        load_pipeline(tmp_path / "p.toml")


def test_a_pipeline_that_is_not_there_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "brief.toml").write_text(BARE)

    with pytest.raises(ConfigError) as caught:
        load_pipeline(tmp_path / "breif.toml")

    assert caught.value.fix == "did you mean 'brief.toml'?"


def test_what_is_used_is_what_was_read_once(load: Load, tmp_path: Path) -> None:
    spec = load(WHOLE)
    (tmp_path / "recipes.py").write_text("import evil")

    assert spec.recipes["recipes.py"].content == b"def brief(): ..."


def test_a_folder_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(tmp_path)

    assert (caught.value.code, caught.value.fix) == (
        "E-PIPELINE-FILE",
        "name the pipeline's file in it",
    )
