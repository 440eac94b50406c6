from __future__ import annotations

import sys

import pytest

from orchestrator.agents.recipe import RecipeModel, RecipeSource
from orchestrator.agents.resolve import resolve_model
from orchestrator.core.errors import ConfigError
from tests.orchestrator.agents.stage import CountedIds


def one_recipe(path: str) -> RecipeSource:
    return RecipeSource(
        path=f"/made/up/{path}", module="m", content=b"def main(task):\n    yield\n"
    )


def no_recipe(path: str) -> RecipeSource:
    raise AssertionError(path)


def test_a_recipe_is_found_by_file_and_function() -> None:
    model = resolve_model("recipe:sub/recipes.py:main", recipes=one_recipe, ids=CountedIds())

    assert isinstance(model, RecipeModel)
    assert (model.provider, model.name) == ("recipe", "recipes.py:main")


def test_a_recipe_does_not_import_the_library_of_language_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)

    resolve_model("recipe:recipes.py:main", recipes=one_recipe, ids=CountedIds())


@pytest.mark.parametrize(
    "text",
    ["", "gpt-5", ":gpt-5", "openai:", "recipe:", "recipe:file.py", "recipe:file.py:", "recipe::f"],
)
def test_a_text_of_another_form_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(text, recipes=no_recipe, ids=CountedIds())

    assert caught.value.code == "E-MODEL-FORM"
    assert "recipe:FILE.py:FUNCTION" in caught.value.fix


@pytest.mark.parametrize("text", ["opneai:gpt-5", "opneai:org/model:8b"])
def test_an_unknown_provider_is_named_with_the_nearest(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(text, recipes=no_recipe, ids=CountedIds())

    assert caught.value.code == "E-MODEL-PROVIDER"
    assert caught.value.fix == "did you mean 'openai'?"


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "orchestrator.agents.bridge", None)

    with pytest.raises(ConfigError) as caught:
        resolve_model("openai:gpt-5", recipes=no_recipe, ids=CountedIds())

    assert caught.value.code == "E-MODEL-EXTRA"
    assert caught.value.fix == "pip install 'remit[models]'"


def test_a_provider_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model("cohere:command", recipes=no_recipe, ids=CountedIds())

    assert caught.value.code == "E-MODEL-EXTRA"
    assert "pydantic-ai-slim[cohere]" in caught.value.fix
