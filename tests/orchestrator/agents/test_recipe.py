from __future__ import annotations

import sys
from dataclasses import replace

import anyio
import pytest

from orchestrator.agents.events import AgentNoted
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import AgentTask
from orchestrator.agents.recipe import RecipeModel, RecipeSource, load_recipe
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    ConfigError,
    Delivery,
    DenyReason,
    Where,
)
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.stage import ScriptedView, Stage, recipe, text_of

PATH = "/made/up/recipes.py"


async def refuse(call: Call) -> UntrustedContent:
    raise AuthorityError(f"{call.tool} is not permitted", reason=DenyReason.NO_PERMIT)


async def refuse_writes(call: Call) -> UntrustedContent:
    if call.tool == "write":
        return await refuse(call)
    if call.tool == "lose":
        raise CallFailedError(
            "gone", code="E-CALL-GONE", server="files", stage="wait", delivery=Delivery.MAYBE_SENT
        )
    return text_of(call, call.tool)


async def test_a_recipe_gets_the_result_of_its_call_and_returns_the_answer(stage: Stage) -> None:
    model = recipe(
        "def main(task):\n"
        "    result = yield Call('files', 'read', {'path': 'a'})\n"
        "    return {'text': result.text, 'server': result.origin.server}\n"
    )

    result = await stage.run(model)

    assert result.status is RunStatus.OK
    assert result.answer == {"text": "read [('path', 'a')]", "server": "files"}


async def test_a_recipe_gets_its_task_with_its_inputs(stage: Stage) -> None:
    model = recipe(
        "def main(task):\n    yield Note('x')\n    return [task.agent, task.inputs['a']]"
    )

    result = await stage.run(model, task=AgentTask(agent="w", prompt="p", inputs={"a": [1]}))

    assert result.answer == ["w", [1]]


async def test_a_refused_call_is_thrown_into_the_recipe_which_may_catch_it(stage: Stage) -> None:
    stage.view.answer = refuse
    model = recipe(
        "from orchestrator.core.errors import AuthorityError\n"
        "def main(task):\n"
        "    try:\n"
        "        yield Call('files', 'read')\n"
        "    except AuthorityError as error:\n"
        "        return error.reason.value\n"
    )

    result = await stage.run(model)

    assert (result.status, result.answer, result.denied) == (RunStatus.OK, "no_permit", 1)


async def test_a_refusal_that_the_recipe_does_not_catch_ends_it_as_denied(stage: Stage) -> None:
    stage.view.answer = refuse
    model = recipe("def main(task):\n    yield Call('files', 'read')\n")

    result = await stage.run(model)

    assert result.status is RunStatus.DENIED
    assert result.error is not None
    assert result.error.code == "E-AUTHORITY-NO-PERMIT"


async def test_calls_side_by_side_bring_values_not_exceptions(stage: Stage) -> None:
    stage.view.answer = refuse_writes
    model = recipe(
        "def main(task):\n"
        "    good, denied, lost = yield (\n"
        "        Call('files', 'read'), Call('files', 'write'), Call('files', 'lose'))\n"
        "    return [good.content.text, denied.error.code, lost.error.code]\n"
    )

    result = await stage.run(model)

    assert result.answer == ["read", "E-AUTHORITY-NO-PERMIT", "E-CALL-GONE"]


async def test_an_empty_list_of_calls_brings_an_empty_list(stage: Stage) -> None:
    model = recipe("def main(task):\n    got = yield []\n    return got\n")

    result = await stage.run(model)

    assert result.answer == []


async def test_notes_become_events_in_their_order_and_on_one_line(stage: Stage) -> None:
    model = recipe(
        "def main(task):\n    yield Note('one\\ntwo')\n    yield Note('\\x1b[31mthree')\n"
    )

    await stage.run(model)

    assert [note.text for note in stage.told(AgentNoted)] == ["one two", "three"]


