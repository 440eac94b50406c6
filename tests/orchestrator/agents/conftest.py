from __future__ import annotations

import pytest

from tests.orchestrator.agents.loopback import Connect
from tests.orchestrator.agents.stage import Stage


@pytest.fixture
def stage() -> Stage:
    """An agent's surroundings, fresh for each test."""
    return Stage()


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """What makes a model of a loopback server."""
    return Connect(monkeypatch)
