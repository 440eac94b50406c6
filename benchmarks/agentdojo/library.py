"""AgentDojo's suites, as this benchmark uses them: tasks, calls and environments. Decides nothing.

The package is loaded when it is needed, since it lives in an environment of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

__all__ = ["VERSION", "Step", "Suite", "Task", "World", "as_json", "suites"]

VERSION = "v1.2.2"


class Task(Protocol):
    """A user's task, or an injection's."""

    ID: str
    PROMPT: str
    GOAL: str
    GROUND_TRUTH_OUTPUT: str

    def init_environment(self, environment: Any) -> Any:  # noqa: ANN401
        """Prepare the environment for this task."""
        ...

    def ground_truth(self, pre_environment: Any) -> Sequence[Any]:  # noqa: ANN401
        """Return the calls that do it."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One call: a tool and its arguments."""

    tool: str
    arguments: Mapping[str, object]


class World:
    """One environment, in which tools are run."""

    def __init__(self, suite: Suite, environment: Any) -> None:  # noqa: ANN401
        self.environment = environment
        self.before = environment.model_copy(deep=True)
        self.done: list[Step] = []
        self._suite = suite

    def run(self, step: Step) -> str:
        """Run a tool and return its result as text. Raises RuntimeError with the tool's error."""
        runtime = self._suite.runtime
        result, error = runtime.run_function(self.environment, step.tool, dict(step.arguments))
        if error is not None:
            raise RuntimeError(str(error))
        self.done.append(step)
        return str(self._suite.text_of(result))

    def changed(self) -> bool:
        """Return True if anything is different from how it began."""
        return bool(self.environment.model_dump() != self.before.model_dump())


class Suite:
    """One suite of the benchmark."""

    def __init__(self, name: str, suite: Any) -> None:  # noqa: ANN401
        calls = import_module("agentdojo.functions_runtime")
        self.name = name
        self.runtime = calls.FunctionsRuntime(suite.tools)
        self.text_of = import_module("agentdojo.agent_pipeline.tool_execution").tool_result_to_str
        self._content = import_module("agentdojo.types").text_content_block_from_string
        self._call = calls.FunctionCall
        self._suite = suite

    @property
    def tools(self) -> Mapping[str, tuple[str, Mapping[str, object]]]:
        """Each tool's description and input schema."""
        return {
            tool.name: (tool.description, tool.parameters.model_json_schema())
            for tool in self._suite.tools
        }

    @property
    def users(self) -> Mapping[str, Task]:
        """The users' tasks."""
        return self._suite.user_tasks

    @property
    def injections(self) -> Mapping[str, Task]:
        """The injections' tasks."""
        return self._suite.injection_tasks

    def world(self, user: Task, canary: str = "") -> World:
        """Return the environment of a task; with a canary, behind each text that others can write."""
        defaults = self._suite.get_injection_vector_defaults()
        planted = {name: f"{text} {canary}" for name, text in defaults.items()} if canary else {}
        environment = self._suite.load_and_inject_default_environment(planted)
        return World(self, user.init_environment(environment))

    def solution(self, task: Task, world: World) -> tuple[Step, ...]:
        """Return the calls that solve a task, by the benchmark's own word."""
        calls = task.ground_truth(world.before.model_copy(deep=True))
        return tuple(Step(call.function, dict(call.args)) for call in calls)

    def reached(self, task: Task, world: World, said: str) -> bool:
        """Return True if the benchmark's check finds that a task's goal was reached."""
        traces = [self._call(function=step.tool, args=dict(step.arguments)) for step in world.done]
        # the one way to both kinds of checks, those of traces and those of environments
        check = self._suite._check_task_result  # noqa: SLF001
        return bool(check(task, [self._content(said)], world.before, world.environment, traces))


def suites(names: Iterable[str] = ()) -> tuple[Suite, ...]:
    """Return the suites, or those that are named."""
    found: Mapping[str, Any] = import_module("agentdojo.task_suite.load_suites").get_suites(VERSION)
    wanted = tuple(names) or tuple(found)
    return tuple(Suite(name, found[name]) for name in wanted)


def as_json(value: Any) -> object:  # noqa: ANN401
    """Return a value as JSON has it: enums by their values, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value if value is None or isinstance(value, str | int | float) else str(value)
