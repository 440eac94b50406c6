"""Questions that stand before a step: what a person is asked, and what counts as a yes. Prints nothing."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.core.display import whole_line, wrapped
from orchestrator.core.documents import canonical_digest
from orchestrator.core.errors import ExitCode, RemitError
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.spec import AgentSpec

__all__ = ["GATE_FLAG", "AskGate", "GateError", "GateQuestion", "gate_of"]

GATE_FLAG: Final = "--pass"
"""The option that answers a gate where nobody can be asked."""

_COLUMNS: Final = 78


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuestion:
    """One gate, with all that the step would be handed. `digest` covers question and answers."""

    step: str
    question: str
    answers: Mapping[str, object]

    @property
    def digest(self) -> str:
        """SHA-256 over the step, the question and the answers: a yes is for exactly these."""
        return canonical_digest([self.step, self.question, dict(self.answers)])

    def lines(self) -> tuple[str, ...]:
        """Return the lines for a person: the question, then every answer whole, escaped, marked."""
        lines = [f"before {whole_line(self.step)} begins: {whole_line(self.question)}"]
        for name, answer in self.answers.items():
            text = json.dumps(answer, indent=1, ensure_ascii=False)
            lines.append(f"  {whole_line(name)} answered (untrusted):")
            lines += [f"  | {whole_line(line)}" for line in text.split("\n")]
        return tuple(
            piece for line in lines for piece in wrapped(line, columns=_COLUMNS, indent="  |   ")
        )


AskGate = Callable[[GateQuestion], Awaitable[bool | None]]
"""Shows a gate to a person, and returns True only for a yes; None where nobody has said anything."""


class GateError(RemitError):
    """A step that was not begun: nobody said yes at its gate. `status` is how the step ends."""

    def __init__(self, question: GateQuestion, *, asked: bool) -> None:
        self.status = RunStatus.DENIED if asked else RunStatus.INPUT_REQUIRED
        super().__init__(
            f"{question.step} was not begun: "
            + ("a person said no at its gate" if asked else "a person has to say yes first"),
            code="E-PIPELINE-GATE",
            why=question.question,
            fix="resume the run on a terminal, or with "
            f"{GATE_FLAG} {question.step}@{question.digest}",
            exit_code=ExitCode.DENIED if asked else ExitCode.INPUT_REQUIRED,
        )


def gate_of(agent: AgentSpec, answers: Mapping[str, object]) -> GateQuestion | None:
    """Return the gate before a step; None where the file names none."""
    if not agent.gate:
        return None
    return GateQuestion(step=agent.name, question=agent.gate, answers=answers)
