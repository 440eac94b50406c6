"""Drives the local page and the report in headless Chromium.

    python tests/browser/run.py [PYTEST ARGUMENT]...

Chromium is the system's own (`apt-get install chromium`; `REMIT_CHROMIUM` names another). What drives it is
installed once, in an environment of its own, as the interop tests do it. `REMIT_BROWSER_PICTURES` names a
folder for pictures of each page, light and dark, wide and narrow. It ends as pytest does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments too; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-m", "browser", str(ROOT / "tests/browser")]
    return subprocess.run([*command, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
