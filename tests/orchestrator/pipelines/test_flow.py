"""How steps run: mapped, joined, on conditions, again. What they may do is none of these tests' business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import anyio
import pytest

from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.inputs import LIST_ITEMS_MAX
from orchestrator.pipelines.running import PipelineResult, SkippedAgent, run_pipeline
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec

Load = Callable[[str], PipelineSpec]
MAPPED = """\
remit = 1
name = "x"
[agents.lister]
[agents.reader]
needs = ["lister"]
map = "lister.files"
max_parallel = 2
[agents.writer]
needs = ["reader"]
"""


def ok(agent: AgentSpec, answer: object = None) -> AgentResult:
    return AgentResult(agent=AgentId(agent.name), status=RunStatus.OK, answer=answer)


def failed(agent: AgentSpec) -> AgentResult:
    error = RemitError("no", code="E-X")
    return AgentResult(agent=AgentId(agent.name), status=RunStatus.FAILED, error=error)


def result_of(result: PipelineResult, name: str) -> AgentResult:
    found = result.agents[name]
    assert isinstance(found, AgentResult)
    return found


def mapping(*files: object, bad: tuple[int, ...] = ()) -> Callable[..., object]:
    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        if agent.name == "lister":
            return ok(agent, {"files": list(files)})
        if agent.name == "writer":
            return ok(agent, answers["reader"])
        return failed(agent) if answers["index"] in bad else ok(agent, f"{answers['item']}!")

    return start


async def test_a_step_is_mapped_over_a_list_and_joined_in_its_order(load: Load):
    result = await run_pipeline(load(MAPPED), mapping("a", "b", "c"))  # type: ignore[arg-type]

    assert result_of(result, "writer").answer == ["a!", "b!", "c!"]
    assert [item.agent for item in result.items["reader"]] == ["reader-1", "reader-2", "reader-3"]


async def test_no_more_items_are_at_work_than_the_file_says(load: Load):
    at_work: Counter[str] = Counter()
    most = 0

    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        nonlocal most
        if not agent.name.startswith("reader-"):
            return ok(agent, {"files": list(range(7))})
        at_work[agent.name] += 1
        most = max(most, len(+at_work))
        await anyio.lowlevel.checkpoint()
        at_work[agent.name] -= 1
        return ok(agent)

    await run_pipeline(load(MAPPED), start)

    assert most == 2


async def test_one_bad_item_fails_the_step_unless_the_file_can_do_without(load: Load):
    start = mapping("a", "b", "c", bad=(1,))
    strict = await run_pipeline(load(MAPPED), start)  # type: ignore[arg-type]
    lenient = await run_pipeline(
        load(MAPPED.replace("max_parallel", "max_failures = 1\nmax_parallel")),
        start,  # type: ignore[arg-type]
    )

    assert (strict.status, result_of(strict, "reader").error.code) == (  # type: ignore[union-attr]
        RunStatus.FAILED,
        "E-PIPELINE-ITEMS",
    )
    assert result_of(lenient, "writer").answer == ["a!", None, "c!"]


async def test_a_map_over_what_is_no_list_fails_that_step_alone(load: Load):
    spec = load(MAPPED.replace("lister.files", "lister.fils"))
    result = await run_pipeline(spec, mapping("a"))  # type: ignore[arg-type]

    assert result_of(result, "reader").error.code == "E-PIPELINE-MAP"  # type: ignore[union-attr]
    assert result.agents["writer"] == SkippedAgent("writer", ("reader",))


async def test_a_list_one_item_too_long_is_not_mapped_over(load: Load):
    result = await run_pipeline(
        load(MAPPED),
        mapping(*range(LIST_ITEMS_MAX + 1)),  # type: ignore[arg-type]
    )

    assert result_of(result, "reader").error.code == "E-PIPELINE-MAP"  # type: ignore[union-attr]


ANY = """\
remit = 1
name = "x"
[agents.a]
[agents.b]
[agents.c]
needs = ["a", "b"]
join = "any"
"""


async def test_a_join_of_any_goes_on_with_what_there_is(load: Load):
    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        return failed(agent) if agent.name == "a" else ok(agent, dict(answers))

    result = await run_pipeline(load(ANY), start)

    assert result_of(result, "c").answer == {"b": {}}


async def test_a_join_of_any_of_nothing_is_skipped(load: Load):
    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        return failed(agent)

    result = await run_pipeline(load(ANY), start)

    assert result.agents["c"] == SkippedAgent("c", ("a", "b"))


async def test_a_condition_leaves_a_step_out_and_the_run_is_well(load: Load):
    spec = load(
        'remit = 1\nname = "x"\n[agents.a]\n[agents.b]\nneeds = ["a"]\nwhen = "a.bugs > 2"\n'
    )

    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        return ok(agent, {"bugs": 2})

    result = await run_pipeline(spec, start)

    assert result.agents["b"] == SkippedAgent("b", when="a.bugs > 2")
    assert result.status is RunStatus.OK


@pytest.mark.parametrize(("retries", "status"), [(1, RunStatus.FAILED), (2, RunStatus.OK)])
async def test_an_idempotent_step_that_failed_is_tried_again(
    load: Load, retries: int, status: RunStatus
):
    spec = load(f'remit = 1\nname = "x"\n[agents.a]\nidempotent = true\nretries = {retries}\n')
    left = 2

    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        nonlocal left
        left -= 1
        return failed(agent) if left >= 0 else ok(agent)

    assert (await run_pipeline(spec, start)).status is status


async def test_a_step_that_was_denied_is_not_tried_again(load: Load):
    spec = load('remit = 1\nname = "x"\n[agents.a]\nidempotent = true\nretries = 5\n')
    times = 0

    async def start(agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        nonlocal times
        times += 1
        return AgentResult(agent=AgentId(agent.name), status=RunStatus.DENIED)

    await run_pipeline(spec, start)

    assert times == 1
