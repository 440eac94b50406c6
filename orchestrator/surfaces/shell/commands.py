"""The commands of the shell, as a table, and a typed line taken apart. Does nothing and shows nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from orchestrator.core.nearest import did_you_mean

__all__ = [
    "COMMANDS",
    "LINE_CHARS_MAX",
    "MENTIONS_MAX",
    "Action",
    "Command",
    "Invoked",
    "Mention",
    "Nothing",
    "Noun",
    "PromptUsed",
    "Said",
    "Wrong",
    "parse_line",
    "prompt_command",
]

LINE_CHARS_MAX: Final = 64 * 1024
"""Of one line: what is longer belongs into a file that an agent can read in parts."""
MENTIONS_MAX: Final = 16
"""Resources that one line hands over: each is read whole."""
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@([A-Za-z0-9_.-]{1,64}):(\S{1,2048})")


class Action(Enum):
    """What a command does; the values are the words after the slash."""

    HELP = "help"
    AGENTS = "agents"
    SERVERS = "servers"
    TOOLS = "tools"
    SEARCH = "search"
    SPAWN = "spawn"
    KILL = "kill"
    APPROVALS = "approvals"
    ALLOW = "allow"
    DENY = "deny"
    RELOAD = "reload"
    EXPLAIN = "explain"
    AUDIT = "audit"
    COST = "cost"
    LOGIN = "login"
    LOGOUT = "logout"
    DISABLE = "disable"
    ENABLE = "enable"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    QUIT = "quit"


class Noun(Enum):
    """What the first word of a command names."""

    NOTHING = "nothing"
    TEXT = "text"
    AGENT = "agent"
    SERVER = "server"
    TOOL = "tool"
    ASK = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: how it is written, what it does, how many words it takes (`most` None: any)."""

    action: Action
    usage: str
    help: str
    takes: Noun = Noun.NOTHING
    least: int = 0
    most: int | None = 0

    @property
    def name(self) -> str:
        """Its word, without the slash."""
        return self.action.value


COMMANDS: Final[Mapping[str, Command]] = {
    command.name: command
    for command in (
        Command(action=Action.HELP, usage="/help", help="show the commands"),
        Command(
            action=Action.AGENTS, usage="/agents", help="show who is at work, and what it has used"
        ),
        Command(action=Action.SERVERS, usage="/servers", help="show the servers and their states"),
        Command(
            action=Action.TOOLS,
            usage="/tools [SERVER]",
            help="show what may be called, and the rules",
            takes=Noun.SERVER,
            most=1,
        ),
        Command(
            action=Action.SEARCH,
            usage="/search WORDS",
            help="find tools and skills",
            takes=Noun.TEXT,
            least=1,
            most=None,
        ),
        Command(
            action=Action.SPAWN,
            usage="/spawn NAME TASK",
            help="give a task to a subagent, in the background",
            takes=Noun.TEXT,
            least=2,
            most=None,
        ),
        Command(
            action=Action.KILL,
            usage="/kill AGENT",
            help="end an agent and all below it",
            takes=Noun.AGENT,
            least=1,
            most=1,
        ),
        Command(action=Action.APPROVALS, usage="/approvals", help="show what waits for you"),
        Command(
            action=Action.ALLOW,
            usage="/allow NUMBER [session|always]",
            help="answer what waits; `session` for all such calls, `always` for exactly this one",
            takes=Noun.ASK,
            least=1,
            most=2,
        ),
        Command(
            action=Action.DENY,
            usage="/deny NUMBER",
            help="say no to what waits",
            takes=Noun.ASK,
            least=1,
            most=1,
        ),
        Command(action=Action.RELOAD, usage="/reload", help="read servers and policies anew"),
        Command(
            action=Action.EXPLAIN,
            usage="/explain [SERVER/TOOL]",
            help="why the last calls were turned down; what a rule says",
            takes=Noun.TOOL,
            most=1,
        ),
        Command(
            action=Action.AUDIT,
            usage="/audit [COUNT]",
            help="show the last records",
            takes=Noun.TEXT,
            most=1,
        ),
        Command(action=Action.COST, usage="/cost", help="show what was spent"),
        Command(
            action=Action.LOGIN,
            usage="/login SERVER",
            help="log in to a server, in a browser",
            takes=Noun.SERVER,
            least=1,
            most=1,
        ),
        Command(
            action=Action.LOGOUT,
            usage="/logout SERVER",
            help="forget the login to a server",
            takes=Noun.SERVER,
            least=1,
            most=1,
        ),
        Command(
            action=Action.DISABLE,
            usage="/disable SERVER",
            help="withdraw a server until /enable",
            takes=Noun.SERVER,
            least=1,
            most=1,
        ),
        Command(
            action=Action.ENABLE,
            usage="/enable SERVER",
            help="start a disabled server again",
            takes=Noun.SERVER,
            least=1,
            most=1,
        ),
        Command(action=Action.PROMPTS, usage="/prompts", help="show the prompts of the servers"),
        Command(action=Action.RESOURCES, usage="/resources", help="show what can be read"),
        Command(action=Action.QUIT, usage="/quit", help="end the session"),
    )
}
"""Every command by its word."""


