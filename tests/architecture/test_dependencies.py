"""What is imported is declared, and what is declared is imported."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Final

from tests.architecture.sources import PACKAGES, ROOT, Source, imported_names, source_from, sources

IMPORT_NAMES: Final = {
    "agent-framework-core": "agent_framework",
    "google-adk": "google.adk",
    "openai-agents": "agents",
    "opentelemetry-api": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "pydantic-ai-slim": "pydantic_ai",
    "pyyaml": "yaml",
    "strands-agents": "strands",
}
"""Distributions whose packages have another name."""

ALONG_WITH: Final = {
    "httpx2": "pydantic_ai",
    "mcp_types": "mcp",
    "openai": "pydantic_ai",
    "pydantic_core": "pydantic",
}
"""Packages that another brings as part of its interface."""

NOT_OURS: Final = frozenset({"bench", "demo", "dev", "prove"})
"""Extras whose packages are programs, or tools of ours."""

BY_THE_CALLER: Final = frozenset({"trio", "outcome"})
"""Imported only in a program that runs on trio, which has both."""


def declared(requirements: Iterable[str]) -> set[str]:
    """The import names of a list of requirements."""
    names = {re.split(r"[\[<>=~! ;]", line)[0] for line in requirements}
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def third_party(files: Iterable[Source]) -> set[str]:
    """Every dotted name that the files import and that neither Python nor we provide."""
    own = {*sys.stdlib_module_names, *PACKAGES}
    names = {name for source in files for name, _ in imported_names(source.tree)}
    return {name for name in names if name.partition(".")[0] not in own}


def undeclared(imports: Iterable[str], packages: set[str]) -> set[str]:
    """Top-level packages that are imported and belong to nothing declared."""
    tops = {name.partition(".")[0] for name in imports}
    known = {package.partition(".")[0] for package in packages}
    brought = {top for top in tops if ALONG_WITH.get(top) in known}
    return tops - known - brought - BY_THE_CALLER


def unused(imports: Iterable[str], packages: set[str]) -> set[str]:
    """Declared packages that nothing imports."""
    imports = set(imports)
    return {
        package
        for package in packages
        if not any(name == package or name.startswith(f"{package}.") for name in imports)
    }


def project() -> tuple[set[str], set[str]]:
    """What the project declares: for everybody, and for who wants what is not for everybody."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = settings["optional-dependencies"]
    wanted = [line for name, lines in extras.items() if name not in NOT_OURS for line in lines]
    return declared(settings["dependencies"]), declared(wanted)


def test_everything_imported_is_declared():
    core, extras = project()

    assert undeclared(third_party(sources()), core | extras) == set()


def test_everything_declared_is_imported():
    core, extras = project()

    assert unused(third_party(sources()), core | extras) == set()


def test_an_import_without_a_declaration_is_found():
    files = [source_from("import anyio.abc, requests\nimport os, policies", "policies/x.py")]

    assert undeclared(third_party(files), declared(["anyio>=4"])) == {"requests"}


def test_a_declaration_without_an_import_is_found():
    files = [source_from("from opentelemetry import trace", "policies/x.py")]
    packages = declared(["opentelemetry-api>=1", "opentelemetry-sdk>=1", "rich[all]>=14"])

    assert unused(third_party(files), packages) == {"opentelemetry.sdk", "rich"}
