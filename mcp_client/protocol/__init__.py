"""The protocol as values and state tables: bytes in, events out, no I/O."""

from __future__ import annotations
