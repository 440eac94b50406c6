"""A server that reads one line for each byte that a FIFO brings, and reports each line's length.

Arguments: the FIFO's path. A report is `LENGTH FIRST_BYTES`; at the end of input `end LENGTH` with
what had come of an unfinished line.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    commands = os.open(sys.argv[1], os.O_RDONLY)
    pending = bytearray()
    while os.read(commands, 1):
        end = pending.find(b"\n")
        while end < 0:
            data = os.read(0, 1 << 16)
            if not data:
                os.write(1, b"end %d\n" % len(pending))
                return
            fresh = data.find(b"\n")
            end = len(pending) + fresh if fresh >= 0 else -1
            pending += data
        os.write(1, b"%d %s\n" % (end, pending[:4]))
        del pending[: end + 1]


if __name__ == "__main__":
    main()
