"""Breaks that mean the same as the original, each with the reason why nobody could tell.

Where a module has the same check more than once, the name ends with the function that it is in.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ALLOWED"]

ALLOWED: Final[dict[str, str]] = {
    "orchestrator/broker/bounding.py: removed: chars * 4 <= bytes_max": (
        "a short cut: what is short enough in characters is so in bytes"
    ),
    "orchestrator/broker/road.py: removed: permit.sent()": (
        "the permit of a built-in tool is in nobody's hands once it has been asked"
    ),
    "orchestrator/broker/deciding.py: removed: current and (constant := capability.constant) is not None": (
        "a short cut: a verdict that is the same for all contexts returns it for each"
    ),
    "orchestrator/broker/deciding.py: removed: current": (
        "a short cut: since the present policy there was none"
    ),
    "mcp_client/net/http/connection.py: removed: exchange is None": (
        "whoever loses a connection does so for an exchange: the types do not say it"
    ),
    "mcp_client/transports/stdio/process_tree.py: removed: not lists": (
        "another way to the same: that it is the same is tested, where both can be gone"
    ),
    "mcp_client/transports/stdio/process_tree.py: inverted: not lists": (
        "another way to the same, which takes longer"
    ),
    "mcp_client/transports/stdio/server_process.py: removed: self._keeper_fd < 0": (
        "a keeper that has not told who it is has the number 0, which no process has as its parent"
        " where the kernel lists children"
    ),
    "mcp_client/transports/stdio/transport.py: removed: len(data) < READ_BYTES": (
        "a short cut: what did not fill is asked for once more, and there is nothing"
    ),
    "mcp_client/transports/stdio/transport.py: inverted: len(data) < READ_BYTES": (
        "what filled is asked for in the next step, in which the pipe is readable still"
    ),
    "mcp_client/transports/stdio/transport.py: removed: self._stdin < 0": (
        "a short cut: whatever ends the writing leaves nothing queued, and a write that refuses"
    ),
    "mcp_client/transports/stdio/transport.py: removed: self._lost in _take": (
        "while a frame is handed over nothing ends the connection, unless a task begins in the step"
        " that makes it: asyncio can be told so from Python 3.12 on"
    ),
    "mcp_client/transports/stdio/supervisor_main.py: removed: alive and alive <= known": (
        "a matter of pace: what is dying is looked at again at once, not in five milliseconds"
    ),
    "mcp_client/transports/stdio/supervisor_main.py: inverted: alive and alive <= known": (
        "a matter of pace: what was born meanwhile is looked at in five milliseconds, not at once"
    ),
    "mcp_client/transports/streamable_http/request.py: removed: not self._kept": (
        "a short cut: what comes in one piece is not copied"
    ),
    "mcp_client/transports/streamable_http/transport.py: removed: self._over in _lose": (
        "whoever calls it has looked, and nothing ends the connection between the two, unless a task"
        " begins in the step that makes it: asyncio can be told so from Python 3.12 on"
    ),
    "orchestrator/authority/_mint.py: removed: self.clear == turn": (
        "a short cut: where nothing was taken back since the last look, a look finds nothing"
    ),
    "policies/evaluation/conditions.py: slip: low < high": (
        "two equal times are an error where they are read"
    ),
    "policies/evaluation/conditions.py: slip: return False": (
        "asked only by `all` and, at the top, of arguments, which are a mapping: None is as false"
    ),
    "policies/evaluation/index.py: slip: len(maybe.ready.rule.targets) > 1": (
        "a short cut: of a rule that has one target nothing is there twice"
    ),
    "policies/evaluation/verdicts.py: slip: _amount(duty) < _amount(known)": (
        "what bounds the same at the same amount is equal"
    ),
    "policies/evaluation/verdicts.py: slip: found >= upper": (
        "a short cut: what is found is never more than all, and all contexts say no less"
    ),
    "policies/evaluation/examples.py: slip: 7": "an eighth day is the first one again",
}
