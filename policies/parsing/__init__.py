"""Parsing: from `*.policy` text to rules, or to an error with its place. Decides nothing."""

from __future__ import annotations

from policies.parsing.files import parse, parse_file
from policies.parsing.syntax import GRAMMAR

__all__ = ["GRAMMAR", "parse", "parse_file"]
