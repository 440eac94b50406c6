"""Which files the words of a command line may name. Text only: looks at no file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

__all__ = ["LOADING_VARIABLES", "file_names", "folder_files", "loads_code", "module_names"]

_SPLITS: Final = (
    re.compile(r"[\s=:;,]+"),
    # what a shell would not take for a part of a name
    re.compile(r"[\s=:;,'\"`()<>|&{}\[\]!$@#]+"),
)
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MODULE_OPTION: Final = re.compile(r"-[A-Za-z]*?m(.*)", re.DOTALL)
_ATTACHED: Final = re.compile(r"-[A-Za-z](.+)", re.DOTALL)
_HOST: Final = re.compile(r"//localhost(?=/)")
_FOLDER_FILES: Final = ("__main__.py", "index.cjs", "index.js", "index.mjs", "package.json")

LOADING_VARIABLES: Final = re.compile(
    r"PATH|HOME|SHELL|IFS|ENV|BASH_ENV|CLASSPATH|CDPATH|GCONV_PATH|LOCPATH|EDITOR|VISUAL|PAGER"
    r"|(?:LD|DYLD|NODE|PYTHON|PERL5?|RUBY|GIT|JAVA|JDK|NPM|UV|PIP|DENO|BUN|LUA|GEM|BUNDLE|PHP)_?.*"
    r"|.*_(?:OPTIONS|COMMAND|PRELOAD|PATH)|npm_config_.*",
)
"""Variables by which a program is made to run, or to load, something else."""


def loads_code(variable: str) -> bool:
    """Return True if a variable of this name may decide which code is run."""
    return LOADING_VARIABLES.fullmatch(variable) is not None


def file_names(words: Sequence[str]) -> Iterator[str]:
    """Yield every text in the words that may be the name of a file or folder, each once.

    A word may be it, or hold it: in `NAME=path`, a list, a URL, a shell's line, after an option's
    letter. What a shell or a program would compute cannot be known.
    """
    seen: set[str] = set()
    for word in words:
        for name in _names(word):
            if name and "\x00" not in name and name not in seen:
                seen.add(name)
                yield name


def module_names(words: Sequence[str]) -> Iterator[str]:
    """Yield the files of the module that `-m NAME` or `-mNAME` runs, its packages' included."""
    for number, word in enumerate(words):
        for text in (word, *_split(word)):
            option = _MODULE_OPTION.fullmatch(text)
            if option is None:
                continue
            following = words[number + 1 : number + 2] if text == word else _after(word, text)
            for module in (option.group(1), *following):
                if _MODULE.fullmatch(module):
                    yield from _module_files(module)


def folder_files(folder: str) -> Iterator[str]:
    """Yield what a program that is given a folder runs of it."""
    return (f"{folder}/{name}" for name in _FOLDER_FILES)


def _module_files(module: str) -> Iterable[str]:
    parts = module.split(".")
    path = "/".join(parts)
    yield f"{path}.py"
    yield f"{path}/__main__.py"
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end]) + "/__init__.py"


def _names(word: str) -> Iterator[str]:
    for text in (word, *_split(word)):
        yield text
        attached = _ATTACHED.fullmatch(text)
        if attached is not None:
            yield attached.group(1)
        if "%" in text:
            yield unquote(text)
        if text.startswith("//"):
            yield _HOST.sub("", unquote(text))
        if text.startswith("~/"):
            yield text[2:]


def _split(word: str) -> Iterator[str]:
    for separators in _SPLITS:
        yield from separators.split(word)
    try:
        yield from shlex.split(word)
    except ValueError:  # a quote that is left open
        return


def _after(word: str, text: str) -> list[str]:
    """Return the words after `text` in a word that is itself a command line."""
    pieces = _SPLITS[1].split(word)
    return [after for before, after in pairwise(pieces) if before == text]
