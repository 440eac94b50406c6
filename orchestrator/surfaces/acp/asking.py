"""What agents ask a person, asked in the editor: calls, questions, and what servers say of their tools.

No answer is a no: an editor that fails, cancels or answers something else has not allowed anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never, cast

import anyio
from anyio.abc import TaskGroup

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.peer.forms import FormValue
from orchestrator.core.display import safe_line, whole_text
from orchestrator.core.errors import ConfigError
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.approvals import Item
from orchestrator.sessions.asks import Ask, AskKind
from orchestrator.sessions.elicitations import ElicitationMode
from orchestrator.sessions.family import PARENT
from orchestrator.surfaces.acp.editor import Editor
from orchestrator.surfaces.acp.errors import RequestError
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.shown import fenced
from orchestrator.surfaces.acp.turn import SUBAGENT_META
from orchestrator.surfaces.acp.updates import content

__all__ = ["Asking"]

_ONCE: Final = "allow_once"
_ALWAYS: Final = "allow_always"
_KEPT: Final = "allow_kept"
_NO: Final = "reject_once"
_NEVER: Final = "reject_always"
_CALL_OPTIONS: Final = (
    {"optionId": _ONCE, "name": "Allow this call", "kind": _ONCE},
    {"optionId": _ALWAYS, "name": "Allow this tool for this session", "kind": _ALWAYS},
    {"optionId": _NO, "name": "Reject this call", "kind": _NO},
    {"optionId": _NEVER, "name": "Reject this tool for this session", "kind": _NEVER},
)
_KEPT_OPTION: Final = {
    "optionId": _KEPT,
    "name": "Allow exactly this call always (shows the rule first)",
    "kind": _ALWAYS,
}
_KEEP_OPTIONS: Final = (
    {"optionId": _KEPT, "name": "Keep this permit, and allow the call", "kind": _ALWAYS},
    {"optionId": _NO, "name": "Keep nothing, and reject the call", "kind": _NO},
)
_TOOLS_OPTIONS: Final = (
    {"optionId": _ALWAYS, "name": "Allow these tools, until they change", "kind": _ALWAYS},
    {"optionId": _NO, "name": "Leave them out of this session", "kind": _NO},
)
_SAMPLING_OPTIONS: Final = (
    {"optionId": _ONCE, "name": "Send this, once", "kind": _ONCE},
    {"optionId": _NO, "name": "Send nothing", "kind": _NO},
)
_SHOWN: Final = frozenset({"title", "description"})
"""What of a form is for people to read."""
_Refusal = tuple[str, object, str]
"""Whose calls of what are refused, asked about by which rule."""


class Asking:
    """The questions of one session. `attended` says whether anybody is to be asked now.

    `tool_call` returns the id of the tool call that a question is about.
    """

    def __init__(
        self,
        session: str,
        editor: Editor,
        limits: AcpLimits,
        *,
        attended: Callable[[], bool],
        tool_call: Callable[[ApprovalRequest], str],
    ) -> None:
        self._session = session
        self._editor = editor
        self._limits = limits
        self._attended = attended
        self._tool_call = tool_call
        self._refused: set[_Refusal] = set()
        self._visits: dict[str, None] = {}

    async def answer(self, ask: Ask, group: TaskGroup) -> None:
        """Have an ask answered in a task of its own: many may be open at the same time."""
        if ask.kind is AskKind.ELICITATION and not self._attended():
            await _left(ask)
            return
        if not self._attended() or _key(ask) in self._refused:
            await _settle(ask, _NO)
            return
        group.start_soon(self._answer, ask)

    async def _answer(self, ask: Ask) -> None:
        """Ask, and settle it; where nobody waits any more, the question is taken back."""
        async with anyio.create_task_group() as group:

            async def until_over() -> None:
                await ask.wait()
                group.cancel_scope.cancel()

            group.start_soon(until_over)
            match ask.kind:
                case AskKind.APPROVAL:
                    await self._approval(ask)
                case AskKind.QUESTION:
                    await self._question(ask)
                case AskKind.ELICITATION:
                    await self._elicitation(ask)
                case AskKind.SAMPLING:
                    await self._sampling(ask)
                case AskKind.GATE:  # no pipeline runs in an editor
                    await ask.deny()
                case _:
                    assert_never(ask.kind)
            group.cancel_scope.cancel()

    async def _approval(self, ask: Ask) -> None:
        request = ask.request
        if request is None:
            await _settle(ask, _NO)
            return
        tool_call: dict[str, object] = {
            "toolCallId": self._tool_call(request),
            "title": _title(request),
            "kind": "other",
            "status": "pending",
            "rawInput": dict(request.arguments),
            "content": [
                {
                    "type": "content",
                    "content": content(
                        f"{safe_line(request.agent, reveal=True)} wants to call "
                        f"{safe_line(str(request.ref), reveal=True)}\n"
                        f"asked by rule {safe_line(request.rule, reveal=True)}"
                    ),
                }
            ],
        }
        if request.agent != PARENT:
            tool_call["_meta"] = {SUBAGENT_META: {"path": request.agent}}
        rule = ask.always_rule
        if len(rule.encode()) > self._limits.frame_bytes_max // 4:
            rule = ""  # what cannot be shown whole is not kept
        options = (*_CALL_OPTIONS, _KEPT_OPTION) if rule else _CALL_OPTIONS
        chosen = await self._permission(tool_call, options)
        if chosen == _KEPT:
            await self._keep(ask, rule, tool_call)
            return
        if chosen == _NEVER and len(self._refused) < self._limits.refusals_max:
            self._refused.add(_key(ask))
        await _settle(ask, chosen)

    async def _keep(self, ask: Ask, rule: str, tool_call: Mapping[str, object]) -> None:
        """Show the permit that would be kept, and keep it on a yes of its own."""
        shown = (
            "this would be kept in your own policies/always.policy, for this project; "
            f"remit policy always revoke takes it back:\n{fenced(whole_text(rule))}"
        )
        asked = {**tool_call, "content": [{"type": "content", "content": content(shown)}]}
        chosen = await self._permission(asked, _KEEP_OPTIONS)
        if not ask.open:
            return
        try:
            await (ask.allow_always(rule) if chosen == _KEPT else ask.deny())
        except ConfigError:  # it was to be kept and cannot be
            await _settle(ask, _NO)

    async def _question(self, ask: Ask) -> None:
        text: object = None
        if ElicitationMode.FORM in self._editor.offer.modes:
            asked = f"{safe_line(ask.agent, reveal=True)} asks: {whole_text(ask.question)}"
            fields = {"answer": {"type": "string", "title": "Answer"}}
            schema = {"type": "object", "properties": fields, "required": ["answer"]}
            action, filled = await self._elicited(
                {"mode": "form", "message": asked, "requestedSchema": schema}
            )
            text = filled.get("answer") if action == "accept" else None
        if not ask.open:
            return
        if isinstance(text, str):
            await ask.answer(text)
        else:
            await ask.deny()

    async def _elicitation(self, ask: Ask) -> None:
        """Hand a server's question on, with whose it is before its words."""
        wanted = ask.elicitation
        if wanted is None or wanted.mode not in self._editor.offer.modes:
            await _left(ask)
            return
        whose = f" for agent {safe_line(ask.agent, reveal=True)}" if ask.agent else ""
        message = f"server {wanted.server}{whose}: {whole_text(wanted.message)}"
        if wanted.mode is ElicitationMode.FORM:
            schema = _made_safe(wanted.schema)
            params: dict[str, object] = {"mode": "form", "requestedSchema": schema}
        else:
            host = safe_line(wanted.host, reveal=True)
            looks = ", which is not what it looks like" if wanted.is_punycode else ""
            message += f"\nopens {host}{looks}"
            visit = self._visit_id(wanted.visit)
            params = {"mode": "url", "url": wanted.url, "elicitationId": visit}
            self._expect(wanted.visit)
        action, filled = await self._elicited({**params, "message": message})
        if action != "accept":
            self._visits.pop(wanted.visit, None)
        if not ask.open:
            return
        try:
            if action == "accept":
                await ask.accept(cast("Mapping[str, FormValue]", filled))
            elif action == "decline":
                await ask.decline()
            else:
                await ask.cancel()
        except ConfigError:  # what does not fit the form is no answer
            await _left(ask)

    def visited(self, visit: str) -> None:
        """Tell the editor that a visit is over that it was asked for: once."""
        if visit in self._visits:
            del self._visits[visit]
            told = {"elicitationId": self._visit_id(visit)}
            self._editor.notify("elicitation/complete", told)

    def _expect(self, visit: str) -> None:
        # a server may say that it is over before the editor has answered
        self._visits[visit] = None
        while len(self._visits) > self._limits.visits_max:
            del self._visits[next(iter(self._visits))]

    def _visit_id(self, visit: str) -> str:
        return f"{self._session}.{visit}"

    async def _sampling(self, ask: Ask) -> None:
        """Show all that would be sent to the model, and what for."""
        wanted = ask.sampling
        shown = "" if wanted is None else whole_text(wanted.prompt)
        if wanted is None or len(shown.encode()) > self._limits.frame_bytes_max // 4:
            await _settle(ask, _NO)  # what cannot be shown whole is not approved
            return
        chosen = await self._permission(
            {
                "toolCallId": f"{self._session}.{wanted.server}.sampling",
                "title": f"server {wanted.server} wants a turn of your model",
                "kind": "other",
                "status": "pending",
                "content": [{"type": "content", "content": content(fenced(shown))}],
            },
            _SAMPLING_OPTIONS,
        )
        await _settle(ask, chosen)

    async def _elicited(self, params: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        """Return what a person decided, and what they filled in; `cancel` where nobody did."""
        try:
            answer = await self._editor.ask(
                "elicitation/create", {"sessionId": self._session, **params}
            )
        except RequestError:
            return "cancel", {}
        return str(answer.get("action")), as_object(answer.get("content")) or {}

    async def confirm_tools(self, items: Sequence[Item], tool_call: str) -> bool:
        """Show what servers say of their tools, all of it; True only if that is allowed."""
        for item in items:
            shown = "\n".join(item.shown())
            if len(shown.encode()) > self._limits.frame_bytes_max // 4:
                return False  # what cannot be shown whole is not approved
            chosen = await self._permission(
                {
                    "toolCallId": tool_call,
                    "title": f"Let agents use {safe_line(item.name, reveal=True)}?",
                    "kind": "other",
                    "status": "pending",
                    "content": [{"type": "content", "content": content(fenced(shown))}],
                },
                _TOOLS_OPTIONS,
            )
            if chosen != _ALWAYS:
                return False
        return True

    async def _permission(
        self, tool_call: Mapping[str, object], options: Sequence[Mapping[str, str]]
    ) -> str:
        """Return the option that a person chose; that of a no for everything else."""
        try:
            answer = await self._editor.ask(
                "session/request_permission",
                {
                    "sessionId": self._session,
                    "toolCall": dict(tool_call),
                    "options": [dict(option) for option in options],
                },
            )
        except RequestError:
            return _NO
        outcome = as_object(answer.get("outcome")) or {}
        chosen = outcome.get("optionId")
        known = [option["optionId"] for option in options]
        if outcome.get("outcome") != "selected" or chosen not in known:
            return _NO
        return str(chosen)


def _key(ask: Ask) -> _Refusal:
    request = ask.request
    if request is None:
        return ask.agent, None, ""
    return request.agent, request.ref, request.rule


def _title(request: ApprovalRequest) -> str:
    name = f"{request.ref.server}/{request.ref.name}"
    who = "" if request.agent == PARENT else f"{request.agent}: "
    return safe_line(who + name, reveal=True)


def _made_safe(value: object) -> object:
    """Return a schema whose texts command no terminal; its keys and values stay as they are."""
    if not isinstance(value, Mapping):
        return value
    schema = cast("Mapping[str, object]", value)
    return {
        key: safe_line(item, reveal=True)
        if key in _SHOWN and isinstance(item, str)
        else _made_safe(item)
        for key, item in schema.items()
    }


async def _left(ask: Ask) -> None:
    """Tell that nobody has decided, if anybody still waits for it."""
    if ask.open:
        await ask.cancel()


async def _settle(ask: Ask, chosen: str) -> None:
    """Settle an ask, if anybody still waits for it."""
    if not ask.open:
        return
    try:
        if chosen == _ONCE:
            await ask.allow_once()
        elif chosen == _ALWAYS:
            await ask.allow_for_session()
        else:
            await ask.deny()
    except ConfigError:
        return  # it ended in the meantime
