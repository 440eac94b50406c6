"""A turn of the parent's model for a server: by rule and by consent, at the cost of whose call it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import anyio
import pytest

from mcp_client.protocol.peer.elicitation import CANCEL, ElicitationAnswer
from orchestrator import Grant
from orchestrator.agents.budget import Budget
from orchestrator.sessions.elicitations import Elicitation, SamplingWish
from orchestrator.sessions.sampling import SAMPLING_CHARS_MAX
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import OPEN, Calling, Stage, staged, until, wish
from tests.orchestrator.sessions.test_elicitation import answers, declared_to

ALLOWED = OPEN[: OPEN.rindex("}")] + 'ask "sampling" sample on files }'
ECHO = recipe("def main(task):\n    yield []\n    return 'model: ' + task.prompt\n")


def sampling(text: str = "sum it up", **more: object) -> Mapping[str, object]:
    return {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": 1000,
        **more,
    }


@dataclass
class Somebody:
    """A person who lets a server have its turn, changes what it says, or says no."""

    says: str | None = "as it is"
    interactive: bool = True
    asked: list[SamplingWish] = field(default_factory=list[SamplingWish])

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        return CANCEL

    async def sample(self, wish: SamplingWish) -> str | None:
        self.asked.append(wish)
        return wish.prompt if self.says == "as it is" else self.says


async def sampled(
    stage: Stage, params: Mapping[str, object], budget: Budget | None = None
) -> Mapping[str, object]:
    """Have a server want a turn while an agent's call is under way; return the whole answer."""
    worker = stage.session.subagent("worker", model=ECHO, grant=Grant(), budget=budget)
    call = Calling(worker.view, wish("files/wait"))
    async with anyio.create_task_group() as group:
        group.start_soon(call.run)
        await until(lambda: stage.files.held)
        stage.files.ask("q1", "sampling/createMessage", params)
        await until(lambda: answers(stage.files))
        stage.files.held[0].answer({"content": []})
        await call.answered()
    return answers(stage.files)[0]


def result_of(answer: Mapping[str, object]) -> Mapping[str, object]:
    return cast("Mapping[str, object]", answer["result"])


def text_of(answer: Mapping[str, object]) -> str:
    content = cast("Mapping[str, str]", result_of(answer)["content"])
    return content["text"]


@pytest.mark.requirement("S-43")
async def test_a_server_gets_a_text_and_neither_provider_nor_model() -> None:
    person = Somebody()
    async with staged(ALLOWED, host=person) as stage:
        answer = await sampled(stage, sampling())

    assert "sum it up" in text_of(answer)
    assert str(answer["result"]).count("recipe") == 0
    assert result_of(answer)["model"] == "unspecified"


@pytest.mark.requirement("C-10")
@pytest.mark.requirement("S-43")
async def test_all_that_is_sent_is_shown_before() -> None:
    person = Somebody()
    async with staged(ALLOWED, host=person) as stage:
        answer = await sampled(stage, sampling(systemPrompt="be short"))

    (seen,) = person.asked
    assert (seen.server, seen.agent) == ("files", "worker")
    assert "be short" in seen.prompt
    assert text_of(answer).endswith(seen.prompt)


@pytest.mark.requirement("C-10")
@pytest.mark.requirement("S-43")
async def test_what_a_person_writes_instead_is_what_is_sent() -> None:
    async with staged(ALLOWED, host=Somebody("another question")) as stage:
        answer = await sampled(stage, sampling())

    assert "another question" in text_of(answer)
    assert "sum it up" not in text_of(answer)


@pytest.mark.requirement("S-43")
async def test_a_no_reaches_the_server_as_a_refusal_without_a_reason() -> None:
    async with staged(ALLOWED, host=Somebody(None)) as stage:
        answer = await sampled(stage, sampling())

    assert answer["error"] == {"code": -1, "message": "the request was rejected"}


@pytest.mark.requirement("S-43")
async def test_without_a_rule_sampling_is_not_declared() -> None:
    async with staged(OPEN, host=Somebody()) as stage:
        assert "sampling" not in declared_to(stage.files)


