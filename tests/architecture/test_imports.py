"""Who may import what, beyond what import-linter checks: text, builtins and calls as well."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from tests.architecture.sources import PACKAGES, ROOT, Source, imported_names, source_from, sources

KEEPERS: Final = {
    "orchestrator.authority._mint": ("orchestrator.authority.gate",),
    "orchestrator.authority.gate": ("orchestrator.broker",),
    "orchestrator.authority.guards": ("orchestrator.sessions",),
}
"""Modules that stand for authority itself, and who alone may name them."""

CORES: Final = (
    "policies",
    "mcp_client.protocol",
    "mcp_client.ports",
    "orchestrator.core",
    "orchestrator.authority",
    "orchestrator.catalog",
)
IO_MODULES: Final = frozenset(
    [
        "anyio",
        "asyncio",
        "trio",
        "concurrent",
        "threading",
        "multiprocessing",
        "select",
        "selectors",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "os",
        "shutil",
        "tempfile",
        "sqlite3",
        "time",
        "random",
        "secrets",
        "uuid",
        "logging",
        "httpx",
        "httpx2",
        "httpx_sse",
        "httpcore",
        "authlib",
        "opentelemetry",
        "click",
        "rich",
    ]
)
IO_CALLS: Final = frozenset({"open", "print", "input"})

ASYNCIO_IMPORTERS: Final = ("mcp_client.net.reactor", "orchestrator.testing")
JSON_DECODERS: Final = ("mcp_client.protocol.jsonrpc", "orchestrator.core.documents")
"""The bounded decoders."""
BARE_SCRIPTS: Final = ("orchestrator.cli.demo.files_server",)
"""Programs that run without any of our packages, and so without the decoders."""


def is_within(module: str, parents: Iterable[str]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def keepers_passed_by(files: Iterable[Source]) -> Iterator[str]:
    """Places outside the one allowed module that name a keeper: by import or in a string."""
    for source in files:
        for keeper, allowed in KEEPERS.items():
            if is_within(source.module, (keeper, *allowed)):
                continue
            for name, node in imported_names(source.tree):
                if is_within(name, (keeper,)):
                    yield f"{source.at(node)} imports {keeper}"
            for node in ast.walk(source.tree):
                # A table of lazy names, or import_module: the same import in disguise.
                if isinstance(node, ast.Constant) and names_module(node.value, keeper):
                    yield f"{source.at(node)} names {keeper}"


def names_module(value: object, module: str) -> bool:
    return isinstance(value, str) and is_within(value, (module, module.partition(".")[2]))


def unguarded_senders(files: Iterable[Source]) -> Iterator[str]:
    """Places in the orchestrator that take the client's leave to send anything."""
    for source in files:
        if not is_within(source.module, ("orchestrator",)):
            continue
        for name, node in imported_names(source.tree):
            if name.endswith(".UNGUARDED"):
                yield f"{source.at(node)} imports UNGUARDED"
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and node.attr == "UNGUARDED":
                yield f"{source.at(node)} uses UNGUARDED"


def io_in_cores(files: Iterable[Source]) -> Iterator[str]:
    """Places in a core that import or call what does I/O, waits, logs or draws random numbers."""
    for source in files:
        if not is_within(source.module, CORES):
            continue
        for name, node in imported_names(source.tree):
            if name.partition(".")[0] in IO_MODULES:
                yield f"{source.at(node)} imports {name}"
        for node in ast.walk(source.tree):
            if isinstance(node, ast.AsyncFunctionDef) and not is_protocol_method(source, node):
                yield f"{source.at(node)} is async"
            if isinstance(node, ast.Call) and ast.unparse(node.func) in IO_CALLS:
                yield f"{source.at(node)} calls {ast.unparse(node.func)}"


def is_protocol_method(source: Source, function: ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(node, ast.ClassDef)
        and function in node.body
        and any(ast.unparse(base).startswith("Protocol") for base in node.bases)
        for node in ast.walk(source.tree)
    )


def asyncio_importers(files: Iterable[Source]) -> Iterator[str]:
    """Places outside the reactor and the seeded loop that import asyncio."""
    for source in files:
        if is_within(source.module, ASYNCIO_IMPORTERS):
            continue
        for name, node in imported_names(source.tree):
            if is_within(name, ("asyncio",)):
                yield f"{source.at(node)} imports asyncio"


def unbounded_decoders(files: Iterable[Source]) -> Iterator[str]:
    """Places outside the bounded decoders that decode JSON with the standard library."""
    decoders = {"json.loads", "json.load", "json.JSONDecoder"}
    for source in files:
        if source.module in JSON_DECODERS or is_bare_script(source):
            continue
        for name, node in imported_names(source.tree):
            if name in decoders:
                yield f"{source.at(node)} imports {name}"
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in decoders:
                yield f"{source.at(node)} uses {ast.unparse(node)}"


def is_bare_script(source: Source) -> bool:
    """True for a bundled server, as long as it imports nothing but the standard library."""
    roots = {name.partition(".")[0] for name, _ in imported_names(source.tree)}
    return source.module in BARE_SCRIPTS and roots <= sys.stdlib_module_names


