"""Agents and skills as files: a text to what it defines. Opens no file, trusts none, grants nothing.

A definition can only narrow: what it names is what its agent may have at most, and the policy decides.
A key by which it would widen anything is refused by name, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

import yaml

from orchestrator.agents.budget import Budget
from orchestrator.core.display import safe_line
from orchestrator.core.documents import read_toml
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.nearest import did_you_mean

__all__ = ["AgentDefinition", "SkillText", "read_agent", "read_skill"]

DEFINITION_BYTES_MAX: Final = 256 * 1024
"""One file of an agent or of a skill: its text goes into a context."""
_FENCE: Final = "---"
_WIDENING: Final = frozenset(
    [
        "permissionmode",
        "permissions",
        "allow",
        "allowed",
        "alwaysallow",
        "autoapprove",
        "trust",
        "hooks",
        "mcpservers",
        "env",
        "headers",
        "baseurl",
        "apikey",
        "sandbox",
        "dangerouslyskippermissions",
        "bypasspermissions",
        "approve",
        "policy",
    ]
)
"""Keys, without case, - and _, by which somebody else's file would give itself something."""
_OWN: Final = ("name", "description", "model", "tools", "delegate", "resources", "budget", "role")
_THEIRS: Final = frozenset(
    {"name", "description", "tools", "disallowedTools", "model", "maxTurns", "color", "effort"}
)
"""What a definition of Claude Code may say here; what else it says is ignored, and told."""
_HARMLESS_MODES: Final = frozenset({"default", "plan"})
_THEIR_MODELS: Final = frozenset({"inherit", "sonnet", "opus", "haiku"})
_MCP: Final = "mcp__"
_BUDGET: Final = ("turns", "calls", "tokens", "usd", "bytes", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """One agent, as a file defines it.

    `tools` and `delegate` are `server/pattern`, None where the file leaves the policy alone. `model` is
    empty where it does not say. `ignored` are keys without a meaning here.
    """

    name: str
    description: str = ""
    prompt: str = ""
    model: str = ""
    role: str = ""
    tools: tuple[str, ...] | None = None
    delegate: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    budget: Budget = field(default_factory=Budget)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """One skill, as a file has it. Whatever else its front matter says means nothing here."""

    name: str
    description: str
    body: str


def read_agent(text: str, path: str) -> AgentDefinition:
    """Read an agent's file: TOML where its name ends so, else Markdown with front matter.

    Raises ConfigError for what it cannot be, for a key that would widen, and in a file of our own
    for one that is not known.
    """
    if path.endswith(".toml"):
        values = dict(read_toml(_bounded(text, path), path).root)
        return _own(values, str(values.pop("prompt", "")), path)
    values, body = _front_matter(text, path)
    if ".claude/" in path.replace("\\", "/"):
        return _theirs(values, body, path)
    return _own(values, body, path)


def read_skill(text: str, path: str) -> SkillText:
    """Read a SKILL.md. `allowed-tools` and the like mean nothing. Raises ConfigError."""
    values, body = _front_matter(text, path)
    return SkillText(
        name=_text(values, "name", path),
        description=_text(values, "description", path),
        body=body,
    )


def _own(values: Mapping[str, object], prompt: str, path: str) -> AgentDefinition:
    _refuse_widening(values, path)
    for key in values:
        if key not in _OWN:
            raise ConfigError(
                f"unknown key {safe_line(key)!r} of an agent",
                code="E-CONFIG-UNKNOWN-KEY",
                fix=did_you_mean(key, _OWN),
                where=Where(path),
            )
    return AgentDefinition(
        name=_text(values, "name", path),
        description=_text(values, "description", path, default=""),
        prompt=prompt,
        model=_text(values, "model", path, default=""),
        role=_text(values, "role", path, default=""),
        tools=_list(values, "tools", path),
        delegate=_list(values, "delegate", path),
        resources=_list(values, "resources", path),
        budget=_budget(values.get("budget"), path),
    )


def _theirs(values: Mapping[str, object], prompt: str, path: str) -> AgentDefinition:
    """Read a definition as Claude Code has it: its own tools are none of ours, and so are not there."""
    values = dict(values)
    if values.get("permissionMode") in _HARMLESS_MODES:
        del values["permissionMode"]
    _refuse_widening(values, path)
    tools = _list(values, "tools", path)
    if values.get("disallowedTools") not in (None, [], ""):
        raise _bad(
            path, "disallowedTools cannot be kept here: name what the agent may use in tools"
        )
    model = _text(values, "model", path, default="")
    turns = values.get("maxTurns")
    if turns is not None and not (isinstance(turns, int) and turns >= 0):
        raise _bad(path, "maxTurns is a number of turns")
    return AgentDefinition(
        name=_text(values, "name", path),
        description=_text(values, "description", path, default=""),
        prompt=prompt,
        model="" if model in _THEIR_MODELS or ":" not in model else model,
        tools=None if tools is None else tuple(_ours(tool) for tool in tools if _is_mcp(tool)),
        budget=Budget(turns=turns),
        ignored=tuple(sorted(set(values) - _THEIRS)),
    )


def _is_mcp(tool: str) -> bool:
    return tool.startswith(_MCP)


def _ours(tool: str) -> str:
    server, _, name = tool.removeprefix(_MCP).partition("__")
    return f"{server}/{name or '*'}"


def _refuse_widening(values: Mapping[str, object], path: str) -> None:
    for key in values:
        if key.lower().replace("-", "").replace("_", "") in _WIDENING:
            raise ConfigError(
                f"a definition may not say {safe_line(key)!r}: it would widen what the agent may do",
                code="E-AGENT-WIDENS",
                fix="take the key out; what an agent may do stands in the policy",
                where=Where(path),
            )


class _PlainLoader(yaml.SafeLoader):
    """YAML without anchors: a short text could stand for an endless one."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            message = "aliases are not read"
            raise yaml.YAMLError(message)
        return super().compose_node(parent, index)


def _front_matter(text: str, path: str) -> tuple[Mapping[str, object], str]:
    lines = _bounded(text, path).split("\n")
    if lines[0].rstrip() != _FENCE:
        raise _bad(path, "the file does not begin with front matter: a line of three hyphens")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise _bad(path, "the front matter does not end: a line of three hyphens")
    try:
        loaded: object = yaml.load("\n".join(lines[1:end]), Loader=_PlainLoader)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        line = place.line + 2 if isinstance(place, yaml.Mark) else 1
        raise ConfigError(
            "the front matter is no YAML", code="E-CONFIG-SYNTAX", where=Where(path, line)
        ) from None
    if not isinstance(loaded, dict):
        raise _bad(path, "the front matter is no table of keys")
    table = cast("dict[object, object]", loaded)
    if not all(isinstance(key, str) for key in table):
        raise _bad(path, "a key of the front matter is no text")
    return cast("dict[str, object]", table), "\n".join(lines[end + 1 :]).strip()


def _bounded(text: str, path: str) -> str:
    if len(text.encode(errors="replace")) > DEFINITION_BYTES_MAX:
        raise ConfigError(
            f"the file has more than {DEFINITION_BYTES_MAX} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=Where(path),
        )
    return text


def _text(values: Mapping[str, object], key: str, path: str, default: str | None = None) -> str:
    value = values.get(key, default)
    if value is None and key not in values:
        raise ConfigError(f"{key} is missing", code="E-CONFIG-MISSING-KEY", where=Where(path))
    if not isinstance(value, str):
        raise _bad(path, f"{key} is a text")
    return value.strip()


def _list(values: Mapping[str, object], key: str, path: str) -> tuple[str, ...] | None:
    """Return a list; a text is one with commas in between. None where the key is not there."""
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(item, str) for item in items):
        raise _bad(path, f"{key} is a list of texts")
    return tuple(cast("list[str]", items))


def _budget(value: object, path: str) -> Budget:
    if value is None:
        return Budget()
    if not isinstance(value, Mapping):
        raise _bad(path, "budget is a table")
    given = dict(cast("Mapping[str, object]", value))
    for name, amount in given.items():
        whole = name not in ("usd", "seconds")
        fits = isinstance(amount, int) if whole else isinstance(amount, int | float)
        if name not in _BUDGET or isinstance(amount, bool) or not fits:
            raise _bad(path, f"a budget has numbers for {', '.join(_BUDGET)}")
    return Budget(**cast("dict[str, int]", given))


def _bad(path: str, message: str) -> ConfigError:
    return ConfigError(message, code="E-CONFIG-VALUE", where=Where(path))
