"""Evaluation: what a set of policies says to a request. Knows no syntax and no file."""

from __future__ import annotations

from policies.evaluation.conditions import Predicate, compile_condition, tests_of
from policies.evaluation.ready import depth_fits, kind_fits, who_fits
from policies.evaluation.sets import ASK_ALL, PolicySet, decide, set_of
from policies.evaluation.values import MISSING, look_up, type_name
from policies.evaluation.verdicts import Verdict
from policies.evaluation.witnesses import witnesses

__all__ = [
    "ASK_ALL",
    "MISSING",
    "PolicySet",
    "Predicate",
    "Verdict",
    "compile_condition",
    "decide",
    "depth_fits",
    "kind_fits",
    "look_up",
    "set_of",
    "tests_of",
    "type_name",
    "who_fits",
    "witnesses",
]
