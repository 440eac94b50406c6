"""From the text `recipe:FILE.py:FUNCTION` or `PROVIDER:NAME` to a model. Reads no file by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import RECIPE_PROVIDER, Model
from orchestrator.agents.recipe import RecipeSource, load_recipe
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import IdSource

__all__ = ["check_model_name", "resolve_model"]

_BOUNDS: Final = AgentLimits()
_FORMS: Final = "write PROVIDER:NAME, like openai:gpt-5, or recipe:FILE.py:FUNCTION"


def check_model_name(text: str) -> None:
    """Raise ConfigError if a text cannot be the name of any model. Imports and reads nothing."""
    provider, colon, name = text.partition(":")
    if not colon or not provider or not name:
        raise ConfigError(
            f"{safe_line(text, chars_max=128)!r} names no model", code="E-MODEL-FORM", fix=_FORMS
        )


def resolve_model(
    text: str,
    *,
    recipes: Callable[[str], RecipeSource],
    ids: IdSource,
    bounds: AgentLimits = _BOUNDS,
) -> Model:
    """Return the model that `text` names.

    `recipes` is handed the FILE as written, and returns its approved source. The library of the
    language models is imported only for a PROVIDER.

    Raises:
        ConfigError: the text has another form, the recipe has no such function, the provider is
            not known, not installed, or without credentials.
    """
    check_model_name(text)
    provider, _, name = text.partition(":")
    if provider == RECIPE_PROVIDER:
        path, _, function = name.rpartition(":")
        if not path or not function.isidentifier():
            raise ConfigError(
                f"{safe_line(text, chars_max=128)!r} names no recipe",
                code="E-MODEL-FORM",
                fix="write recipe:FILE.py:FUNCTION",
            )
        return load_recipe(recipes(path), function, bounds=bounds)
    try:
        with _collector_paused():
            from orchestrator.agents.bridge import PydanticAiModel
    except ImportError as error:
        raise ConfigError(
            "language models need an extra that is not installed",
            code="E-MODEL-EXTRA",
            why=f"{error.name or 'a module'} cannot be imported",
            fix="pip install 'remit[models]'",
        ) from None
    return PydanticAiModel(provider, name, ids=ids, bounds=bounds)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Leave the garbage collector out of an import that makes a million objects and drops none.

    A tenth of the import's time is spent looking for garbage that is not there.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
