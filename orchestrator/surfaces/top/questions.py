"""What `remit top` asks once more before it acts: what would happen, whole, over the panes. Does none of it."""

from __future__ import annotations

from typing import ClassVar, Final, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from orchestrator.core.display import wrapped

__all__ = ["Keep", "OfAnAsk", "Sure", "WholeAsk"]

_Answer = TypeVar("_Answer")
_COLUMNS_MIN: Final = 20


class Sure(ModalScreen[bool]):
    """Asks once more before an agent is stopped, and shows who falls with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "yes"),
        Binding("n,escape", "dismiss(False)", "no"),
    ]
    DEFAULT_CSS = "Sure{align:center middle} Sure>Static{width:auto;max-width:70;padding:1 2;border:solid $warning}"

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """Show the words."""
        yield Static(Text(f"{self._words}\n\ny: yes   n: no"))


class OfAnAsk(ModalScreen[_Answer]):
    """Stands over the panes for one ask, and is taken down once that is over. `ask` is its number.

    `whole` is safe to show; its lines are folded so that no piece of one passes for another.
    """

    DEFAULT_CSS = """
    OfAnAsk{align:center middle}
    OfAnAsk>Vertical{width:92%;max-width:110;height:auto;max-height:96%;padding:0 1;border:solid $warning;background:$surface}
    OfAnAsk #whole{height:auto;max-height:60vh;background:$panel}
    OfAnAsk #whole>Static{padding:0 1}
    """

    def __init__(self, ask: int, head: str, whole: str) -> None:
        super().__init__()
        self.ask = ask
        self._head = head
        self._whole = whole
        self._lines = 0

    def compose(self) -> ComposeResult:
        """Show the words, what there is to be looked through, and the keys that answer."""
        with Vertical():
            yield Static(Text(self._head), id="why")
            with VerticalScroll(id="whole", can_focus=True):
                yield Static(id="folded")
            yield Static(id="answers")

    def on_mount(self) -> None:
        """Say which keys answer, once it is known whether all is seen."""
        for what in ("scroll_y", "virtual_size"):
            self.watch(self.scrolled, what, self.say, init=False)
        self.call_after_refresh(self._fold)

    def on_resize(self) -> None:
        """Fold anew: more or less is seen."""
        self.call_after_refresh(self._fold)

    def _fold(self) -> None:
        columns = max(_COLUMNS_MIN, self.scrolled.content_size.width - 4)  # and a scrollbar
        pieces = [
            piece
            for line in self._whole.split("\n")
            for piece in wrapped(line, columns=columns, indent=" " * 10)
        ]
        self._lines = len(pieces)
        self.query_one("#folded", Static).update(Text("\n".join(pieces)))
        self.call_after_refresh(self.say)

    @property
    def scrolled(self) -> VerticalScroll:
        """What holds the text."""
        return self.query_one("#whole", VerticalScroll)

    @property
    def at_its_end(self) -> bool:
        """True if the end of the text is on the screen."""
        # by the lines themselves: before they are laid out there is nothing to scroll either
        seen = self.scrolled.scroll_y + self.scrolled.content_size.height
        return 0 < self._lines <= seen

    def say(self) -> None:
        """Show the keys."""
        more = "" if self.at_its_end else "there is more: page down   "
        self.query_one("#answers", Static).update(Text(f"{more}{self.keys()}", style="bold"))

    def keys(self) -> str:
        """Return the keys that answer, in words."""
        raise NotImplementedError


class WholeAsk(OfAnAsk[str]):
    """Shows all of an ask, and takes the answer to it: how it is allowed, or that it is not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "dismiss('once')", "allow"),
        Binding("A", "dismiss('session')", "session"),
        Binding("P", "dismiss('always')", "always"),
        Binding("d", "dismiss('deny')", "deny"),
        Binding("escape,q,question_mark", "dismiss('')", "back"),
    ]

    def keys(self) -> str:
        """Return the keys that answer."""
        return "a: allow   A: for the session   P: always   d: deny   Esc: back"


class Keep(OfAnAsk[bool]):
    """Shows a permit that would be kept, and where, and wants a yes to exactly that text.

    A yes counts only while the end of the permit is on the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "keep", "keep it"),
        Binding("n,escape,q", "dismiss(False)", "no"),
    ]

    def keys(self) -> str:
        """Return the keys that answer now."""
        return f"{'y: keep it, and allow this call   ' if self.at_its_end else ''}n: no"

    def action_keep(self) -> None:
        """Take the yes, if all that it is for has been seen."""
        if self.at_its_end:
            self.dismiss(result=True)
        else:
            self.notify("look at all of it first: page down")
