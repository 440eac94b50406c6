"""A pipeline with all that it names: read, checked against one another, nothing started."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.listing import Catalog, list_server
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.pipelines.pipeline import Pipeline, PipelineRequest
from orchestrator.sessions.approvals import ItemKind, Origin
from orchestrator.testing import CountingIds
from policies import Context, Effect, Operation, PolicyError, Principal, Resource

PIPELINE = """\
remit = 1
name = "p"
servers = ".mcp.json"
policy = ["p.policy"]

[inputs.out]
type = "path"

[inputs.word]
default = "w"

[agents.reader]
model = "recipe:recipes.py:reader"
grant = { tools = ["git/log"] }
"""
POLICY = 'policy p v1 { role reader permit "log" call on git/log for role reader }'
SERVERS = {"git": {"command": "git-server"}, "time": {"command": "time-server"}}
RECIPES = "def reader(task):\n    yield []\n"
Load = Callable[..., Pipeline]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a pipeline from its texts; what is not given is the usual."""

    def load_it(
        pipeline: str = PIPELINE,
        policy: str = POLICY,
        servers: object = None,
        **more: object,
    ) -> Pipeline:
        (tmp_path / "pipeline.toml").write_text(pipeline)
        (tmp_path / "p.policy").write_text(policy)
        (tmp_path / "recipes.py").write_text(RECIPES)
        text = json.dumps({"mcpServers": SERVERS if servers is None else servers})
        (tmp_path / ".mcp.json").write_text(text)
        request = PipelineRequest(
            minimum=None,
            path=tmp_path / "pipeline.toml",
            origin=Origin.PROJECT,
            project=tmp_path,
            folder=tmp_path,
            out=tmp_path / "out",
            environ={"SECRET": "s3cret"},
            home=tmp_path,
            inputs={},
        )
        return Pipeline.load(replace(request, **more))

    return load_it


