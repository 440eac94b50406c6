"""What every transport refuses to send or to begin, and with which error; it queues and writes nothing."""

from __future__ import annotations

from collections.abc import Collection

from mcp_client.protocol.errors import (
    FrameTooLargeError,
    LocalProtocolError,
    UnsupportedVersionError,
)
from mcp_client.protocol.limits import ClientLimits

__all__ = ["check_size", "check_spoken", "check_waiting", "not_open", "opened_twice"]


def opened_twice(server: str) -> LocalProtocolError:
    """Return the error of a transport that is opened again."""
    return LocalProtocolError("a transport is opened once", server=server, stage="start")


def not_open(server: str) -> LocalProtocolError:
    """Return the error of a frame for a connection that has not begun, or is over."""
    return LocalProtocolError("the connection is not open", server=server, stage="send")


def check_size(frame: bytes, limits: ClientLimits, server: str) -> None:
    """Raise FrameTooLargeError for a frame past `frame_bytes_max`."""
    if len(frame) > limits.frame_bytes_max:
        raise FrameTooLargeError(
            f"a frame of {len(frame)} bytes is over the bound of {limits.frame_bytes_max}",
            server=server,
            stage="send",
        )


def check_waiting(count: int, limits: ClientLimits, server: str) -> None:
    """Raise LocalProtocolError if so many bytes may not wait to be sent."""
    if count > limits.outbox_bytes_max:
        raise LocalProtocolError(
            f"more than {limits.outbox_bytes_max} bytes wait to be sent",
            server=server,
            stage="send",
        )


def check_spoken(version: str, spoken: Collection[str], *, over: str, server: str) -> None:
    """Raise UnsupportedVersionError for a version that is not spoken over a transport."""
    if version not in spoken:
        raise UnsupportedVersionError(
            f"the server speaks a protocol version that is not spoken over {over}",
            offered=version,
            server=server,
        )
