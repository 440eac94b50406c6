"""The page of public names and the packages say the same."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

from tests.architecture.sources import PACKAGES, ROOT

PAGE: Final = ROOT / "docs" / "reference" / "api.md"
SECTION: Final = re.compile(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW: Final = re.compile(r"^\| (`[^|]+`) \| [^|]+ \| (\w+) \|$", re.MULTILINE)
NAME: Final = re.compile(r"`(\w+)`")


def listed_names(page: str, package: str) -> dict[str, str]:
    """The names that the page lists for a package, each with its state."""
    (text,) = [text for name, text in SECTION.findall(page) if name == package]
    return {name: state for row, state in ROW.findall(text) for name in NAME.findall(row)}


def differences(page: str, package: ModuleType) -> Iterator[str]:
    """Names that only one of page and package has, and states that the page does not explain."""
    listed = listed_names(page, package.__name__)
    public = set(package.__all__)
    yield from sorted(f"{name} is not on the page" for name in public - set(listed))
    yield from sorted(f"{name} is not public" for name in set(listed) - public)
    for name, state in listed.items():
        if state not in {"stable", "provisional"}:
            yield f"{name} is called {state}"


@pytest.mark.parametrize("package", PACKAGES)
def test_page_and_package_list_the_same_names(package: str):
    page = PAGE.read_text("utf-8")

    assert list(differences(page, importlib.import_module(package))) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_can_be_had(package: str):
    module = importlib.import_module(package)

    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_a_difference_is_found():
    package = ModuleType("shapes")
    vars(package)["__all__"] = ["Circle", "Square"]
    page = "## `shapes`\n\n| `Circle`, `Oval` | round | stable |\n| `Square` | flat | soon |\n"

    assert list(differences(page, package)) == [
        "Oval is not public",
        "Square is called soon",
    ]
