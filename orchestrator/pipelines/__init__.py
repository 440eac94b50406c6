"""Directed graphs of subagents."""

from __future__ import annotations
