from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.catalog.listing import Catalog, list_server
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.pipelines.checking import (
    check_models,
    check_pipeline,
    check_tools,
    pipeline_items,
)
from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import PipelineSpec
from orchestrator.sessions.approvals import (
    ApprovalBook,
    ApprovalState,
    ItemKind,
    Origin,
    PendingApprovalError,
)
from policies import PolicySet, Source, load as load_policies

Load = Callable[[str], PipelineSpec]

HEAD = 'remit = 1\nname = "x"\n'
POLICY = load_policies(
    [Source("p.policy", "policy p v1 {\n  default deny\n  role historian, writer\n}\n")]
)
NO_ROLES = load_policies([Source("p.policy", "policy p v1 {\n  default deny\n}\n")])


def tools(*names: str) -> list[object]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


CATALOG = Catalog(
    [list_server(ServerName("git"), [*tools("git_log", "git_show"), {"name": "bad"}])]
)


def refused(spec: PipelineSpec, policy: PolicySet = POLICY) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_pipeline(spec, policy=policy, servers=("git", "time"))
    return caught.value


def tool_refused(spec: PipelineSpec) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_tools(spec, catalog=CATALOG, builtins=("list_capabilities",))
    return caught.value


def line_of(error: ConfigError) -> int:
    assert error.where is not None
    return error.where.line


def test_a_role_that_no_policy_declares_is_an_error_with_the_nearest(load: Load) -> None:
    error = refused(load(HEAD + "[agents.a]\nrole = 'historain'\n"))

    assert error.code == "E-PIPELINE-ROLE"
    assert error.fix == "did you mean 'historian'?"
    assert line_of(error) == 4


def test_an_agents_name_is_its_role_and_is_checked_as_one(load: Load) -> None:
    assert "'wirter'" in refused(load(HEAD + "[agents.wirter]\n")).message


def test_where_no_policy_declares_roles_any_will_do(load: Load) -> None:
    check_pipeline(load(HEAD + "[agents.any]\n"), policy=NO_ROLES, servers=())


@pytest.mark.parametrize("kind", ["tools", "prompts", "delegate"])
def test_a_server_that_there_is_not_is_an_error_with_the_nearest(load: Load, kind: str) -> None:
    error = refused(load(HEAD + f"[agents.writer.grant]\n{kind} = ['time/x', 'gti/git_log']\n"))

    assert error.code == "E-PIPELINE-SERVER"
    assert error.fix == "did you mean 'git'?"
    assert line_of(error) == 4


def test_the_builtin_tools_can_be_granted(load: Load) -> None:
    spec = load(HEAD + "[agents.writer.grant]\ntools = ['remit/list_*']\n")

    check_pipeline(spec, policy=POLICY, servers=())
    check_tools(spec, catalog=CATALOG, builtins=("list_capabilities",))


@pytest.mark.parametrize("kind", ["tools", "delegate"])
def test_a_tool_that_its_server_does_not_offer_is_an_error(load: Load, kind: str) -> None:
    error = tool_refused(load(HEAD + f"[agents.a.grant]\n{kind} = ['git/git_lgo']\n"))

    assert error.code == "E-PIPELINE-TOOL"
    assert error.fix == "did you mean 'git_log'?"
    assert line_of(error) == 4


@pytest.mark.parametrize("entry", ["git/push_*", "git/git_{log,push}", "remit/spwan"])
def test_a_pattern_that_matches_no_tool_is_an_error(load: Load, entry: str) -> None:
    assert tool_refused(load(HEAD + f"[agents.a.grant]\ntools = ['{entry}']\n"))


@pytest.mark.parametrize("entry", ["git/*", "git/git_{log,show}", "git/*_show", "time/anything"])
def test_a_pattern_that_matches_or_whose_server_is_down_passes(load: Load, entry: str) -> None:
    check_tools(load(HEAD + f"[agents.a.grant]\ntools = ['{entry}']\n"), catalog=CATALOG)


def test_a_quarantined_tool_is_told_with_the_reason(load: Load) -> None:
    assert (
        "input schema" in tool_refused(load(HEAD + "[agents.a.grant]\ntools = ['git/bad']\n")).why
    )


def test_an_agent_without_a_model_is_an_error(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        check_models(load(HEAD + "[agents.a]\nmodel = 'openai:x'\n[agents.b]\n"))

    assert "'b' has no model" in caught.value.message
    assert line_of(caught.value) == 5


RECIPES = (
    HEAD + "policy = ['p.policy']\n"
    "[agents.a]\nmodel = 'recipe:recipes.py:f'\n[agents.b]\nmodel = 'recipe:recipes.py:g'\n"
)


def test_the_pipeline_its_recipes_and_its_policies_need_an_approval(load: Load) -> None:
    items = pipeline_items(load(RECIPES), Origin.PROJECT)

    assert [(item.kind, item.name) for item in items] == [
        (ItemKind.PIPELINE, "brief.toml"),
        (ItemKind.RECIPE, "recipes.py"),
        (ItemKind.POLICY, "p.policy"),
    ]


@pytest.mark.parametrize(("name", "index"), [("recipes.py", 1), ("p.policy", 2)])
def test_a_file_of_an_approved_pipeline_that_changes_is_inert_again(
    load: Load, tmp_path: Path, name: str, index: int
) -> None:
    book = ApprovalBook(project=tmp_path)
    for item in pipeline_items(load(RECIPES), Origin.PROJECT):
        book = book.decide(item, approved=True, at=0.0, by="person")
    book.require(pipeline_items(load(RECIPES), Origin.PROJECT))
    spec = load(RECIPES)
    (tmp_path / name).write_text("changed")
    items = pipeline_items(load_again(spec), Origin.PROJECT)

    with pytest.raises(PendingApprovalError) as caught:
        book.require(items)

    assert caught.value.items == ((items[index], ApprovalState.CHANGED),)


def load_again(spec: PipelineSpec) -> PipelineSpec:
    return load_pipeline(spec.file.path)


def test_what_comes_with_remit_needs_none(load: Load, tmp_path: Path) -> None:
    ApprovalBook(project=tmp_path).require(pipeline_items(load(RECIPES), Origin.BUILTIN))
