"""A login in the editor: what goes wrong while it is waited for is told by its own name."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import pytest

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from orchestrator.surfaces.acp.editor import Editor
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.params import PromptRequest
from orchestrator.surfaces.acp.prompting import Turn
from orchestrator.surfaces.acp.turn import TurnView
from orchestrator.surfaces.acp.visiting import EditorStep
from orchestrator.surfaces.acp.wire import Wire
from orchestrator.surfaces.login import LoopbackStep


def unheard(_: object) -> None:
    """Have nothing to do with it."""


async def test_a_login_whose_port_is_taken_fails_as_itself(tmp_path: Path) -> None:
    limits = AcpLimits()
    turn = Turn(PromptRequest(session="s", text="/login own"), TurnView("1", limits, tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        step = EditorStep(
            editor=Editor(Wire(limits), unheard, limits),
            session="s",
            visit_id="s.1",
            server="own",
            turn=turn,
            loopback=LoopbackStep(tell=unheard, open_url=None, port=taken.getsockname()[1]),
        )
        with anyio.fail_after(10), pytest.raises(AuthorizationFailedError) as caught:
            await step.visit("https://login.example/authorize")

    assert caught.value.fault is AuthFault.CALLBACK
