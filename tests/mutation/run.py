"""Breaks each check of the road, and what decides in every small way; says which break no test notices.

    python -m tests.mutation.run checks [--only PATH] [--share K/N]   each check, removed and inverted
    python -m tests.mutation.run authority [--share K/N]              any slip in orchestrator.authority
    python -m tests.mutation.run policies [--share K/N]               any slip in policies.evaluation

The tests of policies are collected once, and each mutant is first tried in a fork of that; what none
of them notices there is tried by itself.

Works on a copy; the tree itself is never written to. Exit code 1 if a broken check went unnoticed,
or more than 5 % of the slips.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.mutation.allowed import ALLOWED
from tests.mutation.mutants import Mutant, broken_checks, general
from tests.mutation.sandbox import LOG, run_tests, settle_in
from tests.mutation.targets import AUTHORITY, CHECKED, EVALUATION, Target
from tests.mutation.warm import Warm

ROOT: Final = Path(__file__).resolve().parents[2]
COPIED: Final = ("orchestrator", "mcp_client", "policies", "tests", "docs", "examples", "editors")
NOTICED_MIN: Final = 0.95
SECONDS_MAX: Final = 240
"""For one run of tests: some minutes on a machine that others use as well."""
KINDS: Final[dict[str, tuple[tuple[Target, ...], Callable[[str], Iterator[Mutant]], float]]] = {
    "checks": (CHECKED, broken_checks, 1.0),
    "authority": (AUTHORITY, general, NOTICED_MIN),
    "policies": (EVALUATION, general, NOTICED_MIN),
}
PRELOADED: Final = (
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "anyio.pytest_plugin",
    "h11",
    "hypothesis",
    "jsonschema",
    "lark",
    "networkx",
    "pydantic",
    "starlette.applications",
    "trio",
    "typer",
    "uvicorn",
    "yaml",
)
"""Libraries that the tests import, so that a run need not: they are none of what is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A mutant of one module, and the tests that should notice."""

    path: str
    mutant: Mutant
    stages: tuple[tuple[str, ...], ...]
    warm: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Where it is and what was done, without the line: that moves."""
        return f"{self.path}: {self.mutant.what}"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("--only", default="", help="modules whose path contains this")
    parser.add_argument("--share", default="0/1", help="K/N: each N-th mutant, from the K-th on")
    parser.add_argument("--name", action="append", help="this mutant, by its full name; repeatable")
    parser.add_argument("--tests", nargs="*", help="the tests that are to notice, instead of all")
    options = parser.parse_args(words)
    first, _, step = options.share.partition("/")
    targets, breaks, wanted = KINDS[options.kind]
    places = [
        place
        for place in places_of(targets, breaks)
        if options.only in place.path and (not options.name or place.name in options.name)
    ][int(first) :: int(step)]
    if options.tests:
        places = [replace(place, stages=(tuple(options.tests),), warm=()) for place in places]
    survivors = survivors_of(places, say=_say)
    _say(f"{len(places) - len(survivors)} of {len(places)} noticed")
    return 0 if len(survivors) <= (1 - wanted) * len(places) else 1


def places_of(
    targets: Sequence[Target], breaks: Callable[[str], Iterator[Mutant]]
) -> Iterator[Place]:
    """Yield every mutant that is not known to mean the same as the original."""
    for target in targets:
        for path in sorted(ROOT.glob(target.pattern)):
            relative = str(path.relative_to(ROOT))
            for mutant in breaks(path.read_text("utf-8")):
                place = Place(path=relative, mutant=mutant, stages=target.stages, warm=target.warm)
                if place.name not in ALLOWED:
                    yield place


def survivors_of(places: Sequence[Place], *, say: Callable[[str], None]) -> list[Place]:
    """Try each, one after another; return those that no test noticed."""
    settle_in()
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    survivors: list[Place] = []
    with tempfile.TemporaryDirectory(prefix="remit-mutants.") as name:
        folder = Path(name)
        _copy_to(folder)
        gc.freeze()
        sound: set[tuple[str, ...]] = set()
        # what is quick first: only what nothing notices there is tried by itself
        for place in _unnoticed(folder, places, say):
            noticed = _noticed(folder, place, sound)
            say(f"{noticed or 'SURVIVED'}  <-  line {place.mutant.line} of {place.name}")
            if not noticed:
                survivors.append(place)
    return survivors


def _unnoticed(folder: Path, places: Iterable[Place], say: Callable[[str], None]) -> list[Place]:
    """Try each in a fork of tests that are collected already; return those that nothing noticed."""
    left: list[Place] = []
    children: dict[tuple[str, ...], Warm] = {}
    try:
        for place in places:
            original = (folder / place.path).read_text("utf-8")
            if place.warm and place.warm not in children:
                child = Warm(folder, place.warm, seconds=SECONDS_MAX)
                children[place.warm] = child
                if failed := child.noticed(place.path, original=original, mutant=original):
                    raise _unsound(folder, failed)
            with _in_place(folder, place):
                found = place.warm and children[place.warm].noticed(
                    place.path, original=original, mutant=place.mutant.source
                )
            if found:
                say(f"{found}  <-  line {place.mutant.line} of {place.name}")
            else:
                left.append(place)
    finally:
        for child in children.values():
            child.close()
    return left


def _noticed(folder: Path, place: Place, sound: set[tuple[str, ...]]) -> str:
    """Return the test that fails with this mutant in place; "" if none does."""
    for stage in place.stages:
        if stage not in sound:
            _require_sound(folder, stage)
            sound.add(stage)
        with _in_place(folder, place):
            ran = run_tests(folder, stage, seconds=SECONDS_MAX, keep_bytecode=False)
        if ran.failed:
            return ran.failed
    return ""


@contextmanager
def _in_place(folder: Path, place: Place) -> Generator[None]:
    """Let the mutant stand in its file meanwhile."""
    target = folder / place.path
    original = target.read_bytes()
    for stale in (target.parent / "__pycache__").glob(f"{target.stem}.*"):
        stale.unlink()
    target.write_text(place.mutant.source, "utf-8")
    try:
        yield
    finally:
        target.write_bytes(original)


def _require_sound(folder: Path, stage: tuple[str, ...]) -> None:
    """Raise RuntimeError if these tests fail although nothing is broken; leaves bytecode behind."""
    ran = run_tests(folder, stage, seconds=3 * SECONDS_MAX, keep_bytecode=True)
    if ran.failed:
        raise _unsound(folder, ran.failed)


def _unsound(folder: Path, failed: str) -> RuntimeError:
    said = (folder / LOG).read_text("utf-8", "replace")[-4000:]
    return RuntimeError(f"tests fail although nothing is broken: {failed}\n{said}")


def _copy_to(folder: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
