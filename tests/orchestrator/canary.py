"""A listener on this machine that only counts who comes: for addresses that nobody may visit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Canary", "canary"]


@dataclass
class Canary:
    """What came to an address. `url` is where it listens, without a path."""

    url: str
    visits: int = 0


@contextmanager
def canary() -> Generator[Canary]:
    """Listen for as long as the block lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Canary(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def count() -> None:
            while True:
                try:
                    came, _ = listener.accept()
                except OSError:  # it was closed
                    return
                came.close()
                found.visits += 1

        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            assert not thread.is_alive()
