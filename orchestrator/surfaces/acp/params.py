"""What an editor asks for, read from its params: each field of the type that it must have. No state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mcp_client.protocol.jsonrpc import as_object
from orchestrator.core.display import safe_line
from orchestrator.sessions.elicitations import ElicitationMode
from orchestrator.surfaces.acp.errors import INVALID_PARAMS, RequestError
from orchestrator.surfaces.acp.limits import AcpLimits

__all__ = [
    "ClientOffer",
    "OpenRequest",
    "PromptRequest",
    "read_offer",
    "read_open",
    "read_prompt",
    "text_of",
    "text_or_none",
]

Params = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOffer:
    """What the editor can do: the ways in which it can ask a person something."""

    modes: frozenset[ElicitationMode] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A session to open: where, with which servers. `session` is empty for a new one."""

    cwd: Path
    servers: Sequence[Params]
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """What a person wrote. `context` are files that the editor has put beside it: untrusted."""

    session: str
    text: str
    context: Mapping[str, object] = field(default_factory=dict[str, object])


def read_offer(params: Params) -> ClientOffer:
    """Read `initialize`. Raises RequestError for a version that is no number."""
    if type(params.get("protocolVersion")) is not int:
        raise _wrong("protocolVersion", "a whole number")
    capabilities = as_object(params.get("clientCapabilities")) or {}
    elicitation = as_object(capabilities.get("elicitation")) or {}
    # unlike in MCP, an empty object declares nothing
    modes = [mode for mode in ElicitationMode if as_object(elicitation.get(mode.value)) is not None]
    return ClientOffer(modes=frozenset(modes))


def read_open(params: Params, limits: AcpLimits, *, known: bool) -> OpenRequest:
    """Read `session/new`, and with `known` `session/load` and `session/resume`."""
    cwd = Path(text_of(params, "cwd"))
    if not cwd.is_absolute() or "\0" in str(cwd):
        raise _wrong("cwd", "an absolute path")
    servers = params.get("mcpServers", [])
    if not isinstance(servers, list):
        raise _wrong("mcpServers", "a list")
    items = cast("list[object]", servers)
    if len(items) > limits.servers_max:
        raise RequestError(INVALID_PARAMS, f"more than {limits.servers_max} servers")
    found: list[Params] = []
    for item in items:
        server = as_object(item)
        if server is None:
            raise _wrong("mcpServers", "a list of objects")
        found.append(server)
    return OpenRequest(
        cwd=cwd, servers=found, session=text_of(params, "sessionId") if known else ""
    )


def read_prompt(params: Params, limits: AcpLimits) -> PromptRequest:
    """Read `session/prompt`. Raises RequestError for blocks that were not offered to be read."""
    session = text_of(params, "sessionId")
    blocks = params.get("prompt")
    if not isinstance(blocks, list):
        raise _wrong("prompt", "a list of blocks")
    items = cast("list[object]", blocks)
    if len(items) > limits.prompt_blocks_max:
        raise RequestError(
            INVALID_PARAMS, f"a prompt has more than {limits.prompt_blocks_max} blocks"
        )
    texts: list[str] = []
    context: dict[str, object] = {}
    for item in items:
        block = as_object(item)
        if block is None:
            raise _wrong("prompt", "a list of blocks")
        match block.get("type"):
            case "text":
                texts.append(text_of(block, "text"))
            case "resource_link":
                name = safe_line(text_of(block, "name"))
                texts.append(f"[{name}]({safe_line(text_of(block, 'uri'), chars_max=8_192)})")
            case "resource":
                uri, text = _resource(block)
                context[f"file {len(context) + 1}"] = {"uri": uri, "text": text}
            case _:
                raise RequestError(INVALID_PARAMS, "a block of a kind that was not offered")
    text = "\n".join(texts)
    size = len(text) + sum(len(str(value)) for value in context.values())
    if size > limits.prompt_chars_max:
        raise RequestError(
            INVALID_PARAMS, f"a prompt has more than {limits.prompt_chars_max} characters"
        )
    if not text.strip():
        raise RequestError(INVALID_PARAMS, "the prompt is empty")
    return PromptRequest(session=session, text=text, context=context)


def text_of(params: Params, name: str) -> str:
    """Return a text. Raises RequestError if it is missing or none."""
    value = params.get(name)
    if not isinstance(value, str):
        raise _wrong(name, "a text")
    return value


def text_or_none(params: Params, name: str) -> str | None:
    """Return a text, or None where there is none. Raises RequestError for anything else."""
    return None if params.get(name) is None else text_of(params, name)


def _resource(block: Params) -> tuple[str, str]:
    resource = as_object(block.get("resource"))
    if resource is None:
        raise _wrong("resource", "an object")
    text = resource.get("text")
    if not isinstance(text, str):
        raise RequestError(INVALID_PARAMS, "an embedded resource that is no text")
    return text_of(resource, "uri"), text


def _wrong(name: str, what: str) -> RequestError:
    return RequestError(INVALID_PARAMS, f"{name} is {what}")
