"""`python -m orchestrator.cli`: the command, where its script is not on the path."""

from __future__ import annotations

import sys

from orchestrator.cli.frame import main

if __name__ == "__main__":
    sys.exit(main())
