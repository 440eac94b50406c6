"""A login to a server, consented to in the editor: it opens the address, this machine hears it come back.

Knows no token. Nobody waits longer than the turn in which the login was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import anyio

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.settings import AuthorizationStep
from orchestrator.core.display import safe_line
from orchestrator.core.groups import ungrouped
from orchestrator.surfaces.acp.editor import Editor
from orchestrator.surfaces.acp.errors import RequestError
from orchestrator.surfaces.acp.prompting import Turn

__all__ = ["ComesBack", "EditorStep"]


class ComesBack(AuthorizationStep, Protocol):
    """Hears a browser come back to this machine; it opens and shows nothing."""

    def close(self) -> None:
        """Give the address up that nobody came back to."""
        ...


@dataclass(kw_only=True)
class EditorStep:
    """An `AuthorizationStep` of an editor. `turn` is the one at work, whose person is asked."""

    editor: Editor
    session: str
    visit_id: str
    server: str
    turn: Turn
    loopback: ComesBack

    @property
    def redirect_uri(self) -> str:
        """Where the browser comes back to. Raises AuthorizationFailedError if its port is taken."""
        return self.loopback.redirect_uri

    async def visit(self, url: str) -> str:
        """Have the editor open an address; return the one that the browser came back to.

        Raises AuthorizationFailedError if the person does not agree, or the turn ends before.
        """
        try:
            with ungrouped():
                back = await self._came_back(url)
        finally:
            self.loopback.close()
        if not back:
            raise AuthorizationFailedError(AuthFault.DENIED)
        self.editor.notify("elicitation/complete", {"elicitationId": self.visit_id})
        return back

    async def _came_back(self, url: str) -> str:
        """Return the address that the browser came back to; empty if it is not waited for any more."""
        back = ""
        async with anyio.create_task_group() as group:

            async def consent() -> None:
                if not await self._agreed(url):
                    group.cancel_scope.cancel()

            async def turn_over() -> None:
                await self.turn.over.wait()
                group.cancel_scope.cancel()

            group.start_soon(consent)
            group.start_soon(turn_over)
            back = await self.loopback.visit(url)
            group.cancel_scope.cancel()
        return back

    async def _agreed(self, url: str) -> bool:
        host = safe_line(urlsplit(url).hostname or "", reveal=True)
        try:
            answer = await self.editor.ask(
                "elicitation/create",
                {
                    "sessionId": self.session,
                    "mode": "url",
                    "url": url,
                    "elicitationId": self.visit_id,
                    "message": f"log in to server {self.server}\nopens {host}",
                },
            )
        except RequestError:
            return False
        return answer.get("action") == "accept"

    def close(self) -> None:
        """Give the address up that nobody came back to."""
        self.loopback.close()
