"""Subagents: the loop, their models, their budgets."""

from __future__ import annotations
