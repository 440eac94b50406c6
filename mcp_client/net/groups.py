"""Tasks that end with a block, whose failure leaves the block as itself and in no group; knows no task."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

__all__ = ["tasks_of_block"]


@asynccontextmanager
async def tasks_of_block() -> AsyncGenerator[anyio.abc.TaskGroup]:
    """Own tasks until the block is left: they are cancelled then, and none is left after it.

    What the block itself raises comes out as it is, not in a group of one.
    """
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        try:
            yield group
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001  # raised again below, not in a group of one
            failure = error
        finally:
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
