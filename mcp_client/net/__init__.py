"""The one place that touches the event loop's own read, write and timer primitives."""

from __future__ import annotations