def refused(act: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        act()
    return caught.value


def catalog(*tools: str, server: str = "git", schema: object = None) -> Catalog:
    listed = [
        {"name": tool, "inputSchema": {"type": "object"} if schema is None else schema}
        for tool in tools
    ]
    return Catalog([list_server(ServerName(server), listed)])


# ------------------------------------------------------------------------------------ loading


def test_only_the_servers_that_an_agent_could_be_granted_are_needed(load: Load) -> None:
    assert [entry.name for entry in load().servers] == ["git"]


def test_an_agent_without_a_grant_could_be_granted_any(load: Load) -> None:
    pipeline = load(PIPELINE.replace('grant = { tools = ["git/log"] }\n', ""))

    assert [entry.name for entry in pipeline.servers] == ["git", "time"]


def test_a_disabled_server_that_no_grant_names_is_passed_over(load: Load) -> None:
    servers = {"git": {"command": "g"}, "time": {"command": "t", "disabled": True}}

    assert [entry.name for entry in load(servers=servers).servers] == ["git"]


def test_a_server_that_a_grant_names_and_that_cannot_be_used_is_an_error(load: Load) -> None:
    servers = {"git": {"command": "${NOT_SET}"}, "time": {"command": "t"}}

    error = refused(lambda: load(servers=servers))

    assert error.where is not None
    assert error.where.path.endswith(".mcp.json")


def test_a_person_who_approves_a_server_is_told_that_each_agent_has_one(load: Load) -> None:
    servers = {"git": {"command": "g", "isolate": "agent"}}

    lines = [line for item in load(servers=servers).items() for line in item.description_lines]

    assert any("once more for each agent" in line for line in lines)


@pytest.mark.requirement("S-48")
def test_without_a_policy_everything_asks(load: Load) -> None:
    pipeline = load(PIPELINE.replace('policy = ["p.policy"]\n', ""))

    verdict = pipeline.policy.verdict(
        Principal(role="reader"), Operation.CALL, Resource("git", "tool", "log")
    )
    assert verdict.possible == {Effect.ASK}
    pipeline.check_catalog(catalog("log"), [])


def test_policies_that_declare_no_role_take_any(load: Load) -> None:
    pipeline = load(policy='policy p v1 { permit "log" call on git/log }')

    pipeline.check_catalog(catalog("log"), [])


def test_a_policy_may_speak_of_a_server_that_no_agent_needs(load: Load) -> None:
    pipeline = load(policy=POLICY.replace("}", 'forbid "no" call on time/* }'))

    assert [entry.name for entry in pipeline.servers] == ["git"]
    pipeline.check_catalog(catalog("log"), [])


def test_a_policy_may_speak_of_our_own_tools(load: Load) -> None:
    pipeline = load(policy=POLICY.replace("}", 'permit "own" call on remit/list_capabilities }'))

    pipeline.check_catalog(catalog("log"), ["list_capabilities"])


def test_a_policy_that_misspells_one_of_our_own_tools_is_told(load: Load) -> None:
    pipeline = load(policy=POLICY.replace("}", 'permit "own" call on remit/list_capabilites }'))

    error = refused(lambda: pipeline.check_catalog(catalog("log"), ["list_capabilities"]))

    assert "'list_capabilities'" in error.fix


def test_the_output_folder_is_the_runs_own_unless_the_input_says_otherwise(
    load: Load, tmp_path: Path
) -> None:
    assert load().values["out"] == str(tmp_path / "out")
    assert load(inputs={"out": "there"}).values["out"] == str(tmp_path / "there")


def test_a_policy_sees_the_inputs_as_parameters(load: Load) -> None:
    text = 'policy p v1 { permit "log" call on git/log when arg(/word) == "${word}" }'
    pipeline = load(policy=text, inputs={"word": "hello"})

    verdict = pipeline.policy.verdict(
        Principal(role="reader"), Operation.CALL, Resource("git", "tool", "log")
    )
    assert verdict.decide(Context({"word": "hello"})).effect is Effect.PERMIT
    assert verdict.decide(Context({"word": "w"})).effect is Effect.FORBID


def test_an_input_with_the_name_of_an_agent_is_refused(load: Load) -> None:
    error = refused(lambda: load(PIPELINE.replace("[inputs.word]", "[inputs.reader]")))

    assert error.code == "E-PIPELINE-INPUT"
    assert error.where is not None
    assert error.where.line == 9


def test_a_policy_that_is_not_text_is_refused_with_its_file(load: Load, tmp_path: Path) -> None:
    load()
    (tmp_path / "p.policy").write_bytes(b"\xff\xfe")

    def again() -> Pipeline:
        request = PipelineRequest(
            minimum=None,
            path=tmp_path / "pipeline.toml",
            origin=Origin.PROJECT,
            project=tmp_path,
            folder=tmp_path,
            out=tmp_path,
            environ={},
            home=tmp_path,
            inputs={},
        )
        return Pipeline.load(request)

    error = refused(again)
    assert error.code == "E-POLICY-ENCODING"
    assert error.where is not None
    assert error.where.path.endswith("p.policy")


def test_what_a_policy_includes_holds_and_needs_an_approval_of_its_own(
    load: Load, tmp_path: Path
) -> None:
    base = tmp_path / "base.policy"
    base.write_text('policy base v1 { forbid "no" call on git/log }')
    text = f'include "base.policy" {POLICY}'

    before = load(policy=text)
    base.write_text('policy base v1 { ask "no" call on git/log }')
    after = load(policy=text)

    assert [rule.id for rule in before.policy.rules] == ["log", "no"]
    policies = [item for item in before.items() if item.kind is ItemKind.POLICY]
    assert [item.name for item in policies] == ["p.policy", "base.policy"]
    changed = [
        old.name for old, new in zip(before.items(), after.items(), strict=True) if old != new
    ]
    assert changed == ["base.policy"]


def test_a_policy_of_a_pipeline_can_include_nothing_outside_of_it(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path.parent / f"{tmp_path.name}.policy").write_text("policy outside v1 {}")
    (tmp_path / "base.policy").symlink_to(f"../{tmp_path.name}.policy")

    with pytest.raises(PolicyError, match="leads out of"):
        load(policy=f'include "base.policy" {POLICY}')


def test_a_key_of_a_servers_file_that_nobody_knows_is_a_warning(load: Load) -> None:
    pipeline = load(servers={"git": {"command": "g", "commnad": "x"}})

    assert len(pipeline.warnings) == 1
    assert ".mcp.json:1" in pipeline.warnings[0]
    assert "commnad" in pipeline.warnings[0]


@pytest.mark.requirement("S-47")
def test_a_projects_servers_see_no_variable_that_was_not_allowed(load: Load) -> None:
    servers = {"git": {"command": "g", "env": {"TOKEN": "${SECRET}"}}}

    error = refused(lambda: load(servers=servers))
    allowed = load(servers=servers, allow_variables=frozenset({"SECRET"}))

    assert "SECRET" in error.message + error.fix
    assert "s3cret" not in f"{error.message} {error.fix} {error.why}"
    assert allowed.servers[0].env == {"TOKEN": "s3cret"}


# --------------------------------------------------------------------------------------- approvals


def test_what_needs_an_approval_is_pipeline_recipes_policies_and_needed_servers(
    load: Load,
) -> None:
    assert [(item.kind, item.name) for item in load().items()] == [
        (ItemKind.PIPELINE, "pipeline.toml"),
        (ItemKind.RECIPE, "recipes.py"),
        (ItemKind.POLICY, "p.policy"),
        (ItemKind.SERVER, "git"),
    ]


def test_everything_carries_the_origin_of_the_pipeline(load: Load) -> None:
    pipeline = load(origin=Origin.BUILTIN)

    assert {item.origin for item in pipeline.items()} == {Origin.BUILTIN}


# ---------------------------------------------------------------------------------- models


def test_each_agent_gets_the_model_that_it_names(load: Load) -> None:
    models = load().models(CountingIds())

    assert {name: model.name for name, model in models.items()} == {"reader": "recipes.py:reader"}


def test_a_recipe_that_changed_after_it_was_read_does_not_count(load: Load, tmp_path: Path) -> None:
    pipeline = load()
    (tmp_path / "recipes.py").write_text("raise SystemExit('somebody else has been here')")

    assert set(pipeline.models(CountingIds())) == {"reader"}


def test_an_agent_may_do_without_a_model_where_the_command_names_one(load: Load) -> None:
    text = PIPELINE.replace('model = "recipe:recipes.py:reader"\n', "")

    assert refused(lambda: load(text)).code == "E-PIPELINE-MODEL"
    assert load(text, model="recipe:recipes.py:reader").model == "recipe:recipes.py:reader"


# ------------------------------------------------------------------------- beside what servers offer


def test_what_the_servers_offer_is_enough(load: Load) -> None:
    load().check_catalog(catalog("log", "show"), ["list_capabilities"])


def test_a_granted_tool_that_its_server_does_not_offer_names_the_nearest(load: Load) -> None:
    error = refused(lambda: load().check_catalog(catalog("logs"), []))

    assert error.where is not None
    assert error.where.line == 14
    assert "'logs'" in error.fix


def test_a_rule_about_an_argument_that_a_tool_has_not_names_the_nearest(load: Load) -> None:
    pipeline = load(policy='policy p v1 { permit "log" call on git/log when arg(/paht) == "a" }')
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"path": {}},
        "additionalProperties": False,
    }

    error = refused(lambda: pipeline.check_catalog(catalog("log", schema=schema), []))

    assert "'path'" in error.fix
    assert error.where is not None
    assert error.where.path.endswith("p.policy")


