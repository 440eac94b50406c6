"""Authorization of one HTTP server for one client; it decides nothing about calls."""

from __future__ import annotations
