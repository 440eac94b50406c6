"""The command `remit`."""

from __future__ import annotations
