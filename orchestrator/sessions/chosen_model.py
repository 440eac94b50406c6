"""The model of a conversation: a language model, or a recipe's file that a person names.

A recipe runs as code in this process, so a file of the project counts only once it is approved. Asks
nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from orchestrator.agents.model import RECIPE_PROVIDER, Model
from orchestrator.agents.recipe import RecipeSource
from orchestrator.agents.resolve import check_model_name, resolve_model
from orchestrator.core.errors import ConfigError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.ports import RandomIds
from orchestrator.sessions.reading import read_configured

__all__ = ["ChosenModel", "ModelLoading", "choose_model"]

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


class ModelLoading:
    """Makes a chosen model while something else is waited for.

    Importing the library of the language models takes longer than all the rest of a start, so it is
    done in a thread while servers start. A recipe's file runs in the loop's own thread, once it is
    asked for.
    """

    def __init__(self, chosen: ChosenModel | None) -> None:
        self._chosen = chosen
        self._aside = chosen is not None and chosen.item is None
        self._over = anyio.Event()
        self._made: Model | ConfigError | None = None

    @asynccontextmanager
    async def meanwhile(self) -> AsyncGenerator[None]:
        """Make a language model beside the block. What the block raises comes in a group."""
        async with anyio.create_task_group() as group:
            if self._chosen is not None and self._aside:
                group.start_soon(self._load, self._chosen)
            yield

    async def _load(self, chosen: ChosenModel) -> None:
        try:
            # an import cannot be stopped; who cancels does not wait for it
            self._made = await anyio.to_thread.run_sync(chosen.load, abandon_on_cancel=True)
        except ConfigError as error:
            self._made = error
        finally:
            self._over.set()

    async def model(self) -> Model | None:
        """Return the model, or None if none is chosen; to be called within `meanwhile`.

        Raises ConfigError as `ChosenModel.load`.
        """
        if self._chosen is None:
            return None
        if not self._aside:
            return self._chosen.load()
        await self._over.wait()
        if isinstance(self._made, ConfigError):
            raise self._made
        return self._made


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
