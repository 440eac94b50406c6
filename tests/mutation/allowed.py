"""Breaks that mean the same as the original, each with the reason why nobody could tell."""

from __future__ import annotations

from typing import Final

__all__ = ["ALLOWED"]

ALLOWED: Final[dict[str, str]] = {
    "orchestrator/broker/bounding.py: removed: chars * 4 <= bytes_max": (
        "a short cut: what is short enough in characters is so in bytes"
    ),
    "orchestrator/broker/duties.py: removed: not decision.duties": (
        "a short cut: without duties nothing is counted, bounded or hidden"
    ),
    "policies/evaluation/conditions.py: slip: low < high": (
        "two equal times are an error where they are read"
    ),
    "policies/evaluation/conditions.py: slip: return False": (
        "asked only by `all` and, at the top, of arguments, which are a mapping: None is as false"
    ),
    "policies/evaluation/index.py: slip: len(maybe.ready.rule.targets) > 1": (
        "a short cut: of a rule that has one target nothing is there twice"
    ),
    "policies/evaluation/verdicts.py: slip: _amount(duty) < _amount(known)": (
        "what bounds the same at the same amount is equal"
    ),
    "policies/evaluation/verdicts.py: slip: found >= upper": (
        "a short cut: what is found is never more than all, and all contexts say no less"
    ),
    "policies/evaluation/examples.py: slip: 7": "an eighth day is the first one again",
}
