"""Agents in the background: their tasks, what they ask, their typed answers, and their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.lifecycle import TaskState
from orchestrator.agents.model import Turn
from orchestrator.agents.results import AgentResult
from orchestrator.agents.structured import any_answer
from orchestrator.audit.memory import MemoryAudit
from orchestrator.authority.admission import Grant
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.asks import Ask, AskKind
from orchestrator.sessions.background import Helper
from orchestrator.sessions.household import AgentWish
from orchestrator.sessions.task_work import Background
from orchestrator.sessions.tasks import Task, TaskFailedError, TaskOrder
from tests.orchestrator.agents.stage import ScriptedModel, answers, asks, recipe
from tests.orchestrator.broker.stage import (
    calling,
    calls_at,
    policy_of,
    staged,
    until,
    wish,
)
from tests.orchestrator.sessions.test_parent_agents import READS, WAITS, Thinking

ASKS = 'policy p v1 { ask "each" call on files/* permit "own" call on remit/* }'
TWICE = (
    "def main(task):\n"
    "    a = yield Call('files', 'read', {'path': 'a'})\n"
    "    b = yield Call('files', 'read', {'path': 'b'})\n"
    "    return [a.text, b.text]\n"
)


@dataclass
class Bug:
    title: str
    line: int


async def first_ask(task: Task[object]) -> Ask:
    async for ask in task.asks():
        return ask
    raise AssertionError("the task asked nothing")


def says(value: str) -> str:
    return f"def main(task):\n    yield []\n    return {value}\n"


async def test_a_task_works_in_the_background_and_has_an_answer():
    async with staged() as stage:
        task = await stage.agent(model=recipe(READS)).start("a.txt")

        answer = await task.result()

    assert (answer.value, answer.agent, answer.sources) == (
        "content of a.txt",
        "worker",
        ("files/read",),
    )
    assert (answer.trust, answer.authority) == ("untrusted_external", "none")
    assert task.state is TaskState.DONE


async def test_an_answer_is_of_the_type_that_was_asked_for():
    async with staged() as stage:
        agent = stage.agent(model=recipe(says("[{'title': 'a', 'line': 3}]")))
        task = await agent.start("look", returns=list[Bug])

        assert (await task.result()).value == [Bug("a", 3)]


async def test_an_answer_of_another_type_fails_the_task_and_stays_at_hand():
    async with staged() as stage:
        agent = stage.agent(model=recipe(says("{'title': 'a'}")))
        task = await agent.start("look", returns=Bug)

        with pytest.raises(TaskFailedError) as caught:
            await task.result()

    assert caught.value.code == "E-ANSWER-SHAPE"
    assert "/line" in caught.value.why
    assert caught.value.result.status is RunStatus.FAILED


async def test_an_answer_may_have_a_json_schema():
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    async with staged() as stage:
        good = await stage.agent("a", model=recipe(says("{'n': 1}"))).start("x", returns=schema)
        bad = await stage.agent("b", model=recipe(says("{'n': 'one'}"))).start("x", returns=schema)

        assert (await good.result()).value == {"n": 1}
        with pytest.raises(TaskFailedError) as caught:
            await bad.result()
    assert caught.value.code == "E-ANSWER-SHAPE"


async def test_a_schema_that_points_outside_is_refused_and_nothing_is_fetched():
    async with staged() as stage:
        agent = stage.agent(model=recipe(says("1")))

        with pytest.raises(ConfigError) as caught:
            await agent.start("x", returns={"$ref": "http://127.0.0.1:9/schema.json"})

    assert caught.value.code == "E-ANSWER-RETURNS"


async def test_a_model_mends_an_answer_that_does_not_fit():
    turns = [
        Turn(answer="no json", done=True, open=True),
        Turn(answer='```json\n{"title": "a", "line": 3}\n```', done=True, open=True),
    ]
    async with staged() as stage:
        task = await stage.agent(model=ScriptedModel(turns)).start("look", returns=Bug)

        assert (await task.result()).value == Bug("a", 3)


async def test_a_model_that_cannot_mend_its_answer_is_asked_a_bounded_number_of_times():
    model = ScriptedModel([Turn(answer="no json", done=True, open=True)])
    async with staged() as stage:
        task = await stage.agent(model=model).start("look", returns=Bug)

        with pytest.raises(TaskFailedError):
            await task.result()

    assert len(model.handed) == 3


# ------------------------------------------------------------------------------------- asks


@pytest.mark.requirement("S-48")
async def test_a_call_that_a_rule_asks_about_waits_for_whoever_listens():
    async with staged(ASKS) as stage:
        task = await stage.agent(model=recipe(READS)).start("a.txt")
        seen: list[tuple[AskKind, tuple[str, ...], str]] = []
        async for ask in task.asks():
            assert ask.request is not None
            assert calls_at(stage.files) == []
            seen.append((ask.kind, ask.path, str(ask.request.ref)))
            await ask.allow_once()

        assert (await task.result()).value == "content of a.txt"
    assert seen == [(AskKind.APPROVAL, ("worker",), "files/read")]


async def test_a_no_is_a_refusal_and_nothing_is_sent():
    async with staged(ASKS) as stage:
        task = await stage.agent(model=recipe(READS)).start("a.txt")
        await (await first_ask(task)).deny()
        result = await task.wait()

        assert isinstance(result.error, AuthorityError) or result.status is RunStatus.FAILED
        assert (result.denied, calls_at(stage.files)) == (1, [])


async def test_once_is_once_and_for_the_session_is_until_the_agent_ends():
    async with staged(ASKS) as stage:
        once = await stage.agent("a", model=recipe(TWICE)).start("x")
        number = 0
        async for ask in once.asks():
            number += 1
            await ask.allow_once()
        assert number == 2

        always = await stage.agent("b", model=recipe(TWICE)).start("x")
        number = 0
        async for ask in always.asks():
            number += 1
            await ask.allow_for_session()
        assert number == 1

        again = await stage.agent("b", model=recipe(READS)).start("x")
        await (await first_ask(again)).deny()


@pytest.mark.requirement("I19")
async def test_another_policy_ends_what_was_allowed_for_the_session():
    code = (
        "def main(task):\n"
        "    yield Call('files', 'read', {'path': 'a'})\n"
        "    yield [Call('files', 'ok')]\n"
        "    yield Call('files', 'read', {'path': 'a'})\n"
    )
    async with staged(ASKS) as stage:
        task = await stage.agent(model=recipe(code)).start("x")
        asked: list[str] = []
        async for ask in task.asks():
            assert ask.request is not None
            asked.append(ask.request.ref.name)
            if asked == ["read", "ok"]:
                stage.session.replace_policy(policy_of(ASKS))
            else:
                await ask.allow_for_session()

    assert asked == ["read", "ok", "read"]


async def test_without_a_listener_an_ask_is_refused_at_once():
    async with staged(ASKS) as stage:
        task = await stage.agent(model=recipe(READS)).start("a.txt")
        with pytest.raises(TaskFailedError) as caught:
            await task.result()

    assert caught.value.result.denied == 1


async def test_an_ask_that_is_over_cannot_be_answered():
    async with staged(ASKS) as stage:
        task = await stage.agent(model=recipe(READS)).start("a.txt")
        ask = await first_ask(task)
        task.cancel()
        await until(lambda: not ask.open)

        with pytest.raises(ConfigError) as caught:
            await ask.allow_once()
    assert caught.value.code == "E-ASK-OVER"


async def test_the_session_hears_what_every_agent_asks():
    async with staged(ASKS) as stage:
        await stage.agent("a", model=recipe(READS)).start("x")
        await stage.agent("b", model=recipe(READS)).start("x")
        paths: list[str] = []
        async for ask in stage.session.asks():
            paths.append(ask.agent)
            await ask.deny()
            if len(paths) == 2:
                break

    assert sorted(paths) == ["a", "b"]


# ------------------------------------------------------------------------------------- ends


async def test_a_cancel_beats_a_success_that_comes_later():
    async with staged() as stage:
        task = await stage.agent(model=recipe(WAITS)).start("x")
        await until(lambda: stage.files.held)
        task.cancel()
        stage.files.held[0].answer({"content": []})

        assert (await task.wait()).status is RunStatus.CANCELLED
        assert task.state is TaskState.CANCELLED


async def test_a_success_that_came_before_stays():
    async with staged() as stage:
        task = await stage.agent(model=recipe(READS)).start("x")
        await task.wait()
        task.cancel()

        assert task.state is TaskState.DONE


async def test_the_end_of_the_session_ends_a_task_with_the_true_cause():
    model = Thinking()
    async with staged() as stage:
        task = await stage.agent(model=model).start("x")
        await model.asked.wait()

    result = await task.wait()
    assert isinstance(result.error, AuthorityError)
    assert (result.status, result.error.reason) == (
        RunStatus.CANCELLED,
        DenyReason.SESSION_CLOSED,
    )
    assert model.left


async def test_nothing_starts_in_a_session_that_is_over():
    async with staged() as stage:
        agent = stage.agent(model=recipe(READS))
    with pytest.raises(ConfigError) as caught:
        await agent.start("x")
    assert caught.value.code == "E-SESSION-OVER"


async def test_a_mistake_of_ours_reaches_whoever_waits_and_ends_nobody_else():
    class Broken(ScriptedModel):
        async def next(self, results: Sequence[object]) -> Turn:
            raise KeyError("mistake")

    async with staged() as stage:
        broken = await stage.agent("a", model=Broken([])).start("x")
        other = await stage.agent("b", model=recipe(READS)).start("x")

        with pytest.raises(KeyError):
            await broken.result()
        assert (await other.result()).value == "content of x"


async def test_a_message_reaches_a_recipe_that_looks():
    code = (
        "def main(task):\n"
        "    yield Call('files', 'wait')\n"
        "    return [message.text for message in task.mail()]\n"
    )
    async with staged() as stage:
        task = await stage.agent(model=recipe(code)).start("x")
        await until(lambda: stage.files.held)
        task.send("look at b as well")
        stage.files.held[0].answer({"content": []})

        assert (await task.result()).value == ["look at b as well"]
        with pytest.raises(ConfigError) as caught:
            task.send("too late")
    assert caught.value.code == "E-TASK-OVER"


# ------------------------------------------------------------------------- the tree's budget


async def test_a_child_spends_its_parents_budget_and_gives_the_rest_back():
    async with staged(
        'policy p v1 { permit "a" call on files/* permit "d" delegate on files/* }'
    ) as stage:
        parent = stage.session.subagent("p", model=recipe(READS), budget=Budget(calls=10, turns=20))
        child = stage.session.subagent(
            "c", model=recipe(READS), parent=parent, budget=Budget(calls=6)
        )
        assert parent.meter.remaining(0.0).calls == 4
        await child.run("x")

        assert parent.meter.remaining(0.0).calls == 9
        assert parent.meter.remaining(0.0).turns == 18


async def test_children_together_never_get_more_than_there_is():
    async with staged() as stage:
        parent = stage.session.subagent("p", model=recipe(READS), budget=Budget(calls=8, turns=8))
        given = [
            stage.session.subagent(f"c{number}", model=recipe(READS), parent=parent).meter.budget
            for number in range(3)
        ]

    assert [budget.calls for budget in given] == [4, 2, 1]


async def test_an_agent_without_anything_left_makes_no_children():
    async with staged() as stage:
        parent = stage.session.subagent("p", model=recipe(READS), budget=Budget(turns=1))
        stage.session.subagent("c", model=recipe(READS), parent=parent)
        with pytest.raises(AuthorityError) as caught:
            stage.session.subagent("d", model=recipe(READS), parent=parent)

    assert caught.value.reason is DenyReason.BUDGET_SPENT


async def test_bytes_of_results_are_a_budget():
    async with staged() as stage:
        agent = stage.session.subagent("p", model=recipe(TWICE), budget=Budget(bytes=5))
        result = await agent.run("x")

    assert result.error is not None
    assert (result.error.code, result.calls) == ("E-BUDGET-BYTES", 1)


async def test_money_without_a_known_price_starts_nothing():
    async with staged() as stage:
        model = ScriptedModel([answers("x")], name="unheard-of")
        agent = stage.session.subagent("p", model=model, budget=Budget(usd=1.0))
        with pytest.raises(ConfigError) as caught:
            await agent.start("x")

    assert (caught.value.code, model.handed) == ("E-BUDGET-PRICE", [])


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (OrchestratorLimits(children_max=2), "E-AGENT-WIDTH"),
        (OrchestratorLimits(descendants_max=2), "E-AGENT-TOTAL"),
    ],
)
async def test_one_child_more_than_a_tree_may_have_is_refused(
    limits: OrchestratorLimits, code: str
):
    async with staged(limits=limits) as stage:
        parent = stage.agent()
        stage.agent("a", parent=parent)
        stage.agent("b", parent=parent)
        with pytest.raises(ConfigError) as caught:
            stage.agent("c", parent=parent)

    assert caught.value.code == code


async def test_a_total_counts_the_dead_and_a_width_does_not():
    async with staged(limits=OrchestratorLimits(children_max=1, descendants_max=2)) as stage:
        parent = stage.agent()
        stage.agent("a", parent=parent).close()
        stage.agent("a", parent=parent).close()
        with pytest.raises(ConfigError) as caught:
            stage.agent("a", parent=parent)

    assert caught.value.code == "E-AGENT-TOTAL"


def test_a_grant_takes_lists_and_no_text():
    assert Grant(tools=["files/read"]) == Grant(tools=("files/read",))
    with pytest.raises(TypeError):
        Grant(tools="files/read")


async def test_calls_of_a_turn_wait_for_their_answers_side_by_side():
    model = ScriptedModel([asks(wish("files/wait"), wish("files/ask")), answers("done")])
    async with staged(ASKS) as stage:
        task = await stage.agent(model=model).start("x")
        asked = await first_ask(task)
        await asked.allow_once()
        await until(lambda: stage.files.held)
        stage.files.held[0].answer({"content": []})

        with anyio.fail_after(2):
            assert (await task.result()).value == "done"


@pytest.mark.requirement("I19")
async def test_what_was_allowed_an_agent_is_not_allowed_another_of_its_name():
    async with staged(ASKS) as stage:
        stage.session.asks()  # somebody listens
        first = stage.agent("a")
        async with calling(first.view, "files/ok") as call:
            async for ask in stage.session.asks():
                await ask.allow_for_session()
                break
            await call.answered()
        first.close()

        async with calling(stage.agent("a").view, "files/ok"):
            async for ask in stage.session.asks():
                assert ask.agent == "a"
                break


@pytest.mark.requirement("I19")
async def test_a_yes_for_the_session_that_meets_another_policy_is_kept_for_nothing():
    async with staged(ASKS) as stage:
        view = stage.agent("a").view
        async with calling(view, "files/ok") as call:
            async for ask in stage.session.asks():
                async with anyio.create_task_group() as group:
                    group.start_soon(ask.allow_for_session)
                    await until(lambda: not ask.open)  # noqa: B023 - of this turn
                    stage.session.replace_policy(policy_of(ASKS))
                break
            await call.refused()

        async with calling(view, "files/ok"):
            async for ask in stage.session.asks():
                assert ask.agent == "a"
                break


class Breaking(MemoryAudit):
    """A record that cannot take that an agent has ended others."""

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        if kind == "revoked" and fields["what"] == "agent":
            raise OSError(28, "no space left")
        super().append(kind, fields)


async def test_whoever_waits_is_told_where_the_record_of_the_end_cannot_be_kept():
    async with staged(audit=Breaking()) as stage:
        agent = stage.agent(model=recipe(says("'done'")))
        other = stage.session.subagent("child", model=Thinking(), parent=agent)
        below = await other.start("think")
        await until(lambda: stage.events)
        task = await agent.start("x")

        with anyio.fail_after(30):
            with pytest.raises(OSError, match="no space left"):
                await task.result()
            ended = await below.wait()

        assert ended.status is RunStatus.CANCELLED
        assert stage.session.agents == {}


async def test_whoever_waits_is_told_whatever_goes_wrong_at_the_end_of_a_task():
    async def work(_: Task[object]) -> AgentResult:
        return AgentResult(agent=AgentId("a"), status=RunStatus.OK, answer="done")

    def over() -> None:
        raise OSError(28, "no space left")

    async with staged() as stage:
        task: Task[object] = Task(
            number=1,
            agent=AgentId("a"),
            order=TaskOrder(prompt="x", shape=any_answer),
            desk=stage.session.inbox,
            on_change=lambda _: None,
        )
        await Background(task, work, over).run()

        with anyio.fail_after(30), pytest.raises(OSError, match="no space left"):
            await task.result()


async def test_an_agent_is_told_whatever_goes_wrong_at_the_end_of_its_child():
    def over() -> None:
        raise OSError(28, "no space left")

    async with staged() as stage:
        child = stage.agent(model=recipe(says("'done'")))
        helper = Helper(
            child=child,
            under=child.cell,
            wish=AgentWish(name="worker", model=child.model),
            prompt="x",
            over=over,
        )
        await helper.work()

        with anyio.fail_after(30), pytest.raises(OSError, match="no space left"):
            await helper.news()
