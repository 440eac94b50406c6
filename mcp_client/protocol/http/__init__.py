"""What HTTP adds to the protocol: headers, replies, event streams, resumption; no sockets."""

from __future__ import annotations
