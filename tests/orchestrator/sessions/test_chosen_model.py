"""A model that is made while servers start."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.agents.model import Model
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.chosen_model import ChosenModel, ModelLoading, choose_model
from tests.orchestrator.agents.stage import recipe

RECIPE = "def main(task):\n    yield []\n    return 'done'\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(ChosenModel):
    """A model that is made only once the block beside it has gone on."""

    block_went_on: threading.Event = field(default_factory=threading.Event)
    threads: list[str] = field(default_factory=list[str])

    def load(self) -> Model:
        assert self.block_went_on.wait(10)
        self.threads.append(threading.current_thread().name)
        return recipe(RECIPE)


async def test_a_language_model_is_made_beside_what_is_waited_for():
    slow = Slow(name="openai:loopback-1")
    loading = ModelLoading(slow)

    async with loading.meanwhile():
        slow.block_went_on.set()
        model = await loading.model()

    assert model is not None
    assert slow.threads != [threading.current_thread().name]


async def test_what_is_amiss_with_a_model_is_said_where_it_is_asked_for():
    loading = ModelLoading(ChosenModel(name="no-such-provider:loopback-1"))

    async with loading.meanwhile():
        with pytest.raises(ConfigError) as refused:
            await loading.model()

    assert refused.value.code == "E-MODEL-PROVIDER"


async def test_a_recipe_runs_in_the_loops_own_thread_and_only_once_it_is_asked_for(tmp_path: Path):
    ran = tmp_path / "ran"
    note = f"pathlib.Path({str(ran)!r}).write_text(threading.current_thread().name)"
    (tmp_path / "m.py").write_text(f"import pathlib, threading\n{note}\n{RECIPE}")
    loading = ModelLoading(choose_model("recipe:m.py:main", folder=tmp_path, project=tmp_path))

    async with loading.meanwhile():
        assert not ran.exists()
        assert await loading.model() is not None

    assert ran.read_text() == threading.current_thread().name


async def test_nobody_chosen_is_no_model():
    loading = ModelLoading(None)

    async with loading.meanwhile():
        assert await loading.model() is None
