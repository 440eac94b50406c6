"""Policies: who may do what with what MCP servers offer. Pure: values in, a decision out.

Each public name is loaded from its module when it is first asked for, so that importing this
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from policies.errors import Place, PolicyError
    from policies.evaluation import ASK_ALL, PolicySet, Verdict, decide
    from policies.explanation import Explanation, explain
    from policies.limits import PolicyLimits
    from policies.model import (
        Annotations,
        Context,
        Decision,
        Duty,
        Effect,
        Label,
        Operation,
        Policy,
        PolicyFile,
        Principal,
        Reason,
        Request,
        Resource,
        Rule,
        RuleWord,
        Source,
    )
    from policies.parsing import parse, parse_file
    from policies.testing import Outcome, run_tests
    from policies.validation import Catalogue, Finding, Severity, load, validate

__all__ = [
    "ASK_ALL",
    "Annotations",
    "Catalogue",
    "Context",
    "Decision",
    "Duty",
    "Effect",
    "Explanation",
    "Finding",
    "Label",
    "Operation",
    "Outcome",
    "Place",
    "Policy",
    "PolicyError",
    "PolicyFile",
    "PolicyLimits",
    "PolicySet",
    "Principal",
    "Reason",
    "Request",
    "Resource",
    "Rule",
    "RuleWord",
    "Severity",
    "Source",
    "Verdict",
    "decide",
    "explain",
    "load",
    "parse",
    "parse_file",
    "run_tests",
    "validate",
]

_MODULES: Final = {
    "errors": ("Place", "PolicyError"),
    "evaluation": ("ASK_ALL", "PolicySet", "Verdict", "decide"),
    "explanation": ("Explanation", "explain"),
    "limits": ("PolicyLimits",),
    "model": (
        "Annotations",
        "Context",
        "Decision",
        "Duty",
        "Effect",
        "Label",
        "Operation",
        "Policy",
        "PolicyFile",
        "Principal",
        "Reason",
        "Request",
        "Resource",
        "Rule",
        "RuleWord",
        "Source",
    ),
    "parsing": ("parse", "parse_file"),
    "testing": ("Outcome", "run_tests"),
    "validation": ("Catalogue", "Finding", "Severity", "load", "validate"),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
