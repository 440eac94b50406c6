"""The servers that an editor hands over, as entries of a servers file. Starts and approves nothing.

They are the person's own word, as a profile's are. Their texts are literal: no `${…}` of theirs
stands for anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from mcp_client.protocol.jsonrpc import as_object
from orchestrator.core.documents import read_json
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServersFile
from orchestrator.sessions.sandbox import SandboxMinimum
from orchestrator.surfaces.acp.errors import INVALID_PARAMS, RequestError
from orchestrator.surfaces.acp.params import text_of

__all__ = ["read_handed"]

_LITERAL: Final = "REMIT_LITERAL_DOLLAR"
_NOT_IN_LABELS: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LABEL_CHARS_MAX: Final = 48


def read_handed(
    servers: Sequence[Mapping[str, object]],
    cwd: Path,
    home: Path,
    minimum: SandboxMinimum | None,
) -> ServersFile:
    """Return the entries. Raises RequestError or ConfigError for what is no server.

    An editor has no word for a sandbox: where `minimum` is for all, those that are started are refused.
    """
    entries: dict[str, dict[str, object]] = {}
    for server in servers:
        label = _label(text_of(server, "name"))
        if label in entries:
            raise RequestError(INVALID_PARAMS, f"two servers are called {label}")
        entries[label] = _entry(server)
    if not entries:
        return ServersFile()
    text = json.dumps({"mcpServers": entries})
    source = ServersSource(
        origin=Origin.PROFILE, minimum=minimum, project=cwd, home=home, environ={_LITERAL: "$"}
    )
    return read_servers(read_json(text, "mcpServers of the editor"), source)


def _label(name: str) -> str:
    """Return the name that policies know a server by: editors take any text for one."""
    label = _NOT_IN_LABELS.sub("-", name).strip("-")[:_LABEL_CHARS_MAX]
    if not label:
        raise RequestError(INVALID_PARAMS, "a server's name has no letter or digit")
    return label


def _entry(server: Mapping[str, object]) -> dict[str, object]:
    kind = server.get("type", "stdio")
    if kind in ("http", "sse"):
        return {
            "type": kind,
            "url": _literal(text_of(server, "url")),
            "headers": _pairs(server, "headers"),
        }
    if kind != "stdio":
        raise RequestError(INVALID_PARAMS, "a server of a kind that was not offered")
    args = server.get("args", [])
    if not isinstance(args, list) or not all(
        isinstance(item, str) for item in cast("list[object]", args)
    ):
        raise RequestError(INVALID_PARAMS, "args is a list of texts")
    return {
        "command": _literal(text_of(server, "command")),
        "args": [_literal(item) for item in cast("list[str]", args)],
        "env": _pairs(server, "env"),
    }


def _pairs(server: Mapping[str, object], name: str) -> dict[str, str]:
    found = server.get(name, [])
    if not isinstance(found, list):
        raise RequestError(INVALID_PARAMS, f"{name} is a list")
    pairs: dict[str, str] = {}
    for item in cast("list[object]", found):
        pair = as_object(item)
        if pair is None:
            raise RequestError(INVALID_PARAMS, f"{name} is a list of objects")
        pairs[text_of(pair, "name")] = _literal(text_of(pair, "value"))
    return pairs


def _literal(text: str) -> str:
    return text.replace("${", f"${{env:{_LITERAL}}}{{")
