"""The screen of `remit top`. Shows what it is told and hands on what a person presses; decides nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Protocol, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import DataTable, Footer, OptionList, RichLog, Static
from textual.widgets.option_list import Option

from orchestrator.core.display import whole_text
from orchestrator.core.errors import RemitError
from orchestrator.sessions.ports import SystemClock
from orchestrator.surfaces.top.lines import (
    HEADS,
    agent_cells,
    ask_line,
    event_line,
    inspected,
    keep_words,
    whole_ask,
)
from orchestrator.surfaces.top.questions import Keep, OfAnAsk, Sure, WholeAsk

__all__ = ["Session", "TopApp"]

EVENTS_KEPT_MAX: Final = 1_000
"""Events that the screen can go back to."""
_RENEW_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 0.5
"""How long nothing is taken for an answer to an ask that was just marked: hands are slow."""
_TAKEN_DOWN: Final = (NoMatches, IndexError)
"""What a late answer meets once the screen is being taken down."""
_CLOCK: Final = SystemClock()
_COLORS: Final = {"ok": "green", "running": "cyan", "working": "cyan", "asking": "yellow"}


class Session(Protocol):
    """A session as the screen needs it. Each raises RemitError."""

    @property
    def run(self) -> str:
        """Its run."""
        ...

    async def do(self, operation: str, **arguments: object) -> dict[str, object]:
        """Do one of its operations."""
        ...

    async def follow(self) -> AsyncIterator[Mapping[str, object]]:
        """Return its events, until it ends."""
        ...


class TopApp(App[None]):
    """Tree, events, inspector and inbox of one session; keys alone are enough."""

    TITLE = "remit top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head{height:1;background:$panel;padding:0 1}
    #agents{height:2fr;min-height:5}
    #middle{height:2fr;min-height:5}
    #events{width:3fr;border-top:solid $panel;overflow-x:hidden}
    #inspector{width:2fr;border-top:solid $panel;overflow-y:auto}
    #inbox{height:1fr;min-height:3;max-height:8;border-top:solid $warning}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "pane('agents')", "panes", key_display="1-3"),
        Binding("2", "pane('events')", "events", show=False),
        Binding("3", "pane('inbox')", "asks", show=False),
        Binding("a", "answer('once')", "allow"),
        Binding("A", "answer('session')", "session"),
        Binding("P", "answer('always')", "always"),
        Binding("d", "answer('deny')", "deny"),
        Binding("question_mark", "why", "all of it"),
        Binding("K", "kill", "stop"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, session: Session, *, now: Callable[[], float] = _CLOCK.now) -> None:
        super().__init__()
        self._session = session
        self._now = now
        self._mark: int | None = None
        self._marked_at = 0.0
        self._kept: deque[Mapping[str, Any]] = deque(maxlen=EVENTS_KEPT_MAX)
        self._since = 0.0
        self._rows: list[Mapping[str, Any]] = []
        self._asks: list[Mapping[str, Any]] = []
        self._chosen = ""
        self._over = False

    def compose(self) -> ComposeResult:
        """Lay the panes out."""
        yield Static(id="head")
        table: DataTable[Text] = DataTable(id="agents", cursor_type="row", zebra_stripes=True)
        yield table
        with Horizontal(id="middle"):
            yield RichLog(id="events", wrap=False, max_lines=EVENTS_KEPT_MAX)
            with Vertical(id="inspector"):
                yield Static(id="inspected")
        yield OptionList(id="inbox")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow."""
        self._table.add_columns(*HEADS)
        self._table.focus()
        self.run_worker(self._follow(), exclusive=False)
        self.set_interval(_RENEW_SECONDS, self.renew)
        self.call_after_refresh(self.renew)

    @property
    def _base(self) -> Screen[object]:
        """The screen with the panes, also while a question stands over it."""
        return cast("Screen[object]", self.screen_stack[0])

    @property
    def _table(self) -> DataTable[Text]:
        return cast("DataTable[Text]", self._base.query_one("#agents", DataTable))

    async def renew(self) -> None:
        """Ask the session how it stands, and show it."""
        if self._over:
            return
        with suppress(*_TAKEN_DOWN):
            await self._renew()

    async def _renew(self) -> None:
        try:
            agents = (await self._session.do("agents"))["agents"]
            asks = (await self._session.do("asks"))["asks"]
            self._rows = cast("list[Mapping[str, Any]]", agents)
            self._asks = cast("list[Mapping[str, Any]]", asks)
            self._show_agents()
            self._show_asks()
            await self._inspect()
        except RemitError as error:
            self._ended(error)

    async def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the agent that the cursor is on."""
        chosen = str(event.row_key.value or "")
        if chosen != self._chosen:
            self._chosen = chosen
            self._show_events()
            try:
                await self._inspect()
            except RemitError as error:
                self._ended(error)

    def action_pane(self, name: str) -> None:
        """Go to a pane."""
        self._base.query_one(f"#{name}").focus()

    async def action_answer(self, how: str) -> None:
        """Answer the ask that is marked, unless it was marked only now."""
        ask = self._marked()
        if ask is None:
            self.notify("nothing is asked")
        elif self._now() - self._marked_at < SETTLE_SECONDS:
            self.notify(f"ask {ask['ask']} has only just come up: look, and press again")
        else:
            await self._answer(int(ask["ask"]), how)

    async def _answer(self, number: int, how: str) -> None:
        if how == "always":
            await self._keep(number)
        elif how == "deny":
            await self._act("deny", ask=number)
        else:
            await self._act("allow", ask=number, span=how)

    async def _keep(self, number: int) -> None:
        """Show the permit that an ask would keep; on a yes send exactly what was shown."""
        told = await self._whole(number)
        if told is None:
            return
        permit = str(told.get("always") or "")
        if not permit:
            self.notify(
                "these arguments make no rule that can be shown whole: allow it once",
                severity="warning",
            )
            return

        async def sure(yes: bool | None) -> None:  # noqa: FBT001 - what a screen returns
            if yes:
                await self._act("allow", ask=number, span="always", rule=permit)
            elif yes is None:
                self._over_is(number)

        self.push_screen(Keep(number, keep_words(told), whole_text(permit).rstrip()), sure)

    async def action_why(self) -> None:
        """Show all of the ask that is marked; it can be answered there."""
        ask = self._marked()
        if ask is None:
            self.notify("nothing is asked")
            return
        number = int(ask["ask"])
        told = await self._whole(number)
        if told is None:
            return

        async def answered(how: str | None) -> None:
            if how:
                await self._answer(number, how)
            elif how is None:
                self._over_is(number)

        self.push_screen(WholeAsk(number, f"ask {number}", whole_ask(told)), answered)

    async def _whole(self, number: int) -> Mapping[str, Any] | None:
        try:
            return await self._session.do("ask", ask=number)
        except RemitError as error:
            self._refused(error)
            return None

    def action_kill(self) -> None:
        """Stop the agent that is marked, after one more question that shows who falls with it."""
        chosen = self._chosen
        if not chosen:
            return
        below = [str(row["agent"]) for row in self._rows if row.get("alive")]
        below = [name for name in below if name.startswith(f"{chosen}/")]
        words = f"stop {chosen}" + (f" and below it {', '.join(below)}" if below else "") + "?"

        async def sure(yes: bool | None) -> None:  # noqa: FBT001 - what a screen returns
            if yes:
                await self._act("kill", agent=chosen)

        self.push_screen(Sure(whole_text(words)), sure)

    async def _act(self, operation: str, **arguments: object) -> None:
        try:
            told = await self._session.do(operation, **arguments)
            self.notify(whole_text(f"{told['done']}: {told['agent']}"), markup=False)
        except RemitError as error:
            self._refused(error)
        await self.renew()

    async def _follow(self) -> None:
        with suppress(*_TAKEN_DOWN):
            await self._follow_all()

    async def _follow_all(self) -> None:
        try:
            async for event in await self._session.follow():
                if not self._kept:  # the first that is known of is where the count begins
                    self._since = cast("float", event.get("at", 0.0))
                self._kept.append(cast("Mapping[str, Any]", event))
                if self._chosen in {"", event.get("agent")}:
                    log = self._base.query_one("#events", RichLog)
                    log.write(Text(event_line(event, self._since)))
                if event.get("event") != "CallStarted":
                    await self.renew()
        except RemitError as error:
            self._ended(error)
            return
        self._ended(None)

    def _show_agents(self) -> None:
        table = self._table
        known = {str(row["agent"]) for row in self._rows}
        cells = [[_cell(text) for text in agent_cells(row, known)] for row in self._rows]
        names = [str(row["agent"]) for row in self._rows]
        shown = [str(key.value) for key in table.rows]
        if names == shown:
            for name, row in zip(names, cells, strict=True):
                for column, cell in zip(table.ordered_columns, row, strict=True):
                    table.update_cell(name, column.key, cell)
        else:
            table.clear()
            for name, row in zip(names, cells, strict=True):
                table.add_row(*row, key=name)
            if self._chosen in names:
                table.move_cursor(row=names.index(self._chosen))
        working = sum(bool(row.get("alive")) for row in self._rows)
        head = f"{self._session.run}  agents {len(names)}  live {working}  asked {len(self._asks)}"
        self._base.query_one("#head", Static).update(Text(head))

    def _show_asks(self) -> None:
        inbox = self._base.query_one("#inbox", OptionList)
        marked = inbox.highlighted_option
        inbox.clear_options()
        inbox.add_options(
            [Option(Text(ask_line(ask)), id=str(ask["ask"])) for ask in self._asks]
            or [Option(Text("nothing is asked"), disabled=True)]
        )
        open_now = {str(ask["ask"]) for ask in self._asks}
        if self._asks:
            # the mark stays with its ask: what stands in its place is another one
            known = marked is not None and marked.id in open_now
            inbox.highlighted = inbox.get_option_index(str(marked.id)) if known and marked else 0
        self._mark_is(inbox)
        over = self.screen_stack[-1]
        if isinstance(over, OfAnAsk) and str(over.ask) not in open_now:
            over.dismiss(None)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Take note of which ask is marked, and since when."""
        self._mark_is(event.option_list)

    def _mark_is(self, inbox: OptionList) -> None:
        marked = inbox.highlighted_option
        number = None if marked is None or marked.id is None else int(marked.id)
        if number != self._mark:
            self._mark, self._marked_at = number, self._now()

    def _show_events(self) -> None:
        log = self._base.query_one("#events", RichLog)
        log.clear()
        for event in self._kept:
            if event.get("agent") in {self._chosen, None}:
                log.write(Text(event_line(event, self._since)))

    async def _inspect(self) -> None:
        if self._chosen and not self._over:
            told = await self._session.do("agent", agent=self._chosen)
            self._base.query_one("#inspected", Static).update(Text(inspected(told)))

    def _marked(self) -> Mapping[str, Any] | None:
        return next((ask for ask in self._asks if ask["ask"] == self._mark), None)

    def _over_is(self, number: int) -> None:
        self.notify(f"ask {number} is over: answered elsewhere, or not needed any more")

    def _refused(self, error: RemitError) -> None:
        words = "\n".join(filter(None, (error.message, error.why)))
        self.notify(whole_text(words), severity="warning", markup=False)

    def _ended(self, error: RemitError | None) -> None:
        if error is not None and error.code not in {"E-CONTROL-GONE", "E-AGENT-UNKNOWN"}:
            self._refused(error)
            return
        if error is None or error.code == "E-CONTROL-GONE":
            self._over = True
            head = (
                f"{self._session.run}  THE SESSION HAS ENDED; what is shown is how it was. q: quit"
            )
            self._base.query_one("#head", Static).update(Text(head, style="bold"))


def _cell(text: str) -> Text:
    return Text(text, style=_COLORS.get(text, ""), no_wrap=True, overflow="ellipsis")
