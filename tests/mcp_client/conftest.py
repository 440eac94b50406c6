from __future__ import annotations

from tests.mcp_client.garbage import collector

__all__ = ["collector"]
