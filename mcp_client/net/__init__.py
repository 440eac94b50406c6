"""The network: the event loop's own primitives, which nobody else touches, and HTTP under a guard."""

from __future__ import annotations
