"""What the tests of frameworks share: one event loop, and a stage."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.guests.profile import make_profile
from tests.guests.stage import Stage, open_stage


@pytest.fixture
def anyio_backend() -> str:
    """The frameworks run on asyncio."""
    return "asyncio"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    """One agent before a server that logs what it carries out."""
    async with open_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
def gateway_home(tmp_path: Path) -> Path:
    """A profile for a gateway's process."""
    return make_profile(tmp_path / "home")