# ------------------------------------------------------------------------ where agents write


@pytest.mark.parametrize("change", ['type = "path"\ndefault = "~/.ssh"', 'default = "/etc"', ""])
def test_a_file_cannot_choose_the_output_folder(load: Load, change: str) -> None:
    error = refused(
        lambda: load(PIPELINE.replace('[inputs.out]\ntype = "path"', f"[inputs.out]\n{change}"))
    )

    assert error.code == "E-PIPELINE-INPUT"
    assert error.where is not None
    assert error.where.line == 6


@pytest.mark.parametrize("given", [{}, {"out": "out"}, {"out": "./out/below"}])
def test_a_link_of_the_project_cannot_choose_it_either(
    load: Load, tmp_path: Path, given: dict[str, str]
) -> None:
    (tmp_path / "out").symlink_to("/")

    assert refused(lambda: load(inputs=given)).code == "E-OUT-LINK"
    unnamed = PIPELINE.replace("[inputs.out]", "[inputs.other]").replace(
        '"path"', '"path"\ndefault = "."'
    )
    assert refused(lambda: load(unnamed)).code == "E-OUT-LINK"


def test_servers_and_policies_are_given_the_folder_as_it_really_is(
    load: Load, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mine = tmp_path_factory.mktemp("mine")
    (mine / "link").symlink_to(tmp_path)

    pipeline = load(
        out=mine / "link" / "new", servers={"git": {"command": "g", "args": ["${REMIT_OUT}"]}}
    )

    assert pipeline.values["out"] == str(tmp_path / "new")
    assert pipeline.servers[0].args == (str(tmp_path / "new"),)


def test_what_inputs_are_by_default_is_shown_before_it_is_approved(load: Load) -> None:
    (item,) = [item for item in load().items() if item.kind is ItemKind.PIPELINE]

    assert "input word (text), if you give none: w" in item.description_lines


@pytest.mark.parametrize("given", ["", "a\0b"])
def test_an_output_folder_that_is_no_path_is_an_error(load: Load, given: str) -> None:
    assert refused(lambda: load(inputs={"out": given})).code == "E-PIPELINE-INPUT"
