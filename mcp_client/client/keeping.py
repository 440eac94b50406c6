"""One server over several connections: reached again when it is gone, so often and no more; it calls nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import anyio

from mcp_client.client.client import Client
from mcp_client.client.standing import Standing
from mcp_client.protocol.errors import CallTimeoutError, McpError, ServerGoneError, StartError
from mcp_client.protocol.limits import ClientLimits

__all__ = ["keep_connected"]

ResultT = TypeVar("ResultT")

_OUR_LIMITS: Final = ClientLimits()
_GONE: Final = (ServerGoneError, StartError, CallTimeoutError)
"""What ends a connection, or a try at one, and may be otherwise a moment later."""


async def keep_connected(
    reach: Callable[[], AbstractAsyncContextManager[Client]],
    use: Callable[[Client], Awaitable[ResultT]],
    *,
    limits: ClientLimits = _OUR_LIMITS,
) -> ResultT:
    """Run `use` with a client until it returns, and again with a new one whenever the server is gone.

    What was in flight is lost with its connection: nothing is sent again by itself, and `use`
    begins anew. Subscriptions and the level of logs are asked for again before it does. A server
    that crashes again and again is waited for longer each time, and given up after
    `reconnects_max` tries in a row; one that lasted `connection_settled_seconds` begins anew.

    Args:
        reach: makes a connection: `partial(connect, source, guard=guard)`, say.
        use: what is done with it; cancelled when the connection is over.
        limits: the bounds of all that.

    Raises what the first connection raises, what ended the last one, and what `use` raises while
    its connection stands.
    """
    keeping = _Keeping(use)
    tries = 0
    while True:
        began = anyio.current_time()
        try:
            async with reach() as client:
                await keeping.over(client)
        except _GONE as error:
            if not keeping.was_reached or keeping.failed:
                raise
            keeping.cause = error
        if keeping.results:
            return keeping.results[0]
        if anyio.current_time() - began >= limits.connection_settled_seconds:
            tries = 0
        tries += 1
        if tries > limits.reconnects_max:
            raise keeping.cause
        await anyio.sleep(limits.reconnect_seconds * 2 ** (tries - 1))


@dataclass
class _Keeping(Generic[ResultT]):
    """What goes on from one connection to the next."""

    use: Callable[[Client], Awaitable[ResultT]]
    was_reached: bool = False
    failed: bool = False
    cause: Exception = field(default_factory=lambda: ServerGoneError("never reached"))
    standing: Standing = field(default_factory=Standing)
    results: list[ResultT] = field(default_factory=list[ResultT])

    async def over(self, client: Client) -> None:
        """Use one connection until it is over, or what uses it has returned or failed."""
        self.was_reached = True
        failure: BaseException | None = None
        async with anyio.create_task_group() as group:

            async def until_lost() -> None:
                self.cause = await client.wait_lost()
                group.cancel_scope.cancel()

            group.start_soon(until_lost)
            try:
                await client.restore(self.standing)
                self.results.append(await self.use(client))
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # noqa: BLE001  # raised below, not in a group of one
                failure = error
            finally:
                self.standing = client.standing
            group.cancel_scope.cancel()
        lost = client.session.lost
        if failure is not None and (lost is None or not isinstance(failure, McpError)):
            self.failed = True
            raise failure
        if lost is not None:
            self.cause = lost
