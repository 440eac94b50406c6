from __future__ import annotations

import pytest

from tests.orchestrator.agents.stage import Stage


@pytest.fixture
def stage() -> Stage:
    """An agent's surroundings, fresh for each test."""
    return Stage()
