"""Recorded turns, played again."""

from __future__ import annotations

import json

import pytest

from orchestrator.agents.model import Turn, Usage
from orchestrator.agents.replay import RECORDED_TURNS_MAX, RecordingModel, ReplayModel
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.stage import READ_A, WRITE, ScriptedModel, Stage

TURNS = [
    Turn(calls=(READ_A, WRITE), answer="let me", usage=Usage(input_tokens=3, output_tokens=4)),
    Turn(answer="done", done=True, open=True),
]


async def recorded() -> list[str]:
    lines: list[str] = []
    await Stage().run(RecordingModel(ScriptedModel(TURNS), lines.append))
    return lines


async def test_what_was_recorded_is_said_again_and_the_calls_are_made_again():
    lines = await recorded()
    stage = Stage()
    result = await stage.run(ReplayModel(lines))

    assert (result.status, result.answer, result.tokens) == (RunStatus.OK, "done", 7)
    # side by side: either may be the first
    assert sorted(stage.view.calls, key=repr) == [READ_A, WRITE]


async def test_a_turn_that_is_not_on_record_ends_the_agent():
    lines = await recorded()
    result = await Stage().run(ReplayModel(lines[:1]))

    assert result.error is not None
    assert result.error.code == "E-REPLAY-TURN"


async def test_a_replay_asks_the_gate_like_any_model():
    def shut() -> None:
        raise AuthorityError("over", reason=DenyReason.AGENT_CANCELLED)

    stage = Stage(gate=shut)
    assert (await stage.run(ReplayModel(await recorded()))).status is RunStatus.CANCELLED


@pytest.mark.parametrize("line", ["{}", '{"calls": 3}', "[]", json.dumps({"calls": [{}]})])
def test_a_line_that_is_no_turn_is_refused(line: str):
    with pytest.raises(ConfigError):
        ReplayModel([line])


def test_a_recording_is_bounded():
    with pytest.raises(ConfigError):
        ReplayModel(["{}"] * (RECORDED_TURNS_MAX + 1))