def test_only_the_gate_mints_and_only_the_broker_sees_the_gate():
    assert list(keepers_passed_by(sources())) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("orchestrator/broker/road.py", "from orchestrator.authority._mint import Permit"),
        ("orchestrator/agents/loop.py", "from orchestrator.authority.gate import Gate"),
        ("orchestrator/agents/loop.py", "from orchestrator.authority import gate"),
        ("orchestrator/agents/loop.py", "import orchestrator.authority.gate as g"),
        ("orchestrator/broker/road.py", "import orchestrator.authority.guards"),
        ("orchestrator/authority/__init__.py", "from orchestrator.authority.gate import Gate"),
        ("orchestrator/__init__.py", "_WHERE = {'Gate': 'orchestrator.authority.gate'}"),
        ("orchestrator/__init__.py", "_WHERE = {'Gate': 'authority.gate'}"),
        ("orchestrator/cli/main.py", "def f():\n    import orchestrator.authority._mint"),
    ],
)
def test_any_way_around_the_keepers_is_found(path: str, text: str):
    assert list(keepers_passed_by([source_from(text, path)])) != []


def test_the_keepers_own_importers_are_let_through():
    gate = source_from(
        "from orchestrator.authority._mint import P", "orchestrator/authority/gate.py"
    )
    broker = source_from(
        "from orchestrator.authority.gate import Gate", "orchestrator/broker/road.py"
    )

    assert list(keepers_passed_by([gate, broker])) == []


def test_every_keeper_exists():
    modules = {source.module for source in sources()}

    assert {keeper for keeper in KEEPERS if keeper not in modules} == set()


def test_the_orchestrator_sends_nothing_unguarded():
    assert list(unguarded_senders(sources())) == []


@pytest.mark.parametrize(
    "text",
    [
        "from mcp_client.ports import UNGUARDED as G",
        "import mcp_client\nmcp_client.ports.UNGUARDED",
    ],
)
def test_an_unguarded_send_is_found(text: str):
    assert list(unguarded_senders([source_from(text, "orchestrator/sessions/x.py")])) != []


def test_cores_do_no_io():
    assert list(io_in_cores(sources())) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from time import monotonic",
        "def f():\n    import random",
        "print('hello')",
        "def f(path):\n    return open(path)",
        "async def f(): ...",
    ],
)
def test_io_in_a_core_is_found(text: str):
    assert list(io_in_cores([source_from(text, "policies/evaluation.py")])) != []


def test_a_port_may_have_async_methods():
    text = "class P(Protocol):\n    async def f(self) -> None: ..."

    assert list(io_in_cores([source_from(text, "orchestrator/core/ports.py")])) == []


def test_asyncio_stays_in_the_reactor_and_the_seeded_loop():
    assert list(asyncio_importers(sources())) == []


@pytest.mark.parametrize(
    "text", ["import asyncio", "from asyncio import Future", "import asyncio.tasks"]
)
def test_asyncio_elsewhere_is_found(text: str):
    assert list(asyncio_importers([source_from(text, "mcp_client/session.py")])) != []


def test_json_is_decoded_within_bounds_only():
    assert list(unbounded_decoders(sources())) == []


@pytest.mark.parametrize(
    "text",
    ["from json import loads", "import json\njson.loads(b'')", "import json\nread = json.load"],
)
def test_an_unbounded_decoder_is_found(text: str):
    assert list(unbounded_decoders([source_from(text, "orchestrator/broker/road.py")])) != []


def test_a_bundled_server_is_excused_only_while_it_needs_nothing_but_python():
    path = "orchestrator/cli/demo/files_server.py"
    alone = source_from("import json\njson.loads(b'')", path)
    leaning = source_from("import json\nimport orchestrator\njson.loads(b'')", path)

    assert list(unbounded_decoders([alone])) == []
    assert list(unbounded_decoders([leaning])) != []


# ------------------------------------------------------------------------------------ import-linter


def run_import_linter(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of the project in `folder` on the packages in `folder`."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); sys.argv = ['lint-imports', '--no-cache']\n"
    code += "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.subprocess
def test_the_layer_contracts_are_kept():
    finished = run_import_linter(ROOT)

    assert finished.returncode == 0, finished.stdout + finished.stderr


VIOLATIONS: Final = {
    "mcp_client/protocol/limits.py": "import mcp_client.ports",
    "mcp_client/transports/other.py": "import mcp_client.transports.stdio",
    "orchestrator/agents/events.py": "import mcp_client",
    "orchestrator/core/ids.py": """
        import orchestrator.audit
        import mcp_client.client
        import opentelemetry
        import httpx
        from orchestrator.authority import _mint, gate, guards
        """,
    "orchestrator/surfaces/one.py": "import orchestrator.surfaces.two",
    "orchestrator/surfaces/two.py": "",
    "policies/model/questions.py": """
        import mcp_client
        import os
        import policies.evaluation
        """,
}
"""One breach of each contract."""


@pytest.mark.subprocess
def test_every_contract_finds_its_breach(tmp_path: Path):
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, text in VIOLATIONS.items():
        with (tmp_path / path).open("a") as module:
            module.write(dedent(text))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = {contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}

    report = run_import_linter(tmp_path).stdout

    assert {name for name in contracts if f"{name} BROKEN" not in report} == set(), report
