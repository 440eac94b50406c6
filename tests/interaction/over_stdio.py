"""`Everything` as a process: lines in, lines out. The argument is the protocol version."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from everything import server_of


def main() -> None:
    def send(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")

    server = server_of(sys.argv[1], send)
    for line in sys.stdin:
        server.take(json.loads(line))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
