"""Evaluation: what a set of policies says to a request. Knows no syntax and no file."""

from __future__ import annotations

from policies.evaluation.conditions import (
    MISSING,
    compile_condition,
    look_up,
    tests_of,
    type_name,
)
from policies.evaluation.decisions import (
    ASK_ALL,
    PolicySet,
    Verdict,
    decide,
    depth_fits,
    kind_fits,
)

__all__ = [
    "ASK_ALL",
    "MISSING",
    "PolicySet",
    "Verdict",
    "compile_condition",
    "decide",
    "depth_fits",
    "kind_fits",
    "look_up",
    "tests_of",
    "type_name",
]
