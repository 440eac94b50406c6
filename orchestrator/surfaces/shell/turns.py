"""One turn of the conversation: what a person said and handed over, in the hands of the parent's agent.

Everything that it reads for the person takes the same road as an agent's call. Knows no terminal.
"""

from __future__ import annotations

import json

from orchestrator.agents.results import AgentResult
from orchestrator.broker import AgentView
from orchestrator.core.calls import Call, PromptSpec
from orchestrator.core.capability import CapabilityKind
from orchestrator.core.display import safe_text
from orchestrator.core.errors import ConfigError
from orchestrator.surfaces.shell.commands import PromptUsed, Said
from orchestrator.surfaces.shell.completing import Candidate, Remote, fitting

__all__ = ["Order", "answer_text", "complete_at", "handed_over", "invoked_prompt"]

Order = tuple[str, dict[str, object]]
"""What the agent is told, and what it is handed: the latter is untrusted."""


async def handed_over(said: Said, view: AgentView) -> Order:
    """Read what a line names, each under policy, and return the line with it. Raises RemitError."""
    inputs: dict[str, object] = {}
    for mention in said.mentions:
        content = await view.call(Call.read(mention.server, mention.uri))
        inputs[f"@{mention.server}:{mention.uri}"] = content.text
    return said.text, inputs


async def invoked_prompt(used: PromptUsed, spec: PromptSpec, view: AgentView) -> Order:
    """Get a prompt that the person has chosen, under policy. Raises ConfigError for its arguments.

    Its text is a server's: it is handed over as such, and the person's own word is that it is chosen.
    """
    given = dict(used.arguments)
    free = [name for name in spec.arguments if name not in given]
    given |= dict(zip(free, used.rest, strict=False))
    unknown = [name for name in given if name not in spec.arguments]
    missing = [name for name, needed in spec.arguments.items() if needed and name not in given]
    if unknown or missing or len(used.rest) > len(free):
        words = " ".join(f"{name}=…" for name in spec.arguments)
        raise ConfigError(
            f"/{used.name} does not have these arguments",
            code="E-SHELL-PROMPT",
            fix=f"write it /{used.name} {words}".rstrip(),
        )
    content = await view.call(Call.prompt(spec.server, spec.name, given))
    told = f"I chose the prompt {spec.name!r} of server {spec.server!r}: do what it describes."
    return told, {f"/{used.name}": content.text}


async def complete_at(remote: Remote, view: AgentView) -> list[Candidate]:
    """Ask a server for values, under policy. Raises RemitError."""
    content = await view.call(
        Call.completion(
            remote.server,
            remote.name,
            argument=remote.argument,
            value=remote.value,
            kind=CapabilityKind.RESOURCE_TEMPLATE if remote.is_template else CapabilityKind.PROMPT,
            context=remote.context,
        )
    )
    return fitting("", content.text.splitlines(), typed=remote.typed, before=remote.before)


def answer_text(result: AgentResult) -> str:
    """Return what an agent answered, safe for a terminal, and how it ended where it gave none."""
    answer = result.answer
    if answer is None:
        error = result.error
        if error is None:
            return f"({result.status.value})"
        fix = f"\nfix: {error.fix}" if error.fix else ""
        return safe_text(f"{error.code}: {error.message}{fix}", reveal=True)
    plain = answer if isinstance(answer, str) else json.dumps(answer, indent=2)
    return safe_text(plain, reveal=True, chars_max=None)
