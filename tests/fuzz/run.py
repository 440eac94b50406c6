"""Runs one fuzz target, or all of them: guided by coverage where atheris is there, else by luck.

    python tests/fuzz/run.py TARGET [--seconds N | --executions N] [--seed N]
    python tests/fuzz/run.py all --executions 1000000

An input that a target fails for is written to the current directory and named; add it to
`tests/fuzz/seeds/TARGET/` with the change that mends what it found. `atheris` is no dependency of
the project: `pip install atheris` where there is a wheel for the interpreter.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

TARGET_NAMES = tuple(sorted(path.name for path in Path(__file__).with_name("seeds").iterdir()))
SECONDS_PER_INPUT = 5


def main() -> int:
    """Run what the command line names; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=(*TARGET_NAMES, "all"))
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--executions", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "own"), default="")
    options = parser.parse_args()
    if not options.seconds and not options.executions:
        options.executions = 100_000
    found = importlib.util.find_spec("atheris") is not None
    engine = options.engine or ("atheris" if found else "own")
    if options.target == "all":
        return _all(engine, options)
    run = _with_atheris if engine == "atheris" else _with_our_own
    return run(options.target, options)


def _all(engine: str, options: argparse.Namespace) -> int:
    failed = 0
    for name in TARGET_NAMES:
        command = [sys.executable, __file__, name, "--engine", engine]
        command += ["--seconds", str(options.seconds), "--executions", str(options.executions)]
        failed += subprocess.run([*command, "--seed", str(options.seed)], check=False).returncode
    return 1 if failed else 0


def _with_our_own(name: str, options: argparse.Namespace) -> int:
    from tests.fuzz.mutating import inputs
    from tests.fuzz.targets import TARGETS, WORDS_OF, seeds_of

    target = TARGETS[name]
    start = time.monotonic()
    until = start + options.seconds if options.seconds else float("inf")
    most = options.executions or sys.maxsize
    done = 0
    known = [path.read_bytes() for path in sorted(_corpus(name).iterdir())]
    for data in inputs([*seeds_of(name), *known], WORDS_OF[name], seed=options.seed):
        _try(name, target, data)
        done += 1
        if done >= most or (done % 256 == 0 and time.monotonic() >= until):
            break
    seconds = time.monotonic() - start
    _say(f"{name}: {done:,} executions in {seconds:.0f} s, nothing found")
    return 0


def _with_atheris(name: str, options: argparse.Namespace) -> int:
    # no dependency of the project: nothing can be known of its types
    atheris: Any = importlib.import_module("atheris")

    with atheris.instrument_imports(include=["mcp_client", "policies"]):
        from tests.fuzz.targets import TARGETS, WORDS_OF

    target = TARGETS[name]
    folder = _corpus(name)
    words = folder.with_suffix(".dict")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS_OF[name]), "utf-8")
    arguments = [sys.argv[0], str(folder), str(ROOT / "tests" / "fuzz" / "seeds" / name)]
    arguments += [f"-dict={words}", "-max_len=1024", f"-seed={options.seed}"]
    arguments += [f"-timeout={SECONDS_PER_INPUT}", "-rss_limit_mb=1024", "-print_final_stats=1"]
    arguments += ["-verbosity=0"]
    arguments += [f"-max_total_time={options.seconds}"] if options.seconds else []
    arguments += [f"-runs={options.executions}"] if options.executions else []
    atheris.Setup(arguments, partial(_try, name, target), internal_libfuzzer=True)
    _say(f"{name}: atheris")
    atheris.Fuzz()  # ends the process
    return 0


def _corpus(name: str) -> Path:
    """Where runs that are guided by coverage keep what led them further."""
    folder = Path(os.environ.get("FUZZ_CORPUS", Path(tempfile.gettempdir()) / "fuzz-corpus")) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _try(name: str, target: Callable[[bytes], None], data: bytes) -> None:
    try:
        target(data)
    except Exception as error:
        found = Path(f"found-{name}-{hashlib.sha256(data).hexdigest()[:12]}")
        found.write_bytes(data)
        _say(f"{name}: {type(error).__name__}, see {found}")
        raise


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
