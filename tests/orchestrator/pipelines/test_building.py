from __future__ import annotations

from typing import Any

import pytest

from orchestrator.authority.admission import Grant
from orchestrator.core.errors import ConfigError
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.building import StepGraph
from orchestrator.pipelines.stepping import PARALLEL_MAX, RETRIES_MAX
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at, staged

LISTS = "def main(task):\n    yield []\n    return ['a.txt', 'b.txt']\n"
READS = (
    "def main(task):\n"
    "    x = yield Call('files', 'read', {'path': task.inputs['item']})\n"
    "    return {'text': x.text}\n"
)
JOINS = "def main(task):\n    yield []\n    return [x['text'] for x in task.inputs['reader']]\n"
TEXT = {"type": "object", "required": ["text"]}


def graph_of(**more: Any) -> StepGraph:
    graph = StepGraph("texts", inputs={"most": 3}, grant=Grant(tools=["files/*"]))
    lister = graph.add("lister", model=recipe(LISTS), prompt="at most ${inputs.most}")
    reader = graph.add("reader", model=recipe(READS), needs=[lister], over=lister, **more)
    graph.add("joiner", model=recipe(JOINS), needs=[reader], when="reader")
    return graph


async def test_a_program_builds_a_pipeline_and_runs_it_in_its_session():
    async with staged() as stage:
        result = await graph_of(returns=TEXT).run(stage.session)

    assert result.status is RunStatus.OK
    assert result.answers()["joiner"] == ["content of a.txt", "content of b.txt"]


async def test_a_step_does_not_exceed_its_own_grant():
    async with staged() as stage:
        result = await graph_of(grant=Grant(tools=["files/ok"])).run(stage.session)

        assert result.status is RunStatus.DENIED
        assert len(calls_at(stage.files)) == 0


async def test_an_answer_of_another_type_fails_its_step():
    async with staged() as stage:
        result = await graph_of(returns={"type": "integer"}).run(stage.session)

    assert result.status is RunStatus.FAILED
    assert [item.error.code for item in result.items["reader"] if item.error] == [
        "E-PIPELINE-RETURNS"
    ] * 2


WRITES = "def main(task):\n    yield Call('files', 'ok')\n    return 'sent'\n"
CLEAN = """
policy p v1 {
  permit "read" call on files/read
  permit "send" call on files/ok
  forbid "not-after-reading" call on files/ok after untrusted
}
"""


async def test_what_clings_to_an_answer_goes_on_with_it_to_the_next_step():
    graph = graph_of()
    graph.add("sender", model=recipe(WRITES), needs=["joiner"])
    alone = StepGraph("alone")
    alone.add("sender", model=recipe(WRITES))
    async with staged(CLEAN) as stage:
        after, before = await graph.run(stage.session), await alone.run(stage.session)

        assert (after.status, before.status) == (RunStatus.DENIED, RunStatus.OK)
        assert [call["name"] for call in calls_at(stage.files)].count("ok") == 1


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"grant": Grant(tools=["git/git_log"])}, "E-PIPELINE-WIDER"),
        ({"grant": Grant(tools=["files/ok"], delegate=["git/*"])}, "E-PIPELINE-WIDER"),
        ({"grant": Grant(tools=["files"])}, "E-PIPELINE-GRANT"),
        ({"needs": ["litser"]}, "E-PIPELINE-AGENT"),
        ({"over": "gone"}, "E-CONFIG-VALUE"),
        ({"when": "inputs.mots"}, "E-CONFIG-VALUE"),
        ({"prompt": "${inputs.mots}"}, "E-PIPELINE-INPUT"),
        ({"returns": {"type": "nonsense"}}, "E-PIPELINE-SCHEMA"),
        ({"parallel": PARALLEL_MAX + 1}, "E-CONFIG-VALUE"),
        ({"retries": RETRIES_MAX + 1}, "E-CONFIG-VALUE"),
    ],
)
def test_what_makes_no_sense_is_an_error_when_it_is_added(more: dict[str, Any], code: str):
    graph = StepGraph("texts", inputs={"most": 3}, grant=Grant(tools=["files/*"]))
    graph.add("lister", model=recipe(LISTS))

    with pytest.raises(ConfigError) as caught:
        graph.add("reader", model=recipe(READS), **more)

    assert caught.value.code == code


def test_a_name_is_taken_once():
    graph = graph_of()

    with pytest.raises(ConfigError):
        graph.add("reader", model=recipe(READS))


def test_what_was_built_has_generations():
    assert graph_of().spec.order == (("lister",), ("reader",), ("joiner",))
