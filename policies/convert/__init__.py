"""Conversion: rules of other programs, read into policies; policies, written as Cedar. No file, no I/O."""

from __future__ import annotations

from policies.convert.cedar import read_cedar
from policies.convert.cedar_writing import write_cedar
from policies.convert.claude import read_claude
from policies.convert.gemini import read_gemini
from policies.convert.result import Converted, Loss, Widens

__all__ = [
    "Converted",
    "Loss",
    "Widens",
    "read_cedar",
    "read_claude",
    "read_gemini",
    "write_cedar",
]
