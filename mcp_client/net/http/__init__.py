"""HTTP/1.1 with a guard in the step of each first byte. The httpx transport is a module of its own."""

from __future__ import annotations
