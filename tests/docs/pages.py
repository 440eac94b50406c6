"""The blocks of the documentation's pages, and commands of a page run as a reader would. Judges nothing."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.sources import ROOT

__all__ = ["PAGES", "Block", "Command", "blocks", "commands", "run_on_terminal", "says"]

DOCS: Final = ROOT / "docs"
PAGES: Final = (
    DOCS / "index.md",
    *sorted((DOCS / "tutorial").glob("*.md")),
    *sorted((DOCS / "how-to").glob("*.md")),
    *(
        DOCS / "reference" / f"{name}.md"
        for name in ("pipelines", "servers-file", "recipes", "audit", "state")
    ),
    DOCS / "explanation" / "security-model.md",
    ROOT / "examples" / "first_pipeline" / "README.md",
)
"""The pages for users. Those of the command, the errors and the policy language have tests of theirs."""

_BLOCK: Final = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANSWER: Final = re.compile(r"\[y/(?:s/)?(?:a/)?N\] (\w+)$", re.MULTILINE)
_MOVES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_QUESTION: Final = b"/N] "
_END_OF_INPUT: Final = "\x04"
_SECONDS_MAX: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, the file that it is named as, its place."""

    page: Path
    line: int
    language: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a `console` block, what is answered to its questions, what it prints."""

    words: str
    answers: tuple[str, ...]
    output: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        language, file, inside = found.groups()
        yield Block(
            page=page,
            line=text.count("\n", 0, found.start()) + 1,
            language=language,
            file=file or "",
            text=inside,
        )


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a `console` block: each begins with `$ `, its output follows."""
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        words, _, output = piece.partition("\n")
        yield Command(words=words, answers=tuple(_ANSWER.findall(output)), output=output)


def run_on_terminal(command: Command, *, folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command on a terminal, answer its questions, and return what stood there."""
    keyboard, program = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", command.words],
        cwd=folder,
        env={**environ, "TERM": "dumb", "COLUMNS": "200"},
        stdin=program,
        stdout=program,
        stderr=program,
        start_new_session=True,
    )
    os.close(program)
    answers = list(command.answers)
    seen = b""
    try:
        while piece := _read(keyboard):
            seen += piece
            if seen.endswith(_QUESTION):
                answer = f"{answers.pop(0)}\n" if answers else _END_OF_INPUT
                os.write(keyboard, answer.encode())
        process.wait(_SECONDS_MAX)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
    return _MOVES.sub("", seen.decode())


def _read(descriptor: int) -> bytes:
    if not select.select([descriptor], [], [], _SECONDS_MAX)[0]:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how Linux says that the other end was closed
        return b""


def says(output: str, shown: str) -> bool:
    """True if a page's output is what was printed; `…` is any text, on a line of its own any lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in shown.splitlines()
    ]
    return re.fullmatch("".join(lines), output) is not None
