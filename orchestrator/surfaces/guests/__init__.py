"""Other people's frameworks as guests of a snapshot: each brings its model, none holds a client."""

from __future__ import annotations
