"""One session of an editor: its servers, its agent, its turns, one after the other.

Cancelling ends a turn and never the session. A prompt that comes while another is at work stands for
a cancel: people press stop and go on writing before the editor has told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from mcp_client.auth.settings import AuthorizationStep
from orchestrator.agents.events import AgentEnded, AgentEvent, AgentStarted, VisitEnded
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.groups import ungrouped
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.approvals import Item
from orchestrator.sessions.consent import Confirm
from orchestrator.sessions.elicitations import ElicitationMode
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.family import PARENT
from orchestrator.sessions.isolating import owned_by_agents
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.standing import Notice, Standing
from orchestrator.surfaces.acp.asking import Asking
from orchestrator.surfaces.acp.editor import Editor
from orchestrator.surfaces.acp.ending import StopReason, answer_text, as_text, stop_reason
from orchestrator.surfaces.acp.errors import INTERNAL, RequestError, request_error
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.modes import Mode
from orchestrator.surfaces.acp.params import PromptRequest
from orchestrator.surfaces.acp.prompting import Turn
from orchestrator.surfaces.acp.turn import TurnView
from orchestrator.surfaces.acp.updates import COMMANDS, Update, chunks
from orchestrator.surfaces.acp.visiting import ComesBack, EditorStep

__all__ = ["EditorSession"]


class EditorSession:
    """A session. `touch` keeps what it is called, and tells the editor."""

    def __init__(
        self,
        name: str,
        editor: Editor,
        limits: AcpLimits,
        *,
        cwd: Path,
        touch: Callable[[str], None],
        loopback: Callable[[ServerEntry], ComesBack],
    ) -> None:
        self.name = name
        self._cwd = cwd
        self.mode = Mode.ASK
        self._editor = editor
        self._limits = limits
        self._touch = touch
        self._loopback = loopback
        self._asking = Asking(
            name,
            editor,
            limits,
            attended=lambda: self.mode is Mode.ASK and self._turn is not None,
            tool_call=self._tool_call,
        )
        self._standing: Standing | None = None
        self._notices: Sequence[Notice] = ()
        self._assistant: PersistentSubagent | None = None
        self._queue: list[Turn] = []
        self._turn: Turn | None = None
        self._turns = 0
        self._closing = False
        self._woken = anyio.Event()
        self._over = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    async def run(
        self,
        opening: AbstractAsyncContextManager[Standing],
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """Own the session from its start to its end. Raises only what keeps it from standing."""
        stands = False
        try:
            with ungrouped():
                async with opening as standing, anyio.create_task_group() as group:
                    if standing.model is None:
                        raise _nobody(standing.notices)
                    self._standing, self._notices = standing, standing.notices
                    group.start_soon(self._attend, standing, group)
                    stands = True
                    task_status.started()
                    await self._work(standing)
                    group.cancel_scope.cancel()
        except Exception:
            if not stands:
                raise
            # whatever it is, the other sessions go on; this one answers that it has ended
        finally:
            self._end()
            self._over.set()

    def enqueue(self, request: PromptRequest) -> Turn:
        """Put a prompt behind what is at work, which it stops. Raises RequestError if it is over."""
        if self._closing:
            raise RequestError(INTERNAL, "the session has ended: load it again")
        self.cancel()
        self._turns += 1
        turn = Turn(request, TurnView(f"{self._turns}", self._limits, self._cwd))
        self._queue.append(turn)
        self._wake()
        return turn

    def cancel(self) -> None:
        """Stop the turn at work and those that wait; the session goes on. Idempotent."""
        for turn in self._queue:
            turn.settle(StopReason.CANCELLED)
        self._queue.clear()
        if self._turn is not None:
            self._turn.cancel()

    def forget(self, turn: Turn) -> None:
        """Stop one turn: nobody waits for it any more."""
        if turn in self._queue:
            self._queue.remove(turn)
            turn.settle(StopReason.CANCELLED)
        turn.cancel()

    async def close(self) -> None:
        """End it in order, and return once nothing of it is left."""
        self._end()
        await self._over.wait()

    async def log_out(self) -> None:
        """Forget the login to each of its servers; what depended on it is dead when this returns."""
        if self._standing is None:
            return
        session = self._standing.session
        for name, connection in session.servers.items():
            if connection.login is not None:
                await session.log_out(name)

    def set_mode(self, mode: Mode) -> None:
        """Change how it treats what a rule asks a person about."""
        self.mode = mode

    def hear(self, event: AgentEvent) -> None:
        """Tell the editor of what an agent does. What comes after its turn is dropped."""
        match event:
            case AgentStarted(agent=agent) if agent == PARENT:
                self._idle = anyio.Event()
            case AgentEnded(agent=agent) if agent == PARENT:
                self._idle.set()
            case VisitEnded():
                self._asking.visited(event.visit)
            case _:
                pass
        if self._turn is not None:
            for update in self._turn.view.see(event):
                self.tell(update)

    def tell(self, update: Update) -> None:
        """Tell the editor what has changed."""
        self._editor.update(self.name, update)

    def replay(self) -> Iterator[Update]:
        """Yield what was said in it before, the oldest first."""
        if self._standing is None:
            return
        for record in self._standing.records.tasks(PARENT):
            prompt, answer = record.detail.get("prompt"), record.detail.get("answer")
            yield from chunks("user_message_chunk", str(prompt or ""), self._limits)
            if answer is not None:
                yield from chunks("agent_message_chunk", as_text(answer), self._limits)

    @property
    def notices(self) -> Sequence[Notice]:
        """What is left out of it, and why."""
        return self._notices

    # ------------------------------------------------------------------------------- turns

    async def _work(self, standing: Standing) -> None:
        while True:
            while not self._queue:
                if self._closing:
                    return
                await self._woken.wait()
            await self._do(self._queue.pop(0), standing)

    async def _do(self, turn: Turn, standing: Standing) -> None:
        """Carry a turn out, and settle it whatever happens."""
        self._turn = turn
        end: StopReason | RequestError = StopReason.CANCELLED
        try:
            end = await self._carry_out(turn, standing)
        except RequestError as error:
            end = error
        except RemitError as error:
            end = request_error(error)
        except Exception as error:  # noqa: BLE001 - one turn fails, the session goes on
            end = RequestError(INTERNAL, f"E-INTERNAL: {type(error).__name__}")
        finally:
            for update in turn.view.close():
                self.tell(update)
            self._turn = None
            turn.settle(end)

    async def _carry_out(self, turn: Turn, standing: Standing) -> StopReason:
        with turn.scope:
            if turn.cancelled:
                return StopReason.CANCELLED
            self._touch(turn.request.text)
            if await self._answer_command(turn, standing):
                return StopReason.END_TURN
            agent = await self._agent(turn, standing)
            with anyio.CancelScope(shield=True):  # what has been put in its queue is in our hands
                turn.begun(await agent.start(turn.request.text, inputs=turn.request.context))
        if turn.task is None:
            return StopReason.CANCELLED
        result = await turn.task.wait()
        # what is stopped may still be cleaning up: the next turn must not see its end
        with anyio.move_on_after(self._limits.settle_seconds_max):
            await self._idle.wait()
        reason = stop_reason(result)
        if reason is not StopReason.CANCELLED:
            text = answer_text(result, told=turn.view.streamed)
            for update in chunks("agent_message_chunk", text, self._limits):
                self.tell(update)
        return reason

    async def _agent(self, turn: Turn, standing: Standing) -> PersistentSubagent:
        """Return the parent's own agent; before it is made, a person is shown what it may be given."""
        if self._assistant is not None:
            return self._assistant
        if standing.model is None:
            raise _nobody(standing.notices)
        if self.mode is Mode.ASK:
            shown = await standing.show(self._confirm(turn))
            servers = standing.session.servers
            # of a server that stands only its tools can be pending, and they were shown just now
            kept = [
                item
                for item in self._notices
                if item.state != "pending" or item.name not in servers
            ]
            self._notices = (*kept, *shown)
        for notice in self._notices:
            for update in chunks("agent_message_chunk", _told(notice), self._limits):
                self.tell(update)
        self._assistant = standing.session.assistant(
            model=standing.model, budget=standing.settings.budget
        )
        return self._assistant

    def _confirm(self, turn: Turn) -> Confirm:
        """Return what shows the person of a turn what servers say of their tools."""

        async def confirm(items: Sequence[Item]) -> bool:
            return await self._asking.confirm_tools(items, turn.view.new_id())

        return confirm

    async def _answer_command(self, turn: Turn, standing: Standing) -> bool:
        """Answer a command of ours; False if it is none."""
        word, _, rest = turn.request.text.strip().partition(" ")
        name = word.removeprefix("/")
        if not word.startswith("/") or name not in COMMANDS or (rest and name != "login"):
            return False
        session = standing.session
        match name:
            case "servers":
                lines = [f"{label}: {item.state.value}" for label, item in session.servers.items()]
                lines += [
                    f"{each.name} of {each.agent}: {each.state.value}"
                    for each in owned_by_agents(session.servers.values())
                ]
                lines += [_told(notice).strip() for notice in self._notices]
            case "login":
                lines = await self._log_in(rest.strip(), turn, standing)
            case "agents":
                lines = [f"{path}" for path in session.agents]
            case _:
                lines = [str(standing.audit)]
        for update in chunks("agent_message_chunk", "\n".join(lines) or "none", self._limits):
            self.tell(update)
        return True

    async def _log_in(self, name: str, turn: Turn, standing: Standing) -> list[str]:
        """Have the person log in to a server, and return what to say of it."""
        try:
            connection = await standing.session.log_in(name)
        except RemitError as error:
            return [f"{error.code}: {safe_line(error.message, reveal=True)}", f"fix: {error.fix}"]
        left = [item for item in self._notices if item.name != name]
        self._notices = (*left, *await standing.show(self._confirm(turn), again=name))
        lines = [f"{safe_line(name, reveal=True)} is {connection.state.value}"]
        if self._assistant is not None:
            lines.append("load the session again to have its tools shown and used")
        return lines

    def login_step(self, entry: ServerEntry) -> AuthorizationStep | None:
        """Return who has the person log in to a server: the editor, in a turn that is attended."""
        turn = self._turn
        if turn is None or self.mode is not Mode.ASK:
            return None
        if ElicitationMode.URL not in self._editor.offer.modes:
            return None
        return EditorStep(
            editor=self._editor,
            session=self.name,
            visit_id=f"{self.name}.{turn.view.new_id()}",
            server=entry.name,
            turn=turn,
            loopback=self._loopback(entry),
        )

    # ------------------------------------------------------------------------------ people

    async def _attend(self, standing: Standing, group: TaskGroup) -> None:
        async for ask in standing.session.asks():
            await self._asking.answer(ask, group)

    def _tool_call(self, request: ApprovalRequest) -> str:
        if self._turn is None:
            return f"0.{request.call}"
        ref = request.ref
        return self._turn.view.asked_about(request.agent, ref.server, ref.name)

    # --------------------------------------------------------------------------------- end

    def _wake(self) -> None:
        self._woken.set()
        self._woken = anyio.Event()

    def _end(self) -> None:
        self._closing = True
        self.cancel()
        self._wake()


def _told(notice: Notice) -> str:
    text = f"{safe_line(notice.name, reveal=True)} is {notice.state}"
    if notice.message:
        text += f": {safe_line(notice.message, reveal=True)}"
    if notice.fix:
        text += f"\n  fix: {notice.fix}"
    return text + "\n"


def _nobody(notices: Sequence[Notice]) -> ConfigError:
    pending = "; ".join(f"{item.name} is {item.state}" for item in notices)
    return ConfigError(
        "nobody is there to answer: no model is set",
        code="E-ACP-MODEL",
        why=f"left out: {safe_line(pending, reveal=True)}" if pending else "",
        fix='start `remit acp --model openai:gpt-5-mini`, or write model = "…" into config.toml',
    )