async def test_a_note_is_cut_at_its_bound(stage: Stage) -> None:
    model = recipe("def main(task):\n    yield Note('x' * 11)\n", note_chars_max=10)

    await stage.run(model)

    assert [note.text for note in stage.told(AgentNoted)] == ["xxxx [cut]"]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("None", "yields nothing"),
        ("'read it'", "yields a str"),
        ("[Call('a', 'b'), 3]", "yields a int among calls"),
        ("Call('a', 'b', [1])", "yields a Call whose arguments is a list, not a dict"),
        ("Call(1, 'b')", "yields a Call whose server is a int, not a str"),
        ("Note(3)", "yields a Note of a int"),
    ],
)
async def test_a_wrong_yield_is_named_with_file_function_and_line(
    stage: Stage, wish: str, said: str
) -> None:
    model = recipe(f"def main(task):\n    x = 1\n    yield {wish}\n")

    result = await stage.run(model)

    assert result.status is RunStatus.FAILED
    assert (error := result.error) is not None
    assert said in error.message
    assert "recipes.py:main" in error.message
    assert error.where == Where(PATH, 4)


async def test_the_line_of_a_wrong_yield_is_the_inner_generators(stage: Stage) -> None:
    model = recipe("def inner():\n    yield 3\ndef main(task):\n    yield from inner()\n")

    result = await stage.run(model)

    assert result.error is not None
    assert result.error.where == Where(PATH, 3)


async def test_an_exception_of_a_recipe_fails_it_with_the_line_it_came_from(stage: Stage) -> None:
    model = recipe(
        "def helper():\n"
        "    return {}['missing']\n"
        "def main(task):\n"
        "    yield Call('files', 'read')\n"
        "    helper()\n"
    )

    result = await stage.run(model)

    assert result.status is RunStatus.FAILED
    assert (error := result.error) is not None
    assert error.message == "the recipe recipes.py:main failed with KeyError"
    assert error.where == Where(PATH, 3)


@pytest.mark.parametrize(
    "raised", ["SystemExit(3)", "RecursionError('deep')", "ValueError('x' * 999)"]
)
async def test_nothing_that_a_recipe_raises_ends_the_host(stage: Stage, raised: str) -> None:
    model = recipe(f"def main(task):\n    yield Note('x')\n    raise {raised}\n")

    result = await stage.run(model)

    assert result.status is RunStatus.FAILED
    assert result.error is not None
    assert len(result.error.why) <= 200


async def test_a_recipe_may_take_as_many_steps_as_the_bound_says(stage: Stage) -> None:
    code = "def main(task):\n    for _ in range({}):\n        yield []\n    return 'done'\n"

    inside = await stage.run(recipe(code.format(5), recipe_steps_max=5))
    past = await stage.run(recipe(code.format(6), recipe_steps_max=5))

    assert inside.answer == "done"
    assert past.error is not None
    assert past.error.code == "E-RECIPE-STEPS"


async def test_notes_between_two_calls_are_bounded(stage: Stage) -> None:
    code = "def main(task):\n    for n in range({}):\n        yield Note(str(n))\n"

    inside = await stage.run(recipe(code.format(3), notes_per_turn_max=3))
    past = await stage.run(recipe(code.format(4), notes_per_turn_max=3))

    assert inside.status is RunStatus.OK
    assert past.error is not None
    assert past.error.code == "E-RECIPE-NOTES"


async def test_calls_at_once_are_bounded(stage: Stage) -> None:
    code = "def main(task):\n    yield [Call('files', 'read') for _ in range({})]\n"

    inside = await stage.run(recipe(code.format(3), calls_per_turn_max=3))
    past = await stage.run(recipe(code.format(4), calls_per_turn_max=3))

    assert inside.status is RunStatus.OK
    assert past.error is not None
    assert past.error.code == "E-RECIPE-CALLS"


async def test_a_recipe_that_ends_early_is_closed_and_heard_no_further(stage: Stage) -> None:
    model = recipe(
        "closed = []\n"
        "def main(task):\n"
        "    try:\n"
        "        yield 3\n"
        "    finally:\n"
        "        task.inputs['closed'].append(True)\n"
        "        yield 'even now'\n"
    )
    closed: list[bool] = []

    result = await stage.run(
        model, task=AgentTask(agent="w", prompt="p", inputs={"closed": closed})
    )

    assert result.status is RunStatus.FAILED
    assert closed == [True]


