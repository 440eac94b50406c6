"""The append-only, hash-chained record."""

from __future__ import annotations
