"""Plain values and Protocols that every layer may know."""

from __future__ import annotations
