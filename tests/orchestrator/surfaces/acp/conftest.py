from __future__ import annotations

from pathlib import Path

import pytest

from tests.orchestrator.surfaces.acp.stage import Home, make_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)
