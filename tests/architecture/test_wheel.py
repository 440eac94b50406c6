"""What a user installs: exactly three packages, whole, with everything that is not Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.architecture.sources import PACKAGES, ROOT

pytestmark = pytest.mark.subprocess


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names in a wheel that was just built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def package_files(root: Path) -> frozenset[str]:
    """Every file of the three packages below a root, as paths relative to it."""
    return frozenset(
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def top_levels(names: Iterable[str]) -> set[str]:
    """What a wheel would put side by side into site-packages, its own metadata left out."""
    tops = {name.partition("/")[0] for name in names}
    return {top for top in tops if not top.endswith(".dist-info")}


def test_the_wheel_installs_exactly_the_three_packages(wheel_names: frozenset[str]):
    assert top_levels(wheel_names) == set(PACKAGES)


def test_a_fourth_package_would_be_found():
    names = ["policies/errors.py", "tests/conftest.py", "remit-0.1.0.dist-info/METADATA"]

    assert top_levels(names) == {"policies", "tests"}


def test_the_wheel_holds_every_file_of_the_packages(wheel_names: frozenset[str]):
    packed = {name for name in wheel_names if ".dist-info/" not in name}

    assert packed == package_files(ROOT)


def test_a_data_file_counts_as_a_file_of_its_package(tmp_path: Path):
    for package in PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "policies" / "policy.lark").touch()

    assert package_files(tmp_path) == {"policies/policy.lark"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_says_that_its_packages_are_typed(package: str, wheel_names: frozenset[str]):
    assert f"{package}/py.typed" in wheel_names


def test_the_wheel_carries_the_demonstrations_own_files(wheel_names: frozenset[str]):
    kinds = {name.rpartition(".")[2] for name in wheel_names if "/demo/" in name}

    assert kinds >= {"py", "toml", "policy"}


def test_the_wheel_carries_the_licence(wheel_names: frozenset[str]):
    assert [name for name in wheel_names if name.endswith(".dist-info/licenses/LICENSE")]
