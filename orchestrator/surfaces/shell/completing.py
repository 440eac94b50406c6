"""What may stand at the end of a line that is being typed. Knows names alone, and asks nobody itself.

Where only a server knows, it says what to ask it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrator.core.calls import PromptSpec, ResourceSpec
from orchestrator.core.display import safe_line
from orchestrator.surfaces.shell.commands import COMMANDS, Noun, prompt_command

__all__ = [
    "CANDIDATES_MAX",
    "Candidate",
    "Known",
    "Remote",
    "candidates",
    "fitting",
    "prompt_table",
]

CANDIDATES_MAX: Final = 200
"""Shown for one word: nobody reads more."""
_HELP_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that takes the place of the last `typed` characters, and a few words about it."""

    text: str
    typed: int
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What to ask a server: values of an argument of a prompt, or of a variable of a template.

    `before` stands in front of each value that it names, `typed` is how much of the line they replace.
    """

    server: str
    name: str
    argument: str
    value: str
    typed: int
    before: str = ""
    is_template: bool = False
    context: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that there are now."""

    agents: Sequence[str] = ()
    servers: Sequence[str] = ()
    tools: Sequence[str] = ()
    asks: Sequence[str] = ()
    prompts: Mapping[str, PromptSpec] = field(default_factory=dict[str, PromptSpec])
    resources: Sequence[ResourceSpec] = ()


def prompt_table(prompts: Iterable[PromptSpec]) -> Mapping[str, PromptSpec]:
    """Return the prompts by their commands' words. A word that two have, or that is none, is nobody's."""
    found: dict[str, PromptSpec] = {}
    twice: set[str] = set()
    for spec in prompts:
        word = prompt_command(spec.server, spec.name)
        if word in found:
            twice.add(word)
        found[word] = spec
    return {word: spec for word, spec in found.items() if word not in twice and _plain(word)}


def candidates(before: str, known: Known) -> tuple[list[Candidate], Remote | None]:
    """Return what may complete the text before the cursor, and whom else to ask."""
    word = before.rsplit(None, 1)[-1] if before and not before[-1].isspace() else ""
    if word.startswith("@") and not before.lstrip().startswith("/"):
        return _resources(word, known)
    text = before.lstrip()
    if not text.startswith("/"):
        return [], None
    name, space, rest = text[1:].partition(" ")
    if not space:
        return _commands(name, known), None
    if name in known.prompts:
        return _arguments(known.prompts[name], rest, word)
    command = COMMANDS.get(name)
    if command is None or (rest.strip() and rest.strip() != word):
        return [], None
    names: Mapping[Noun, Sequence[str]] = {
        Noun.AGENT: known.agents,
        Noun.SERVER: known.servers,
        Noun.TOOL: known.tools,
        Noun.ASK: known.asks,
    }
    return fitting(word, names.get(command.takes, ()), typed=len(word)), None


def fitting(begun: str, texts: Iterable[str], *, typed: int, before: str = "") -> list[Candidate]:
    """Return those that begin with what is typed and that a terminal can show as they are."""
    found = [
        Candidate(before + text, typed) for text in texts if text.startswith(begun) and _plain(text)
    ]
    return found[:CANDIDATES_MAX]


def _commands(begun: str, known: Known) -> list[Candidate]:
    found = [
        Candidate(f"/{name}", len(begun) + 1, command.help)
        for name, command in COMMANDS.items()
        if name.startswith(begun)
    ]
    found += [
        Candidate(f"/{word}", len(begun) + 1, _about(spec.description))
        for word, spec in known.prompts.items()
        if word.startswith(begun)
    ]
    return found[:CANDIDATES_MAX]


def _arguments(spec: PromptSpec, rest: str, word: str) -> tuple[list[Candidate], Remote | None]:
    name, equals, value = word.partition("=")
    given = dict(part.split("=", 1) for part in rest.split() if "=" in part)
    if equals and name in spec.arguments:
        context = {key: text for key, text in given.items() if key != name}
        return [], Remote(
            server=spec.server,
            name=spec.name,
            argument=name,
            value=value,
            typed=len(value),
            context=context,
        )
    found = [
        Candidate(f"{each}=", len(word), "required" if required else "optional")
        for each, required in spec.arguments.items()
        if each.startswith(word) and each not in given and _plain(each)
    ]
    return found, None


def _resources(word: str, known: Known) -> tuple[list[Candidate], Remote | None]:
    server, colon, uri = word[1:].partition(":")
    if not colon:
        labels = dict.fromkeys(spec.server for spec in known.resources)
        found = fitting(server, labels, typed=len(word), before="@")
        return [Candidate(f"{each.text}:", each.typed) for each in found], None
    mine = [spec for spec in known.resources if spec.server == server]
    whole = [spec.uri for spec in mine if not spec.is_template]
    found = fitting(uri, whole, typed=len(uri))
    for spec in mine:
        if not spec.is_template:
            continue
        fixed, brace, tail = spec.uri.partition("{")
        variable, closed, after = tail.partition("}")
        if not brace or not closed or after:
            continue  # only a variable at the end can be completed by its value alone
        if uri.startswith(fixed):
            return found, Remote(
                server=server,
                name=spec.uri,
                argument=variable.lstrip("+#/"),
                value=uri[len(fixed) :],
                typed=len(uri),
                before=fixed,
                is_template=True,
            )
        if fixed.startswith(uri) and _plain(fixed):
            found.append(Candidate(fixed, len(uri), _about(spec.name)))
    return found, None


def _about(text: str) -> str:
    return safe_line(text, reveal=True, chars_max=_HELP_CHARS)


def _plain(text: str) -> bool:
    """True for a word that a terminal shows as it is; no other is put into a person's line."""
    return bool(text) and text == safe_line(text, reveal=True, chars_max=4_096) and " " not in text
