"""Language models for programs that make their own agents. Knows no provider and reads no file."""

from __future__ import annotations

from orchestrator.agents.model import RECIPE_PROVIDER, Model
from orchestrator.agents.recipe import RecipeSource
from orchestrator.agents.resolve import resolve_model
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.ports import RandomIds

__all__ = ["language_model", "model_of"]


def language_model(name: str) -> Model:
    """Return the language model `PROVIDER:NAME`.

    Raises:
        ConfigError: the text has another form; the provider is not known, not installed, or
            without credentials.
    """
    if name.partition(":")[0] == RECIPE_PROVIDER:
        raise _no_recipe(name)
    return resolve_model(name, recipes=_no_recipe_file, ids=RandomIds())


def model_of(model: Model | str) -> Model:
    """Return a model as it is, and the language model that a text names. Raises ConfigError."""
    return language_model(model) if isinstance(model, str) else model


def _no_recipe_file(file: str) -> RecipeSource:
    raise _no_recipe(file)


def _no_recipe(name: str) -> ConfigError:
    return ConfigError(
        f"{safe_line(name, chars_max=128)!r} names no language model",
        code="E-MODEL-FORM",
        fix="hand the recipe's function to `recipe`",
    )