@pytest.mark.requirement("S-43")
async def test_a_rule_about_another_server_gives_nothing() -> None:
    policy = OPEN[: OPEN.rindex("}")] + 'permit "sampling" sample on git }'
    person = Somebody()
    async with staged(policy, host=person) as stage:
        answer = await sampled(stage, sampling())

    assert "error" in answer
    assert person.asked == []


@pytest.mark.requirement("S-43")
async def test_a_permit_is_shown_for_approval_too_and_without_a_person_it_is_a_no() -> None:
    policy = OPEN[: OPEN.rindex("}")] + 'permit "sampling" sample on files }'
    async with staged(policy) as stage:
        assert "error" in await sampled(stage, sampling())


@pytest.mark.requirement("S-43")
async def test_whose_call_it_is_pays_for_it() -> None:
    async with staged(ALLOWED, host=Somebody()) as stage:
        answer = await sampled(stage, sampling(), Budget(turns=0))
        (record,) = stage.audit.fields("sampling")

    assert "error" in answer
    assert record["answer"] == "E-BUDGET-TURNS"


@pytest.mark.requirement("S-43")
async def test_what_is_under_no_agents_call_is_refused() -> None:
    person = Somebody()
    async with staged(ALLOWED, host=person) as stage:
        stage.files.ask("q1", "sampling/createMessage", sampling())
        await until(lambda: answers(stage.files))

    assert "error" in answers(stage.files)[0]
    assert person.asked == []


@pytest.mark.requirement("S-40")
@pytest.mark.parametrize("context", ["thisServer", "allServers"])
async def test_what_a_server_wants_to_see_of_others_is_not_heeded(context: str) -> None:
    async with staged(ALLOWED, host=Somebody()) as stage:
        plain = await sampled(stage, sampling())
    async with staged(ALLOWED, host=Somebody()) as stage:
        asked = await sampled(stage, sampling(includeContext=context))

    assert text_of(plain) == text_of(asked)


async def test_one_character_more_than_a_person_reads_is_refused() -> None:
    person = Somebody()
    room = SAMPLING_CHARS_MAX - len("[user]\n")
    async with staged(ALLOWED, host=person) as stage:
        await sampled(stage, sampling("x" * (room + 1)))
        assert person.asked == []
    async with staged(ALLOWED, host=person) as stage:
        await sampled(stage, sampling("x" * room))
        assert len(person.asked) == 1


async def test_what_is_no_text_is_refused() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    wanted = {"messages": [{"role": "user", "content": image}], "maxTokens": 10}
    async with staged(ALLOWED, host=Somebody()) as stage:
        assert "error" in await sampled(stage, wanted)


@pytest.mark.requirement("C-10")
async def test_an_answer_is_cut_at_what_the_server_may_have() -> None:
    async with staged(ALLOWED, host=Somebody("x" * 100)) as stage:
        answer = await sampled(stage, sampling(maxTokens=2))

    assert len(text_of(answer)) == 8
    assert result_of(answer)["stopReason"] == "maxTokens"


WORKS = recipe(
    "from orchestrator import Call\n"
    "def main(task):\n"
    "    if task.prompt == 'work':\n"
    "        yield Call('files', 'wait', {})\n"
    "        return 'done'\n"
    "    yield []\n"
    "    return 'model: ' + task.prompt\n"
)


@pytest.mark.requirement("S-43")
async def test_an_agent_that_stays_pays_from_what_its_task_has_left() -> None:
    async with staged(ALLOWED, host=Somebody()) as stage:
        worker = stage.session.persistent("worker", model=WORKS, budget=Budget(turns=10))
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run, "work")
            await until(lambda: stage.files.held)
            stage.files.ask("q1", "sampling/createMessage", sampling())
            await until(lambda: answers(stage.files))
            stage.files.held[0].answer({"content": []})

        assert "sum it up" in text_of(answers(stage.files)[0])
        assert worker.meter.turns == 3
