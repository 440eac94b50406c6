"""Parsing: from `*.policy` text to rules, or to an error with its place. Decides nothing."""

from __future__ import annotations

from policies.parsing.files import parse, parse_file
from policies.parsing.gathering import Gathered, IncludeReader, gather, include_path
from policies.parsing.literals import quoted
from policies.parsing.repeats import Repeat, repeats_in
from policies.parsing.syntax import GRAMMAR

__all__ = [
    "GRAMMAR",
    "Gathered",
    "IncludeReader",
    "Repeat",
    "gather",
    "include_path",
    "parse",
    "parse_file",
    "quoted",
    "repeats_in",
]
