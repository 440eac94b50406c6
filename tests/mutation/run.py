"""Breaks each check of the road, and what decides in every small way; says which break no test notices.

    python -m tests.mutation.run checks [--only PATH] [--share K/N]   each check, removed and inverted
    python -m tests.mutation.run authority [--share K/N]              any slip in orchestrator.authority
    python -m tests.mutation.run policies [--share K/N]               any slip in policies.evaluation

Most tests are collected and run once, and each mutant is tried in a fork of that, with the tests that
run its line. What cannot be put in place there is tried by itself.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.mutation.allowed import ALLOWED
from tests.mutation.mutants import Mutant, broken_checks, general
from tests.mutation.sandbox import LOG, run_tests, settle_in, stand_in
from tests.mutation.targets import AUTHORITY, CHECKED, EVALUATION, Target
from tests.mutation.warm import Asked, Warm

ROOT: Final = Path(__file__).resolve().parents[2]
COPIED: Final = ("orchestrator", "mcp_client", "policies", "tests", "docs", "examples", "editors")
NOTICED_MIN: Final = 0.95
SECONDS_MAX: Final = 240
"""For one run of tests: some minutes on a machine that others use as well."""
Breaks = Callable[[str], Iterator[Mutant]]
KINDS: Final[dict[str, tuple[tuple[Target, ...], Breaks, float]]] = {
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
    elsewhere: bool = False

    @property
    def warm_is_all(self) -> bool:
        """Whether no stage has a test that is not among the warm ones."""
        return {test for stage in self.stages for test in stage} <= {*self.warm}

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
        tests = tuple(options.tests)
        places = [replace(place, stages=(tests,), warm=tests) for place in places]
    survivors = survivors_of(places, say=_say)
    _say(f"{len(places) - len(survivors)} of {len(places)} noticed")
    return 0 if len(survivors) <= (1 - wanted) * len(places) else 1


def places_of(
    targets: Sequence[Target],
    breaks: Breaks,
    *,
    listed: Mapping[str, str] = ALLOWED,
) -> Iterator[Place]:
    """Yield every mutant that is not `listed` as one that means the same as the original."""
    for target in targets:
        for path in sorted(ROOT.glob(target.pattern)):
            relative = str(path.relative_to(ROOT))
            for mutant in breaks(path.read_text("utf-8")):
                place = Place(
                    path=relative,
                    mutant=mutant,
                    stages=target.stages,
                    warm=target.warm,
                    elsewhere=target.elsewhere,
                )
                if not {place.name, f"{place.name} in {mutant.within}"} & listed.keys():
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
        # what is quick first: only what cannot be told there is tried by itself
        for place, noticed in _tried_warm(folder, places, say):
            found = _noticed(folder, place, sound) if noticed is None else noticed
            say(f"{found or 'SURVIVED'}  <-  line {place.mutant.line} of {place.name}")
            if not found:
                survivors.append(place)
    return survivors


def _tried_warm(
    folder: Path, places: Sequence[Place], say: Callable[[str], None]
) -> Iterator[tuple[Place, str | None]]:
    """Try each in a fork of tests that are collected already: yield what noticed it, "" for nothing.

    Those last of which that says nothing, with None: they are to be tried by themselves.
    """
    left: list[Place] = []
    children: dict[tuple[str, ...], Warm] = {}
    try:
        for place in places:
            if not place.warm:
                left.append(place)
                continue
            if place.warm not in children:
                paths = sorted({other.path for other in places if other.warm == place.warm})
                children[place.warm] = Warm(folder, place.warm, paths, seconds=SECONDS_MAX, say=say)
            noticed = children[place.warm].noticed(
                Asked(
                    path=place.path,
                    line=place.mutant.line,
                    original=(folder / place.path).read_text("utf-8"),
                    mutant=place.mutant.source,
                    elsewhere=place.elsewhere,
                )
            )
            if noticed is None or not (noticed or place.warm_is_all):
                left.append(place)
            else:
                yield place, noticed
    finally:
        for child in children.values():
            child.close()
    yield from ((place, None) for place in left)


def _noticed(folder: Path, place: Place, sound: set[tuple[str, ...]]) -> str:
    """Return the test that fails with this mutant in place; "" if none does."""
    original = (folder / place.path).read_text("utf-8")
    for stage in place.stages:
        if stage not in sound:
            _require_sound(folder, stage)
            sound.add(stage)
        failed = _fails(folder, place, place.mutant.source, stage)
        if failed and _is_certain(folder, place, original, failed):
            return failed
    return ""


def _fails(folder: Path, place: Place, source: str, tests: tuple[str, ...]) -> str:
    original = (folder / place.path).read_text("utf-8")
    stand_in(folder / place.path, source)
    try:
        ran = run_tests(folder, tests, seconds=SECONDS_MAX, keep_bytecode=False)
    finally:
        stand_in(folder / place.path, original)
    return ran.failed


def _is_certain(folder: Path, place: Place, original: str, failed: str) -> bool:
    """Whether a test fails again, and passes with the original: by chance is not noticed."""
    if "::" not in failed:  # it cannot even be collected, or ended all
        return True
    alone = (failed,)
    return bool(
        _fails(folder, place, place.mutant.source, alone)
        and not _fails(folder, place, original, alone)
    )


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
