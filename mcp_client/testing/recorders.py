"""A guard and an observer that a test looks at; they decide nothing by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EventRecorder", "RecordingGuard"]


class RecordingGuard:
    """Leave to send that a test gives, takes back and looks at.

    Attributes:
        error: raised by `check` while it is set.
        checks: how often it was asked.
        spent: how often a first byte left under it.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.checks = 0
        self.spent = 0

    def check(self) -> None:
        """Raise `error`, if there is one."""
        self.checks += 1
        if self.error is not None:
            raise self.error

    def sent(self) -> None:
        """Note that a first byte left."""
        self.spent += 1


@dataclass(slots=True)
class EventRecorder:
    """A `ClientObserver` that keeps what it is told: `("request_sent", 2)` and so on."""

    events: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    errors: list[Exception] = field(default_factory=list[Exception])
    flushes: int = 0
    questions: list[tuple[int | str, str, str]] = field(
        default_factory=list[tuple[int | str, str, str]]
    )
    outcomes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notices: list[str] = field(default_factory=list[str])

    def flushing(self) -> None:
        """Count a flush."""
        self.flushes += 1

    def request_sent(self, request_id: int, method: str) -> None:
        """Note it."""
        self.events.append(("request_sent", request_id))

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        """Note it."""
        self.events.append(("request_answered", request_id))
        self.outcomes.append((method, error_type))

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        """Note it, and the error."""
        self.events.append(("request_failed", request_id))
        self.errors.append(error)

    def answer_dropped(self, request_id: int) -> None:
        """Note it."""
        self.events.append(("answer_dropped", request_id))

    def notice_sent(self, method: str) -> None:
        """Note it."""
        self.notices.append(method)

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        """Note it, and what it says of its trace."""
        self.questions.append((question, method, traceparent))

    def question_ended(self, question: int | str, error_type: str) -> None:
        """Note it."""
        self.questions.append((question, "ended", error_type))