@dataclass(frozen=True, slots=True)
class Mention:
    """`@server:uri` in a line: a resource that the person hands over."""

    server: str
    uri: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something for the agent, and the resources that go with it."""

    text: str
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True, slots=True)
class Invoked:
    """A command with its words."""

    command: Command
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptUsed:
    """A prompt of a server, by its command's word, and its arguments by name; those without are in `rest`."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrong:
    """A line that means nothing: why, and what would."""

    reason: str
    fix: str = ""


def prompt_command(server: str, prompt: str) -> str:
    """Return the word of a prompt, without the slash; several may have one, and then none is it."""
    return f"mcp__{server}__{prompt}"


def parse_line(
    line: str, prompts: Iterable[str] = ()
) -> Nothing | Said | Invoked | PromptUsed | Wrong:
    """Take a typed line apart. `prompts` are the words of the prompts there are."""
    if len(line) > LINE_CHARS_MAX:
        return Wrong(
            f"a line has at most {LINE_CHARS_MAX} characters",
            "write it to a file, and name the file",
        )
    text = line.strip()
    if not text:
        return Nothing()
    if not text.startswith("/"):
        return _said(text)
    word, _, rest = text[1:].partition(" ")
    known = tuple(prompts)
    if word in known:
        return _prompt(word, rest)
    command = COMMANDS.get(word)
    if command is None:
        near = did_you_mean(word, (*COMMANDS, *known))
        return Wrong(f"there is no command /{word}", near or "/help shows them")
    words = _words(rest)
    if isinstance(words, Wrong):
        return words
    if len(words) < command.least or (command.most is not None and len(words) > command.most):
        return Wrong(f"it is written {command.usage}", command.help)
    return Invoked(command, words)


def _said(text: str) -> Said | Wrong:
    mentions = tuple(dict.fromkeys(Mention(*found) for found in _MENTION.findall(text)))
    if len(mentions) > MENTIONS_MAX:
        return Wrong(f"a line names at most {MENTIONS_MAX} resources", "ask in several lines")
    return Said(text, mentions)


def _prompt(word: str, rest: str) -> PromptUsed | Wrong:
    words = _words(rest)
    if isinstance(words, Wrong):
        return words
    named: dict[str, str] = {}
    plain: list[str] = []
    for each in words:
        name, equals, value = each.partition("=")
        if equals and name:
            named[name] = value
        else:
            plain.append(each)
    return PromptUsed(word, named, tuple(plain))


def _words(text: str) -> tuple[str, ...] | Wrong:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return Wrong("a quotation mark is not closed", "close it, or write it as \\'")
