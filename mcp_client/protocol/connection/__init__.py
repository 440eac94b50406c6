"""The states of a connection, with a handshake and without; frames in, events out, no I/O."""

from __future__ import annotations
