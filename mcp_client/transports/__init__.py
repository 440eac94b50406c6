"""Ways to reach a server; each independent of the others."""

from __future__ import annotations
