"""The model of a conversation: a language model, or a recipe's file that a person names.

A recipe runs as code in this process, so a file of the project counts only once it is approved. Asks
nobody.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.agents.model import RECIPE_PROVIDER, Model
from orchestrator.agents.recipe import RecipeSource
from orchestrator.agents.resolve import check_model_name, resolve_model
from orchestrator.core.errors import ConfigError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.ports import RandomIds
from orchestrator.sessions.reading import read_configured

__all__ = ["ChosenModel", "choose_model"]

_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """A model by name. `item` is what of it a person approves; None for a language model."""

    name: str
    item: Item | None = None
    source: RecipeSource | None = None

    def load(self) -> Model:
        """Return the model. Call it once the item is approved: it runs a recipe's file.

        Raises ConfigError if there is no such model, or the recipe has no such function.
        """

        def recipes(_: str) -> RecipeSource:
            if self.source is None:
                raise ConfigError("no recipe was read", code="E-MODEL-FORM")
            return self.source

        return resolve_model(self.name, recipes=recipes, ids=RandomIds())


def choose_model(name: str, *, folder: Path, project: Path) -> ChosenModel:
    """Read what a model's name stands for; a recipe's file is relative to `folder`.

    Raises ConfigError for a text that names no model, and a file that cannot be read.
    """
    check_model_name(name)
    provider, _, rest = name.partition(":")
    if provider != RECIPE_PROVIDER:
        return ChosenModel(name=name)
    path = folder / rest.rpartition(":")[0]
    content = read_configured(
        path, what="the recipe", code="E-MODEL-FORM", fix="write recipe:FILE.py:FUNCTION"
    )
    real, root = path.resolve(), project.resolve()
    shown = real.relative_to(root).as_posix() if real.is_relative_to(root) else real.as_posix()
    digest = hashlib.sha256(content).hexdigest()
    return ChosenModel(
        name=name,
        item=Item(
            name=shown,
            kind=ItemKind.RECIPE,
            digest=digest,
            origin=Origin.PROJECT,
            description_lines=("runs as code in this process",),
        ),
        source=RecipeSource(path=str(real), module=f"remit_recipe_{digest[:16]}", content=content),
    )
