"""Parsing: from `*.policy` text to rules, or to an error with its place. Decides nothing."""

from __future__ import annotations

from policies.parsing.rules import parse
from policies.parsing.syntax import GRAMMAR

__all__ = ["GRAMMAR", "parse"]
