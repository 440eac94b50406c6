"""What every interop test needs: packages in the cache, one event loop, a place for the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.interop.driving import Record
from tests.interop.installing import ALL, InstallError, PackageSet, install

_FOUND: Final = pytest.StashKey[dict[PackageSet, Path | InstallError]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install what the chosen tests need, before the first of them: its time is not a test's."""
    here = Path(__file__).parent
    found: dict[PackageSet, Path | InstallError] = {}
    session.config.stash[_FOUND] = found
    if any(here in item.path.parents for item in session.items):
        for packages in ALL:
            try:
                found[packages] = install(packages)
            except InstallError as error:
                found[packages] = error


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """One loop: which one it is matters to the client, and is tested without other people's code."""
    return request.param


@pytest.fixture(scope="session")
def installed(pytestconfig: pytest.Config) -> Callable[[PackageSet], Path]:
    """Return the folder of a set's programs. What could not be installed fails, and skips nothing."""
    found = pytestconfig.stash[_FOUND]

    def programs(packages: PackageSet) -> Path:
        where = found[packages]
        if isinstance(where, InstallError):
            pytest.fail(str(where), pytrace=False)
        return where

    return programs


@pytest.fixture
def record(record_property: Record) -> Record:
    """Keep what was used on a connection for the table."""
    return record_property
