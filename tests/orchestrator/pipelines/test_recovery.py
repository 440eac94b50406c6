"""What may be taken up again of a run that ended early, judged by its checkpoint and its audit log."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit.log import AuditLog
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.ids import RunId
from orchestrator.pipelines.checkpoint import KEPT_BYTES_MAX, CallRow, CallState, Checkpoint
from orchestrator.pipelines.recovery import InDoubtError, recover
from orchestrator.pipelines.spec import PipelineSpec
from tests.orchestrator.agents.stage import HandClock

Load = Callable[[str], PipelineSpec]
RECIPE = 'remit = 1\nname = "x"\n[agents.a]\nmodel = "recipe:recipes.py:brief"\n'
MODEL = 'remit = 1\nname = "x"\n[agents.a]\nmodel = "openai:gpt-5"\n'


@dataclass
class Earlier:
    """A run that ended in the middle of step `a`."""

    folder: Path
    checkpoint: Checkpoint
    records: list[tuple[str, dict[str, object]]] = field(
        default_factory=lambda: [("step_started", {"step": "a", "attempt": 1})]
    )

    async def open_call(self, number: int, *, sent: bool, agent: str = "a") -> CallRow:
        """A call that was about to be made; with `sent` its decision is on record."""
        row = CallRow(
            step="a",
            attempt=1,
            number=number,
            server="s",
            tool="t",
            recorded="same arguments",
            arguments='{"order":101}',
            state=CallState.OPEN,
        )
        await self.checkpoint.call_opens(row)
        if sent:
            self.decided(f"c{number}", agent)
        return row

    def decided(self, call: str, agent: str = "a") -> None:
        self.records.append(
            (
                "decision",
                {
                    "call": call,
                    "agent": agent,
                    "server": "s",
                    "tool": "t",
                    "arguments": "same arguments",
                },
            )
        )

    def recover(self, spec: PipelineSpec, **more: Any) -> frozenset[str]:
        log = self.folder / "audit.jsonl"
        if not log.exists():
            with AuditLog.create(log, RunId("r"), HandClock()) as audit:
                for kind, fields in self.records:
                    audit.append(kind, fields)
        said: dict[str, Any] = {"model": "", "settle": {}, "restart": (), **more}
        return recover(self.checkpoint, [log], spec, **said)

    def states(self) -> list[CallState]:
        return [row.state for row in self.checkpoint.calls("a", 1)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def earlier(tmp_path: Path) -> Earlier:
    checkpoint = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    await checkpoint.begin("a", 1)
    return Earlier(tmp_path, checkpoint)


@pytest.fixture(autouse=True)
def closed(earlier: Earlier) -> Generator[None]:
    yield
    earlier.checkpoint.close()


async def test_a_call_that_was_not_sent_is_made_again(earlier: Earlier, load: Load):
    await earlier.open_call(1, sent=False)

    assert earlier.recover(load(RECIPE)) == frozenset()
    assert earlier.states() == []


async def test_a_call_that_went_out_is_in_doubt_and_shown_with_its_arguments(
    earlier: Earlier, load: Load
):
    await earlier.open_call(1, sent=True)

    with pytest.raises(InDoubtError) as caught:
        earlier.recover(load(RECIPE))

    assert [row.id for row in caught.value.calls] == ["a#1"]
    assert 'a#1  s/t  {"order": 101}' in caught.value.why
    assert earlier.states() == [CallState.OPEN]


async def test_of_equal_calls_only_as_many_are_in_doubt_as_went_out(earlier: Earlier, load: Load):
    answered = await earlier.open_call(1, sent=True)
    await earlier.checkpoint.call_ended(answered, CallState.ANSWERED, b"{}")
    await earlier.open_call(2, sent=True)
    await earlier.open_call(3, sent=False)

    with pytest.raises(InDoubtError) as caught:
        earlier.recover(load(RECIPE))

    assert len(caught.value.calls) == 1


async def test_a_call_that_was_refused_before_its_first_byte_is_in_no_doubt(
    earlier: Earlier, load: Load
):
    await earlier.open_call(1, sent=True)
    earlier.records.append(("refused", {"call": "c1", "delivery": "not_sent"}))

    assert earlier.recover(load(RECIPE)) == frozenset()


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("repeat", CallState.CLEARED),
        ("lost", CallState.LOST),
        ("answered:42", CallState.ANSWERED),
    ],
)
async def test_what_a_person_says_of_a_call_is_kept(
    earlier: Earlier, load: Load, how: str, state: CallState
):
    await earlier.open_call(1, sent=True)

    assert earlier.recover(load(RECIPE), settle={"a#1": how}) == frozenset()
    assert earlier.states() == [state]
    assert earlier.recover(load(RECIPE)) == frozenset()


async def test_what_a_person_cannot_mean_is_an_error(earlier: Earlier, load: Load):
    await earlier.open_call(1, sent=True)

    with pytest.raises(ConfigError) as caught:
        earlier.recover(load(RECIPE), settle={"a#1": "maybe"})

    assert caught.value.code == "E-RESUME-SETTLE"


async def test_a_step_that_is_declared_idempotent_is_in_no_doubt(earlier: Earlier, load: Load):
    await earlier.open_call(1, sent=True)

    assert earlier.recover(load(f"{RECIPE}idempotent = true\n")) == frozenset()
    assert earlier.states() == [CallState.CLEARED]


async def test_without_a_log_that_can_be_read_every_open_call_is_in_doubt(
    earlier: Earlier, load: Load
):
    await earlier.open_call(1, sent=False)
    (earlier.folder / "audit.jsonl").write_text("no record\n")

    with pytest.raises(InDoubtError):
        earlier.recover(load(RECIPE))


async def test_a_language_models_step_does_not_go_on_in_its_middle(earlier: Earlier, load: Load):
    await earlier.open_call(1, sent=True)

    with pytest.raises(RemitError) as caught:
        earlier.recover(load(MODEL))
    assert (caught.value.code, "--restart a" in caught.value.fix) == ("E-RESUME-STEP", True)
    assert earlier.recover(load(MODEL), restart=["a"]) == {"a"}
    assert earlier.recover(load(f"{MODEL}idempotent = true\n")) == {"a"}


async def test_a_language_models_step_goes_on_behind_the_turns_that_were_kept(
    earlier: Earlier, load: Load
):
    await earlier.checkpoint.turn_ended("a", 1, 1, "openai:gpt-5", b"[]")
    await earlier.open_call(1, sent=True)

    with pytest.raises(InDoubtError):
        earlier.recover(load(MODEL))
    assert earlier.recover(load(MODEL), settle={"a#1": "lost"}) == frozenset()
    assert earlier.states() == [CallState.LOST]


async def test_what_another_model_said_is_not_gone_on_with(earlier: Earlier, load: Load):
    await earlier.checkpoint.turn_ended("a", 1, 1, "openai:gpt-5", b"[]")
    await earlier.open_call(1, sent=True)

    with pytest.raises(RemitError) as caught:
        earlier.recover(load(MODEL), model="openai:other")

    assert caught.value.code == "E-RESUME-STEP"


async def test_a_language_models_step_that_failed_does_not_say_the_same_again(
    earlier: Earlier, load: Load
):
    await earlier.checkpoint.turn_ended("a", 1, 1, "openai:gpt-5", b"[]")
    await earlier.open_call(1, sent=True)
    await earlier.checkpoint.end("a", 1, "failed", b"{}", done=False)

    with pytest.raises(RemitError) as caught:
        earlier.recover(load(MODEL))

    assert caught.value.code == "E-RESUME-STEP"


async def test_a_turn_that_is_too_large_is_not_kept_and_its_calls_are_not_made(earlier: Earlier):
    with pytest.raises(RemitError):
        await earlier.checkpoint.turn_ended("a", 1, 1, "m", b"x" * (KEPT_BYTES_MAX + 1))

    assert earlier.checkpoint.turns("a", 1) == ()


async def test_a_language_models_step_that_made_no_call_begins_again(earlier: Earlier, load: Load):
    assert earlier.recover(load(MODEL)) == frozenset()


async def test_a_recipe_with_agents_of_its_own_does_not_go_on_in_its_middle(
    earlier: Earlier, load: Load
):
    earlier.decided("c9", "a/helper")

    with pytest.raises(RemitError) as caught:
        earlier.recover(load(RECIPE))

    assert caught.value.code == "E-RESUME-STEP"
