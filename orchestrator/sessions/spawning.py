"""Built-in tools by which an agent makes agents and asks whoever made it. They grant nothing.

Both take the road of every call: decided by policy, admitted, recorded. What a child may reach is
worked out as for any other: the policy for its role, within what those above it may hand on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

import anyio
import anyio.lowlevel

from orchestrator.agents.budget import Budget
from orchestrator.agents.results import AgentResult
from orchestrator.authority.admission import Grant
from orchestrator.broker import AgentView, BuiltinTool
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.agents import READ_RESULT
from orchestrator.sessions.asks import AskDesk
from orchestrator.sessions.household import AgentWish, Household
from policies.patterns import NamePattern, PatternError

__all__ = ["agent_tools"]

QUESTION_CHARS_MAX: Final = 8_000
"""A question of an agent: more no person reads while a call waits."""
_LIST: Final = {"type": "array", "items": {"type": "string"}}
_NUMBER: Final = {"type": "number", "minimum": 0}
_SPAWN_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["name", "prompt"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "description": "letters, digits, - and _; also its role"},
        "prompt": {"type": "string", "description": "its whole task: it knows nothing of yours"},
        "tools": {**_LIST, "description": "server/pattern of what it may call at most"},
        "budget": {
            "type": "object",
            "additionalProperties": False,
            "properties": dict.fromkeys(
                ("turns", "calls", "tokens", "usd", "bytes", "seconds"), _NUMBER
            ),
        },
    },
}
_ASK_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["question"],
    "additionalProperties": False,
    "properties": {"question": {"type": "string"}},
}
_READ_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["handle"],
    "additionalProperties": False,
    "properties": {"handle": {"type": "string"}, "offset": {"type": "integer", "minimum": 0}},
}


def agent_tools(
    household: Callable[[], Household], desk: AskDesk, limits: OrchestratorLimits
) -> Iterator[BuiltinTool]:
    """Go through the tools by which agents make agents, ask, and read on in their results."""
    yield _spawn_tool(household, parallel_max=limits.spawned_parallel_max)
    yield _read_result_tool(household)
    yield _ask_parent_tool(desk, seconds=limits.approval_seconds_max)


def _spawn_tool(household: Callable[[], Household], *, parallel_max: int) -> BuiltinTool:
    """Return the tool that makes a child of the agent that calls it, and waits for its answer.

    The child has its parent's model. `parallel_max` children of the session are at work at most.
    """
    at_work: set[AgentId] = set()

    async def run(view: AgentView, arguments: Mapping[str, object]) -> str:
        prompt = arguments.get("prompt")
        name = arguments.get("name")
        if not isinstance(prompt, str) or not isinstance(name, str):
            raise _bad("name and prompt are texts, and both are needed")
        if len(at_work) >= parallel_max:
            raise _refused(f"{len(at_work)} agents of agents are at work, the most there may be")
        try:
            parent = household().find(view.agent)
            child = household().one_off(
                AgentWish(
                    name=name,
                    model=parent.model,
                    grant=Grant(tools=_texts(arguments.get("tools"))),
                    budget=_budget(arguments.get("budget")),
                    parent=parent,
                )
            )
            child.check_budget()
        except ConfigError as error:
            raise _refused(error.message) from error
        at_work.add(child.id)
        try:
            return _told(await child.run(prompt))
        finally:
            at_work.discard(child.id)
            child.close()
            child.give_back()

    return BuiltinTool(
        name="spawn_subagent",
        description=(
            "Give a task to an agent of your own and wait for its answer. It can do no more than "
            "you may hand on, and spends of your budget. Calls side by side work side by side."
        ),
        run=run,
        input_schema=_SPAWN_SCHEMA,
    )


def _read_result_tool(household: Callable[[], Household]) -> BuiltinTool:
    """Return the tool by which an agent reads on in its own results, page by page."""

    async def run(view: AgentView, arguments: Mapping[str, object]) -> str:
        handle, offset = arguments.get("handle"), arguments.get("offset", 0)
        if not isinstance(handle, str) or not isinstance(offset, int):
            raise _bad("handle is a text, and offset a number of bytes")
        try:
            page = household().find(view.agent).shelf.read(handle, offset)
        except ConfigError:  # the parent's own agent has none
            page = None
        await anyio.lowlevel.checkpoint()
        if page is None:
            return "There is nothing to read there; call the tool again if you need its result."
        return f"[bytes {page.offset} to {page.end} of {page.size}]\n{page.text}"

    return BuiltinTool(
        name=READ_RESULT,
        description="Read on where a result was cut or summed up, by the handle that stands there.",
        run=run,
        input_schema=_READ_SCHEMA,
    )


def _ask_parent_tool(desk: AskDesk, *, seconds: float) -> BuiltinTool:
    """Return the tool that puts a question to whoever attends the agent, for so many seconds."""

    async def run(view: AgentView, arguments: Mapping[str, object]) -> str:
        question = arguments.get("question")
        if not isinstance(question, str) or not question or len(question) > QUESTION_CHARS_MAX:
            raise _bad(f"a question is a text of at most {QUESTION_CHARS_MAX} characters")
        answer: str | None = None
        with anyio.move_on_after(seconds):
            answer = await desk.question(view.agent, question)
        if answer is None:
            return "Nobody answers. Go on with what you know, or end and say what is missing."
        return answer

    return BuiltinTool(
        name="ask_parent",
        description="Ask whoever gave you the task. Only for what you cannot find out yourself.",
        run=run,
        input_schema=_ASK_SCHEMA,
    )


def _told(result: AgentResult) -> str:
    """Return a child's end as a parent's model reads it: as untrusted as all that the child read."""
    told: dict[str, object] = {
        "agent": result.agent,
        "status": result.status.value,
        "answer": result.answer,
        "sources": list(result.sources),
        "trust": TRUST,
        "authority": AUTHORITY,
    }
    if result.status is not RunStatus.OK and result.error is not None:
        told["error"] = {"code": result.error.code, "message": result.error.message}
    return json.dumps(told, ensure_ascii=False)


def _texts(value: object) -> Sequence[str] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _bad("tools is a list of server/pattern")
    items = cast("list[object]", value)
    if not all(isinstance(item, str) for item in items):
        raise _bad("tools is a list of server/pattern")
    texts = cast("list[str]", items)
    try:
        for text in texts:
            NamePattern.parse(text.partition("/")[2])
    except PatternError as error:
        raise _bad(f"tools is a list of server/pattern: {error}") from None
    return texts


def _budget(value: object) -> Budget | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _bad("budget is an object of numbers")
    given = cast("Mapping[str, object]", value)
    whole = ("turns", "calls", "tokens", "bytes")
    amounts: dict[str, float] = {}
    for name, amount in given.items():
        if name not in (*whole, "usd", "seconds") or not isinstance(amount, int | float):
            raise _bad("budget has numbers for turns, calls, tokens, usd, bytes and seconds")
        amounts[name] = int(amount) if name in whole else float(amount)
    return Budget(**cast("Mapping[str, int]", amounts))


def _bad(message: str) -> AuthorityError:
    return AuthorityError(message, reason=DenyReason.BAD_ARGUMENTS)


def _refused(message: str) -> AuthorityError:
    return AuthorityError(f"no agent was made: {message}", reason=DenyReason.BUDGET_SPENT)
