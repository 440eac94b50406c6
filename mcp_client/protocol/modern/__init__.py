"""What MCP 2026-07-28 and the extensions add, as values; they know no connection."""

from __future__ import annotations
