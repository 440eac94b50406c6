"""An agent between two pipes, from the first byte to the end of input. Decides nothing."""

from __future__ import annotations

import anyio

from orchestrator.surfaces.acp.agent import AcpAgent
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.plans import Place
from orchestrator.surfaces.acp.stdio import Outbox, read_bytes

__all__ = ["serve"]


async def serve(place: Place, *, reads: int, writes: int, limits: AcpLimits) -> None:
    """Serve an editor until it closes its end; then everything that was started has ended."""
    async with anyio.create_task_group() as group:
        outbox = Outbox(limits, group.cancel_scope.cancel)
        agent = AcpAgent(place, send=outbox.put, group=group, limits=limits)
        group.start_soon(outbox.write_to, writes)
        async for data in read_bytes(reads):
            agent.receive(data)
        group.cancel_scope.cancel()
