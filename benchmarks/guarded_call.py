"""What a guarded call costs beside the official SDK and a raw pipe: the stdio rows of `client.py`.

Run it as `python benchmarks/guarded_call.py [--rounds 5] [--json] [--quick]`.
"""

from __future__ import annotations

import sys

from client import main

if __name__ == "__main__":
    sys.argv[1:1] = ["--only", "stdio"]
    main()
