from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.inputs import (
    INPUT_CHARS_MAX,
    PromptError,
    bind_inputs,
    inputs_in,
    render_prompt,
)
from orchestrator.pipelines.spec import PipelineSpec

Load = Callable[[str], PipelineSpec]

TEXT = """\
remit = 1
name = "x"
[inputs.repo]
type = "path"
default = "."
[inputs.count]
type = "integer"
default = 3
[inputs.deep]
type = "boolean"
default = false
[inputs.title]
[agents.a]
"""


@pytest.fixture
def spec(load: Load) -> PipelineSpec:
    return load(TEXT)


def refused(spec: PipelineSpec, **values: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        bind_inputs(spec, {"title": "t", **values}, folder=Path("/"))
    return caught.value


def test_defaults_are_taken_and_a_path_is_made_absolute(spec: PipelineSpec, tmp_path: Path) -> None:
    values = bind_inputs(spec, {"title": "t"}, folder=tmp_path)

    assert values == {"repo": str(tmp_path.resolve()), "count": 3, "deep": False, "title": "t"}


def test_what_is_given_is_read_in_its_type(spec: PipelineSpec, tmp_path: Path) -> None:
    values = bind_inputs(
        spec, {"title": "3", "count": "-12", "deep": "yes", "repo": "sub/.."}, folder=tmp_path
    )

    assert values == {"repo": str(tmp_path.resolve()), "count": -12, "deep": True, "title": "3"}


def test_a_path_is_told_with_all_links_followed(spec: PipelineSpec, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    values = bind_inputs(spec, {"title": "", "repo": "link"}, folder=tmp_path)

    assert values["repo"] == str((tmp_path / "real").resolve())


def test_an_input_that_is_missing_is_an_error_at_its_place(spec: PipelineSpec) -> None:
    with pytest.raises(ConfigError) as caught:
        bind_inputs(spec, {}, folder=Path("/"))

    assert caught.value.where is not None
    assert caught.value.where.line == 12
    assert caught.value.fix == "--input title=TEXT"


def test_an_input_that_is_not_declared_is_told_the_nearest(spec: PipelineSpec) -> None:
    assert refused(spec, titel="x").fix == "did you mean 'title'?"


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", "three"), ("count", ""), ("count", "1" * 19), ("deep", "1"), ("repo", "")],
)
def test_a_value_of_another_type_is_an_error(spec: PipelineSpec, name: str, value: str) -> None:
    assert f"{name!r} must be of type" in refused(spec, **{name: value}).message


def test_one_character_too_many_is_an_error(spec: PipelineSpec) -> None:
    bind_inputs(spec, {"title": "t" * INPUT_CHARS_MAX}, folder=Path("/"))

    assert "characters" in refused(spec, title="t" * (INPUT_CHARS_MAX + 1)).message


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("plain $x {y}", "plain $x {y}"),
        ("a ${inputs.n} b ${inputs.n}", "a 7 b 7"),
        ("${inputs.flag}", "true"),
        ("$${HOME} and $${inputs.n}", "${HOME} and ${inputs.n}"),
    ],
)
def test_a_prompt_is_filled_in(prompt: str, expected: str) -> None:
    assert render_prompt(prompt, {"n": 7, "flag": True}) == expected


@given(st.text())
def test_what_is_filled_in_is_not_looked_at_again(value: str) -> None:
    hostile = value + "${inputs.secret}"

    assert render_prompt("<${inputs.a}>", {"a": hostile, "secret": "hush"}) == f"<{hostile}>"


def test_the_inputs_of_a_prompt_are_listed_once() -> None:
    assert inputs_in("${inputs.b}${inputs.a}${inputs.b}$${inputs.c}") == ("b", "a")


@pytest.mark.parametrize("prompt", ["${HOME}", "${inputs.}", "${inputs.a-b}", "${", "${inputs.a"])
def test_a_form_that_stands_for_nothing_is_an_error(prompt: str) -> None:
    with pytest.raises(PromptError):
        inputs_in(prompt)