async def test_dataclasses_inside_a_recipe_work_and_leave_no_module_behind(stage: Stage) -> None:
    code = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass, field\n"
        "import typing\n"
        "@dataclass(slots=True)\n"
        "class Area:\n"
        "    kind: typing.ClassVar[str] = 'area'\n"
        "    files: list[str] = field(default_factory=list)\n"
        "def main(task):\n"
        "    @dataclass\n"
        "    class Late:\n"
        "        area: typing.ClassVar[str] = 'late'\n"
        "    yield []\n"
        "    return [Area(['a']).files, Late.area]\n"
    )
    source = RecipeSource(path=PATH, module="recipe_with_classes", content=code.encode())

    result = await stage.run(load_recipe(source, "main"))

    assert result.answer == [["a"], "late"]
    assert "recipe_with_classes" not in sys.modules


async def test_each_run_of_a_recipe_begins_anew(stage: Stage) -> None:
    model = recipe("def main(task):\n    yield Note('x')\n    return 'again'\n")

    first = await stage.run(model)
    second = await stage.run(model)

    assert (first.answer, second.answer) == ("again", "again")


def _load(code: str, function: str = "main") -> RecipeModel:
    return load_recipe(RecipeSource(path=PATH, module="m", content=code.encode()), function)


def test_a_misspelt_function_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        _load("def historian(task):\n    yield\n", "historan")

    assert caught.value.code == "E-RECIPE-FUNCTION"
    assert caught.value.fix == "did you mean 'historian'?"
    assert str(caught.value.where) == PATH


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("async def main(task):\n    yield\n", "asynchronous"),
        ("async def main(task):\n    pass\n", "asynchronous"),
        ("def main(task):\n    return 1\n", "never yields"),
        ("main = 3\n", "never yields"),
    ],
)
def test_a_recipe_is_a_generator_function(code: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _load(code)


@pytest.mark.parametrize("parameters", ["", "task, other", "*, task"])
def test_a_recipe_takes_the_task_alone(parameters: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(f"def main({parameters}):\n    yield\n")

    assert caught.value.code == "E-RECIPE-SIGNATURE"
    assert caught.value.where == Where(PATH, 1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1\ndef main(:\n", "E-RECIPE-SYNTAX"),
        ("x = 1\nx = 1 / 0\n", "E-RECIPE-LOAD"),
        ("x = 1\nraise SystemExit\n", "E-RECIPE-LOAD"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_an_error_with_its_line(code: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(code)

    assert caught.value.code == expected
    assert caught.value.where == Where(PATH, 2)


def test_a_file_that_cannot_be_decoded_is_an_error() -> None:
    source = RecipeSource(path=PATH, module="m", content=b"x = '\xff'\n")

    with pytest.raises(ConfigError) as caught:
        load_recipe(source, "main")

    assert caught.value.code == "E-RECIPE-SYNTAX"


def test_a_recipes_file_is_bounded() -> None:
    content = b"def main(task):\n    yield\n"
    source = RecipeSource(path=PATH, module="m", content=content)
    bounds = AgentLimits(recipe_bytes_max=len(content))

    load_recipe(source, "main", bounds=bounds)
    with pytest.raises(ConfigError) as caught:
        load_recipe(replace(source, content=content + b"#"), "main", bounds=bounds)

    assert caught.value.code == "E-RECIPE-SIZE"


async def test_others_go_on_between_calls_that_are_answered_without_a_wait() -> None:
    async def at_once(call: Call) -> UntrustedContent:
        return text_of(call, "ok")

    told: list[str] = []
    stage = Stage(view=ScriptedView(answer=at_once))
    model = recipe(
        "def main(task):\n"
        "    for number in range(3):\n"
        "        yield Call('files', 'read')\n"
        "        task.inputs['told'].append(task.agent)\n"
    )

    async def work(name: str) -> None:
        await stage.run(model, task=AgentTask(agent=name, prompt="p", inputs={"told": told}))

    async with anyio.create_task_group() as group:
        group.start_soon(work, "a")
        group.start_soon(work, "b")

    assert told not in (["a"] * 3 + ["b"] * 3, ["b"] * 3 + ["a"] * 3)
    assert sorted(told) == ["a"] * 3 + ["b"] * 3
