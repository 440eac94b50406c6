"""The Agent Client Protocol, version 1: an editor on stdio has agents at work under a policy."""

from __future__ import annotations
