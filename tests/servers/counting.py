"""A server that reads one line for each byte that a FIFO brings, and reports each line's length.

Arguments: the FIFO's path. A report is `LENGTH FIRST_BYTES`; at the end of input `end LENGTH` with
what had come of an unfinished line.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    commands = os.open(sys.argv[1], os.O_RDONLY)
    pending = b""
    while os.read(commands, 1):
        while b"\n" not in pending:
            data = os.read(0, 1 << 16)
            if not data:
                os.write(1, b"end %d\n" % len(pending))
                return
            pending += data
        line, _, pending = pending.partition(b"\n")
        os.write(1, b"%d %s\n" % (len(line), line[:4]))


if __name__ == "__main__":
    main()
