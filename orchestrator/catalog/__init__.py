"""What servers offer, by name and pinned definition. Pure."""

from __future__ import annotations
