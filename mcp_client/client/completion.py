"""Completion of an argument that somebody is typing; when to ask is the surface's to say."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.surfaces.completion import (
    Completion,
    Reference,
    completion_params,
    read_completion,
)

__all__ = ["CompletionSurface"]


class CompletionSurface(Surface):
    """The part of `Client` that completes arguments."""

    async def complete(
        self,
        reference: Reference,
        argument: str,
        value: str,
        *,
        known: Mapping[str, str] | None = None,
        guard: SendGuard | None = None,
        seconds: float | None = None,
    ) -> Completion:
        """Return candidates for an argument. Cancelling the task takes the request back.

        Args:
            reference: the prompt, or the template of resources.
            argument: the name of its argument or variable.
            value: what has been typed so far.
            known: arguments that are filled in already. Versions before 2025-06-18 have no place
                for them: they are left out then.
            guard: leave to send this one frame; the connection's if None.
            seconds: from now to the answer; `completion_seconds_max` if None.

        Raises LocalProtocolError if the server has not declared completion.
        """
        session = self.session
        params = completion_params(
            reference,
            argument,
            value,
            known=known or {},
            version=session.connection.protocol_version,
        )
        result = await self._ask(
            "completion/complete",
            params,
            guard=guard,
            seconds=session.limits.completion_seconds_max if seconds is None else seconds,
        )
        return read_completion(result, session.limits, server=self.server)
