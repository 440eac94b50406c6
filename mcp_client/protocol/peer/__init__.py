"""What a server asks of the client, read or refused, and its errors; nothing is answered here."""

from __future__ import annotations
