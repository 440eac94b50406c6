"""A server as a child process: pipes that we write ourselves, under a supervisor that outlives us."""

from __future__ import annotations
