"""HTTP/1.1 with a guard in the step of each first byte; it knows neither JSON-RPC nor sessions."""

from __future__ import annotations
