"""What a server offers, read and bounded kind by kind; nothing is called or fetched."""

from __future__ import annotations
