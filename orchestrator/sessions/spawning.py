"""Built-in tools by which an agent makes agents, looks after them, and asks whoever made it. They grant nothing.

All take the road of every call: decided by policy, admitted, recorded. What a child may reach is
worked out as for any other: the policy for its role, within what those above it may hand on. What an
agent is told of a child carries the labels of the child, and what it tells a child its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, cast

import anyio
import anyio.lowlevel

from orchestrator.agents.budget import Budget
from orchestrator.agents.definitions import AgentDefinition
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import Earlier
from orchestrator.agents.results import AgentResult
from orchestrator.authority.admission import Grant
from orchestrator.authority.ledger import Cell
from orchestrator.broker import AgentView, BuiltinTool
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.agents import OneOffSubagent, Subagent
from orchestrator.sessions.asks import AskDesk
from orchestrator.sessions.background import Helper, Helpers
from orchestrator.sessions.defined import Definitions
from orchestrator.sessions.household import AgentWish, Household
from orchestrator.sessions.models import model_of
from orchestrator.sessions.outfits import READ_RESULT
from policies.patterns import NamePattern, PatternError

__all__ = ["agent_tools"]

QUESTION_CHARS_MAX: Final = 8_000
"""A question of an agent: more no person reads while a call waits."""
RESULT_SECONDS_MAX: Final = 300
"""How long one call waits for a child in the background: who wants to wait longer asks again."""
_HISTORY_MAX: Final = AgentLimits().history_tasks_max
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
        "definition": {"type": "string", "description": "an agent that is defined for you"},
        "background": {
            "type": "boolean",
            "description": "do not wait: look for its answer with subagent_result",
        },
        "resume": {
            "type": "boolean",
            "description": "go on from what a child of this name did in the background",
        },
        "budget": {
            "type": "object",
            "additionalProperties": False,
            "properties": dict.fromkeys(
                ("turns", "calls", "tokens", "usd", "bytes", "seconds"), _NUMBER
            ),
        },
    },
}
_NAME: Final = {"type": "string", "description": "the name that it was given"}
_RESULT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "wait_seconds": {"type": "number", "minimum": 0, "maximum": RESULT_SECONDS_MAX},
    },
}
_MESSAGE_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["name", "text"],
    "additionalProperties": False,
    "properties": {"name": _NAME, "text": {"type": "string"}},
}
_CLOSE_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": _NAME},
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
    household: Callable[[], Household],
    desk: AskDesk,
    limits: OrchestratorLimits,
    definitions: Callable[[], Definitions],
) -> Iterator[BuiltinTool]:
    """Go through the tools by which agents make agents, ask, and read on in their results."""
    helpers = Helpers()
    yield from _Spawning(
        household, helpers, definitions, parallel_max=limits.spawned_parallel_max
    ).tools()
    yield _read_result_tool(household)
    yield _ask_parent_tool(desk, helpers, seconds=limits.approval_seconds_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What a model wants of a child."""

    name: str
    prompt: str
    tools: Sequence[str] | None
    definition: str | None
    budget: Budget | None
    background: bool
    resume: bool


