"""The protocol versions that the client speaks, and what differs between them; no messages."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BATCHING_VERSION",
    "CLIENT_NAME",
    "CLIENT_VERSION",
    "MODERN_VERSION",
    "MODERN_VERSIONS",
    "PREFERRED_VERSION",
    "SUPPORTED_VERSIONS",
]

SUPPORTED_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions that begin with `initialize`, the newest first."""

PREFERRED_VERSION: Final = SUPPORTED_VERSIONS[0]
"""What `initialize` asks for."""

BATCHING_VERSION: Final = "2025-03-26"
"""The one version in which a server may send arrays of messages."""

MODERN_VERSION: Final = "2026-07-28"
"""Has no `initialize`: each request describes itself. Spoken by `ModernConnection`."""

MODERN_VERSIONS: Final = (MODERN_VERSION,)
"""Versions without `initialize`, the newest first."""

CLIENT_NAME: Final = "remit"
"""`clientInfo.name`."""

CLIENT_VERSION: Final = "0.1.0"
"""`clientInfo.version`, that of the distribution."""
