"""Explanation: why a decision is what it is, and what would have had to be otherwise."""

from __future__ import annotations

from policies.explanation.explaining import Explanation, explain
from policies.explanation.nearest import FailedTest, NearMiss

__all__ = ["Explanation", "FailedTest", "NearMiss", "explain"]