class _Spawning:
    """The tools by which an agent makes children and looks after those in the background.

    A child has its parent's model, unless its definition names another. `parallel_max` children of
    the session are at work at most, whoever waits for them.
    """

    def __init__(
        self,
        household: Callable[[], Household],
        helpers: Helpers,
        definitions: Callable[[], Definitions],
        *,
        parallel_max: int,
    ) -> None:
        self._household = household
        self._helpers = helpers
        self._definitions = definitions
        self._parallel_max = parallel_max
        self._at_work: set[Cell] = set()

    def tools(self) -> Iterator[BuiltinTool]:
        """Go through the tools."""
        yield BuiltinTool(
            name="spawn_subagent",
            description=(
                "Give a task to an agent of your own and wait for its answer, or let it work in the "
                "background. It can do no more than you may hand on, spends of your budget and ends "
                "with you. Calls side by side work side by side."
            ),
            run=self._spawn,
            input_schema=_SPAWN_SCHEMA,
        )
        yield BuiltinTool(
            name="subagent_result",
            description=(
                "Look how far an agent of yours in the background is: running, asking you something "
                "(answer with message_subagent), or over, with its answer. Waits if you let it."
            ),
            run=self._result,
            input_schema=_RESULT_SCHEMA,
        )
        yield BuiltinTool(
            name="message_subagent",
            description=(
                "Write to an agent of yours at work in the background: it reads before its next "
                "turn. Answers its question if it asks one."
            ),
            run=self._message,
            input_schema=_MESSAGE_SCHEMA,
        )
        yield BuiltinTool(
            name="close_subagent",
            description="End an agent of yours in the background, and all that it has started.",
            run=self._close,
            input_schema=_CLOSE_SCHEMA,
        )

    async def _spawn(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        order = _order(arguments)
        if len(self._at_work) >= self._parallel_max:
            raise _refused(
                f"{len(self._at_work)} agents of agents are at work, the most there may be"
            )
        former = self._former(view, order.name) if order.resume else None
        try:
            parent = self._household().find(view.agent)
            wish = self._wish(order, parent) if former is None else _again(former, order, parent)
            child = self._made(wish)
        except ConfigError as error:
            raise _refused(error.message) from error
        over = partial(self._over, child)
        self._at_work.add(child.cell)
        if order.background:
            helper = Helper(
                child=child,
                under=view.cell,
                wish=wish,
                prompt=order.prompt,
                history=_history(former),
                over=over,
            )
            return self._started(helper)
        try:
            return _told(await child.run(order.prompt, history=_history(former)))
        finally:
            over()

    def _started(self, helper: Helper) -> str:
        try:
            helper.child.home.in_background(helper.work)
        except ConfigError as error:
            helper.over()
            raise _refused(error.message) from error
        self._helpers.keep(helper)
        return json.dumps({"agent": helper.child.id, "state": "running"})

    def _made(self, wish: AgentWish) -> OneOffSubagent:
        child = self._household().one_off(wish)
        try:
            child.check_budget()
        except ConfigError:
            child.close()
            child.give_back()
            raise
        return child

    def _wish(self, order: _Order, parent: Subagent) -> AgentWish:
        if order.definition is None:
            return AgentWish(
                name=order.name,
                model=parent.model,
                grant=Grant(tools=order.tools),
                budget=order.budget,
                parent=parent,
            )
        found = self._defined(order.definition)
        return AgentWish(
            name=order.name,
            model=model_of(found.model) if found.model else parent.model,
            role=found.role or found.name,
            grant=Grant(tools=found.tools, delegate=found.delegate, resources=found.resources),
            # whoever wrote the definition has said what it may spend: a model asks for no more
            budget=(order.budget or Budget()).at_most(found.budget),
            parent=parent,
            preamble=found.prompt,
        )

    def _defined(self, name: str) -> AgentDefinition:
        definitions = self._definitions()
        try:
            return definitions.agent(name)
        except ConfigError as error:
            near = error.why or did_you_mean(name, definitions.agents)
            raise _refused(f"{error.message}. {near}".strip()) from error

    def _over(self, child: OneOffSubagent) -> None:
        self._at_work.discard(child.cell)
        child.close()
        child.give_back()

    def _former(self, view: AgentView, name: str) -> Helper:
        helper = self._found(view, name)
        if helper.result is None:
            raise _refused(f"{name!r} is at work: write to it, or close it")
        return helper

    def _found(self, view: AgentView, name: str) -> Helper:
        helper = self._helpers.of(view, name)
        if helper is None:
            near = did_you_mean(name, self._helpers.names(view))
            raise _bad(f"you have no agent {name!r} in the background. {near}".strip())
        return helper

    async def _result(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        helper = self._found(view, _text(arguments, "name"))
        seconds = arguments.get("wait_seconds", 0)
        if not isinstance(seconds, int | float) or not 0 <= seconds <= RESULT_SECONDS_MAX:
            raise _bad(f"wait_seconds is a number from 0 to {RESULT_SECONDS_MAX}")
        with anyio.move_on_after(seconds):
            await helper.news()
        child = helper.child
        if helper.question is not None:
            view.standing.add(child.standing.labels)
            return _said(agent=child.id, state="asking", question=helper.question)
        if helper.result is None:
            return json.dumps({"agent": child.id, "state": "running", "unread": len(helper.mail)})
        view.standing.add(child.standing.labels)
        return _told(helper.result, state="over")

    async def _message(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        helper, text = self._found(view, _text(arguments, "name")), _text(arguments, "text")
        await anyio.lowlevel.checkpoint()
        if helper.result is not None:
            return "It is over and reads nothing. To go on, spawn it again with resume."
        try:
            answered = helper.tell(text, view.agent)
        except ConfigError as error:
            raise _bad(error.message) from error
        helper.child.standing.add(view.standing.labels)
        return "It has your answer." if answered else "It reads this before its next turn."

    async def _close(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        helper = self._found(view, _text(arguments, "name"))
        helper.child.cancel()
        self._helpers.forget(helper)
        await anyio.lowlevel.checkpoint()
        return "It has ended, and all that it had started."


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


def _ask_parent_tool(desk: AskDesk, helpers: Helpers, *, seconds: float) -> BuiltinTool:
    """Return the tool that puts a question to whoever gave an agent its task, for so many seconds.

    That is the agent that made it, if it works in the background of one; else whoever attends it.
    """

    async def run(view: AgentView, arguments: Mapping[str, object]) -> str:
        question = arguments.get("question")
        if not isinstance(question, str) or not question or len(question) > QUESTION_CHARS_MAX:
            raise _bad(f"a question is a text of at most {QUESTION_CHARS_MAX} characters")
        answer: str | None = None
        helper = helpers.itself(view)
        if helper is not None and helper.asking:
            raise _bad("one question at a time: the one before has no answer yet")
        with anyio.move_on_after(seconds):
            if helper is not None:
                answer = await helper.ask(question)
            else:
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


def _order(arguments: Mapping[str, object]) -> _Order:
    known = cast("Mapping[str, object]", _SPAWN_SCHEMA["properties"])
    for name in arguments.keys() - known.keys():  # it may have been meant to narrow the child
        raise _bad(f"there is no argument {name!r}. {did_you_mean(name, known)}")
    definition = arguments.get("definition")
    background, resume = arguments.get("background", False), arguments.get("resume", False)
    if definition is not None and not isinstance(definition, str):
        raise _bad("definition is a text")
    if not isinstance(background, bool) or not isinstance(resume, bool):
        raise _bad("background and resume are true or false")
    tools = _texts(arguments.get("tools"))
    if tools is not None and (definition is not None or resume):
        raise _bad("a definition, and an agent that goes on, have their tools already")
    if definition is not None and resume:
        raise _bad("an agent that goes on stays what it was")
    try:
        budget = _budget(arguments.get("budget"))
    except ConfigError as error:
        raise _refused(error.message) from error
    return _Order(
        name=_text(arguments, "name"),
        prompt=_text(arguments, "prompt"),
        tools=tools,
        definition=definition,
        budget=budget,
        background=background,
        resume=resume,
    )


def _again(former: Helper, order: _Order, parent: Subagent) -> AgentWish:
    """Return the wish for one that goes on from another: as narrow, and with all that clings to it."""
    wish, given = former.wish, order.budget or Budget()
    return replace(
        wish,
        parent=parent,
        budget=given.at_most(wish.budget or Budget()),
        labels=wish.labels | former.child.standing.labels,
    )


def _history(former: Helper | None) -> tuple[Earlier, ...]:
    if former is None or former.result is None:
        return ()
    done = Earlier(prompt=former.prompt, answer=former.result.answer)
    return (*former.history, done)[-_HISTORY_MAX:]


def _told(result: AgentResult, **more: object) -> str:
    """Return a child's end as a parent's model reads it: as untrusted as all that the child read."""
    error: dict[str, object] = {}
    if result.status is not RunStatus.OK and result.error is not None:
        error = {"error": {"code": result.error.code, "message": result.error.message}}
    return _said(
        agent=result.agent,
        **more,
        status=result.status.value,
        answer=result.answer,
        sources=list(result.sources),
        **error,
    )


def _said(**what: object) -> str:
    return json.dumps({**what, "trust": TRUST, "authority": AUTHORITY}, ensure_ascii=False)


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise _bad(f"{name} is a text, and needed")
    return value


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
