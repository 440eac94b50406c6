"""Kills a pipeline whose steps have a language model, in the middle of its turns, and takes it up again.

The model is a loopback server that outlives the kills. What it says depends on nothing but what it is
sent, so that a run that goes on ends as one that was left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from tests.durability.killing import Killed, Project, Told, killed, resumed, rows
from tests.servers.ledgered import worth_of
from tests.servers.openai_like import OpenAiLike, Reply, Seen, opening, piece, stream

__all__ = ["RESULT", "Talk", "talk", "talked_and_resumed"]

STEPS: Final = 2
TURNS: Final = 3
"""Turns of a step with calls, two each side by side; one more says what came of them."""
CALLS: Final = STEPS * TURNS * 2
JITTER: Final = 0.12
"""Longer than a turn of the model takes: a kill comes while it speaks, and in and after its calls."""
RESULT: Final = {
    f"s{step}": f"{step}: {sum(worth_of(step, turn) for turn in range(TURNS * 2))}"
    for step in range(STEPS)
}
"""What comes of a run that was left alone."""
_RESULT: Final = re.compile(r"^(\d+)$", re.MULTILINE)
"""What a call was answered, between the lines that mark it as untrusted."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A project whose steps have a language model, with the server that is the model."""

    project: Project
    model: OpenAiLike


@contextmanager
def talk(folder: Path) -> Generator[Talk]:
    """Have such a project, and its model as long as the block goes."""
    with OpenAiLike(by=_say) as model:
        variables = {
            "NO_PROXY": "127.0.0.1",
            "OPENAI_API_KEY": "sk-loopback-secret",
            "OPENAI_BASE_URL": model.url,
        }
        project = Project(folder, CALLS, variables)
        project.write("".join(_agent(number) for number in range(STEPS)))
        yield Talk(project, model)


def talked_and_resumed(talk: Talk, approvals: list[str], random: Random) -> tuple[Told, int]:
    """Kill a run and take it up, and return what was told, and how many turns had been kept.

    Raises AssertionError as `killed_and_resumed` does, and if a turn that was kept is asked for again.
    """
    run = killed(talk.project, approvals, random, JITTER)
    kept = _kept(run)
    before = len(talk.model.seen)
    told = resumed(talk.project, approvals, run)
    asked = [_turn(seen) for seen in talk.model.seen[before:]]
    again = [(step, turn) for step, turn in asked if turn < kept.get(step, 0)]
    assert not again, f"asked for again: {again}"
    assert len(asked) == len(set(asked)), f"asked for twice: {asked}"
    return told, sum(kept.values())


def _agent(number: int) -> str:
    needs = [f"s{other}" for other in range(number)]
    return (
        f'[agents.s{number}]\nmodel = "openai:loopback-1"\nprompt = "book step {number}"\n'
        f'needs = {json.dumps(needs)}\ngrant = {{ tools = ["books/book"] }}\n'
    )


def _kept(run: Killed) -> dict[int, int]:
    """Return how many turns of each step are on record."""
    if run.folder is None:
        return {}
    query = "SELECT step, count(*) FROM turns GROUP BY step"
    return {
        int(step.removeprefix("s")): int(count)
        for step, count in rows(run.folder / "checkpoint.sqlite", query)
    }


def _turn(seen: Seen) -> tuple[int, int]:
    """Return whose turn is asked for, and which it is."""
    step = re.search(r"book step (\d+)", json.dumps(seen.messages))
    assert step is not None
    return int(step[1]), sum(message["role"] == "assistant" for message in seen.messages)


def _say(seen: Seen) -> Reply:
    step, turn = _turn(seen)
    if turn == TURNS:
        results = [str(each["content"]) for each in seen.messages if each["role"] == "tool"]
        return stream({"content": f"{step}: {sum(map(_worth, results))}"})
    deltas: list[dict[str, object]] = []
    for index in range(2):
        number = 2 * turn + index
        deltas.append(opening(index, "mcp_books_book", id=f"call_{number}"))
        deltas.append(piece(index, json.dumps({"step": step, "turn": number})))
    return stream(*deltas, finish="tool_calls")


def _worth(text: str) -> int:
    found = _RESULT.search(text)
    assert found is not None, text
    return int(found[1])
