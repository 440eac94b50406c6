"""One error for many requests: each gets its own, with its own delivery; it raises none."""

from __future__ import annotations

from mcp_client.protocol.errors import Delivery, McpError, ServerGoneError

__all__ = ["copy_error"]


def copy_error(error: Exception, delivery: Delivery, server: str) -> McpError:
    """Return an error of the same kind and content, for one request alone."""
    if not isinstance(error, McpError):
        gone = ServerGoneError("the connection broke", server=server, delivery=delivery)
        gone.__cause__ = error
        return gone
    own = type(error).__new__(type(error), *error.args)
    own.__dict__.update(error.__dict__)
    own.__cause__ = error.__cause__
    own.delivery = delivery
    own.server = own.server or server
    return own
