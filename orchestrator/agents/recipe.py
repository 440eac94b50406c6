"""Recipes: a generator function of a project's file as a deterministic model. Opens no file, trusts none.

Reading the file and approving its digest are the session's; here its bytes are compiled and run.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Final, Protocol, Self, cast

import anyio.lowlevel

from orchestrator.agents.errors import RecipeError
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import (
    RECIPE_PROVIDER,
    AgentTask,
    Call,
    CallResult,
    Note,
    RequestGate,
    ToolSpec,
    Turn,
)
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, RemitError, Where
from orchestrator.core.making import maker
from orchestrator.core.nearest import did_you_mean

__all__ = ["RecipeModel", "RecipeSource", "load_recipe", "recipe"]

_BOUNDS: Final = AgentLimits()
_EXCEPTION_CHARS_MAX: Final = 200
"""An exception's own text may hold a server's."""

Steps = Generator[object, object, object]
_new_turn: Final = maker(Turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSource:
    """A recipe's file, read and approved.

    `path` is its real path, for errors and tracebacks; `module` the name that its code sees as
    `__name__`, different for different content.
    """

    path: str
    module: str
    content: bytes


def load_recipe(
    source: RecipeSource, function: str, *, bounds: AgentLimits = _BOUNDS
) -> RecipeModel:
    """Compile a recipe's file, run it once in a module of its own, and return its model.

    The function takes the `AgentTask` and is a generator function. It yields

    - `Call(server, tool, arguments)` and receives the result, an `UntrustedContent`. What denied,
      refused or failed the call is thrown into it, an `AuthorityError` or a `CallFailedError`;
    - a list or tuple of calls, made side by side, and receives a list of `CallResult` in their
      order, each with its content or its error; nothing is thrown;
    - `Note(text)`, a line of progress, and receives None;

    and returns the answer, made of plain JSON values. It runs in the event loop's thread.

    Raises:
        ConfigError: the file cannot be compiled or run, or has no such generator function.
    """
    if len(source.content) > bounds.recipe_bytes_max:
        raise ConfigError(
            f"the recipe has {len(source.content)} bytes, at most {bounds.recipe_bytes_max} are read",
            code="E-RECIPE-SIZE",
            where=Where(source.path),
        )
    module = _executed(source)
    found: object = vars(module).get(function)
    if not isinstance(found, FunctionType) or not inspect.isgeneratorfunction(found):
        raise _no_such_function(source, function, module, found)
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise ConfigError(
            f"the recipe {function!r} cannot be called with the task alone",
            code="E-RECIPE-SIGNATURE",
            fix=f"write `def {function}(task):`; inputs are in `task.inputs`",
            where=Where(source.path, found.__code__.co_firstlineno),
        ) from None
    steps = cast("Callable[[AgentTask], Steps]", found)
    return RecipeModel(
        name=f"{PurePath(source.path).name}:{function}",
        start=steps,
        path=source.path,
        module=module,
        bounds=bounds,
    )


def recipe(steps: Callable[[AgentTask], Steps]) -> RecipeModel:
    """Return a program's own generator function as a model; it yields as `load_recipe` says.

    Nobody approves it: it is code of the program that calls this. Raises ConfigError if it is no
    generator function.
    """
    if not isinstance(steps, FunctionType) or not inspect.isgeneratorfunction(steps):
        raise ConfigError(
            "a recipe is a generator function: it yields Call(server, tool, arguments)",
            code="E-RECIPE-FUNCTION",
        )
    name = steps.__module__
    return RecipeModel(
        name=steps.__qualname__,
        start=steps,
        path=steps.__code__.co_filename,
        module=None if name in sys.modules else ModuleType(name),
        bounds=_BOUNDS,
    )


class RecipeModel:
    """A `Model` whose turns come from a recipe. It sends nothing to anybody and costs nothing.

    `module` is put in its place while the recipe runs; None where it is there anyway.
    """

    provider = RECIPE_PROVIDER

    def __init__(
        self,
        *,
        name: str,
        start: Callable[[AgentTask], Steps],
        path: str,
        module: ModuleType | None,
        bounds: AgentLimits,
    ) -> None:
        self.name = name
        self._start = start
        self._path = path
        self._module = module
        self._bounds = bounds

    def converse(self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate) -> _RecipeRun:
        """Begin the recipe from its start; leaving the context closes its generator."""
        started = self._start(task)
        steps = started if self._module is None else _InPlace(started, self._module)
        return _RecipeRun(self.name, steps, self._path, self._bounds)


class _RecipeRun:
    __slots__ = ("_alone", "_bounds", "_name", "_over", "_path", "_steps", "_taken")

    def __init__(self, name: str, steps: _Stepped, path: str, bounds: AgentLimits) -> None:
        self._name = name
        self._steps = steps
        self._path = path
        self._bounds = bounds
        self._taken = 0
        self._alone = False
        self._over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._over:
            return
        # The agent has ended already: what the recipe says about it now is heard by nobody.
        with suppress(Exception):
            self._steps.close()

    async def next(self, results: Sequence[CallResult]) -> Turn:
        """Hand over results, and step until the recipe wants calls or returns."""
        # others go on first. It costs less than it saves: who does the same one after the other finds
        # the code of it in the processor's caches
        await anyio.lowlevel.checkpoint()
        return self._turn(results)

    def _turn(self, results: Sequence[CallResult]) -> Turn:
        reply: object = None
        failure: RemitError | None = None
        if self._alone and results:
            reply, failure = results[0].content, results[0].error
        elif self._taken:
            reply = list(results)
        notes: list[str] = []
        while True:
            try:
                wish = self._step(reply, failure)
            except StopIteration as stop:
                self._over = True
                return _new_turn(notes=tuple(notes), answer=stop.value, done=True)
            reply, failure = None, None
            if isinstance(wish, Note):
                notes.append(self._note(wish, len(notes)))
                continue
            calls = self._calls(wish)
            self._alone = isinstance(wish, Call)
            if calls:
                return _new_turn(calls=calls, notes=tuple(notes))
            reply = list[CallResult]()

    def _step(self, reply: object, failure: RemitError | None) -> object:
        self._taken += 1
        if self._taken > self._bounds.recipe_steps_max + 1:  # the return is no step
            raise self._error(
                f"more than {self._bounds.recipe_steps_max} steps", code="E-RECIPE-STEPS"
            )
        try:
            if failure is not None:
                return self._steps.throw(failure)
            return self._steps.send(reply)
        except (StopIteration, RemitError):
            raise
        except (Exception, SystemExit) as error:
            raise self._broken(error) from error  # somebody else's code may raise anything

    def _note(self, note: Note, before: int) -> str:
        if not isinstance(cast("object", note.text), str):
            raise self._wrong(f"a Note of a {type(note.text).__name__}")
        if before >= self._bounds.notes_per_turn_max:
            raise self._error(
                f"more than {self._bounds.notes_per_turn_max} notes between two calls",
                code="E-RECIPE-NOTES",
            )
        return safe_line(note.text, chars_max=self._bounds.note_chars_max)

    def _calls(self, wish: object) -> tuple[Call, ...]:
        if isinstance(wish, Call):
            return (self._checked(wish),)
        if not isinstance(wish, list | tuple):
            raise self._wrong("nothing" if wish is None else f"a {type(wish).__name__}")
        wishes = cast("Sequence[object]", wish)
        if len(wishes) > self._bounds.calls_per_turn_max:
            raise self._error(
                f"{len(wishes)} calls at once, at most {self._bounds.calls_per_turn_max}",
                code="E-RECIPE-CALLS",
                fix="yield them in parts",
            )
        return tuple(self._checked(item) for item in wishes)

    def _checked(self, wish: object) -> Call:
        if not isinstance(wish, Call):
            raise self._wrong(f"a {type(wish).__name__} among calls")
        fields: tuple[tuple[str, object, type], ...] = (
            ("server", wish.server, str),
            ("tool", wish.tool, str),
            ("arguments", wish.arguments, dict),
        )
        for name, value, kind in fields:
            if not isinstance(value, kind):
                raise self._wrong(
                    f"a Call whose {name} is a {type(value).__name__}, not a {kind.__name__}"
                )
        return wish

    def _wrong(self, what: str) -> RecipeError:
        return self._error(
            f"yields {what}",
            code="E-RECIPE-YIELD",
            fix="yield Call(server, tool, arguments), a list of them, or Note(text)",
        )

    def _error(self, what: str, *, code: str, fix: str = "") -> RecipeError:
        """Make an error about the yield at which the recipe stands."""
        return RecipeError(
            f"the recipe {self._name} {what}", code=code, fix=fix, where=self._place()
        )

    def _place(self) -> Where:
        steps: object = self._steps
        if isinstance(steps, _InPlace):
            steps = steps.generator
        line = 0
        while inspect.isgenerator(steps) and steps.gi_frame is not None:
            if steps.gi_code.co_filename == self._path:
                line = steps.gi_frame.f_lineno
            steps = steps.gi_yieldfrom
        return Where(self._path, line)

    def _broken(self, error: BaseException) -> RecipeError:
        return RecipeError(
            f"the recipe {self._name} failed with {type(error).__name__}",
            code="E-RECIPE-FAILED",
            why=safe_line(str(error), chars_max=_EXCEPTION_CHARS_MAX),
            where=_raised_at(error, self._path),
        )


def _executed(source: RecipeSource) -> ModuleType:
    module = ModuleType(source.module)
    module.__file__ = source.path
    try:
        code = compile(source.content, source.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ConfigError(
            f"the recipe is not Python: {safe_line(text, chars_max=_EXCEPTION_CHARS_MAX)}",
            code="E-RECIPE-SYNTAX",
            where=Where(source.path, line),
        ) from None
    try:
        with _Present(module):
            exec(code, vars(module))  # noqa: S102 - approved by its digest before it gets here
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the recipe cannot be loaded: {type(error).__name__}",
            code="E-RECIPE-LOAD",
            why=safe_line(str(error), chars_max=_EXCEPTION_CHARS_MAX),
            where=_raised_at(error, source.path),
        ) from error
    return module


class _Present:
    """A module in the place of whatever has its name, while its code runs: dataclasses look there."""

    __slots__ = ("_before", "_module")

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._before: ModuleType | None = None

    def __enter__(self) -> None:
        name = self._module.__name__
        self._before = sys.modules.get(name)
        sys.modules[name] = self._module

    def __exit__(self, *_: object) -> None:
        name = self._module.__name__
        if self._before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = self._before


class _Stepped(Protocol):
    """What a recipe's run asks of its generator."""

    def send(self, value: object, /) -> object: ...

    def throw(self, error: BaseException, /) -> object: ...

    def close(self) -> None: ...


class _InPlace:
    """The steps of a recipe whose module nobody finds by its name, except while they run."""

    __slots__ = ("_module", "generator")

    def __init__(self, generator: Steps, module: ModuleType) -> None:
        self.generator = generator
        self._module = module

    def send(self, value: object, /) -> object:
        with _Present(self._module):
            return self.generator.send(value)

    def throw(self, error: BaseException, /) -> object:
        with _Present(self._module):
            return self.generator.throw(error)

    def close(self) -> None:
        with _Present(self._module):
            self.generator.close()


def _no_such_function(
    source: RecipeSource, function: str, module: ModuleType, found: object
) -> ConfigError:
    recipes = [name for name, value in vars(module).items() if inspect.isgeneratorfunction(value)]
    if found is None:
        message = f"the recipe's file has no function {function!r}"
    elif inspect.isasyncgenfunction(found) or inspect.iscoroutinefunction(found):
        message = f"{function!r} is asynchronous; a recipe is a plain generator function"
    else:
        message = f"{function!r} is no generator function: it never yields"
    line = found.__code__.co_firstlineno if isinstance(found, FunctionType) else 0
    return ConfigError(
        message,
        code="E-RECIPE-FUNCTION",
        fix=did_you_mean(function, recipes),
        where=Where(source.path, line),
    )


def _raised_at(error: BaseException, path: str) -> Where:
    """Return the innermost line of the recipe's own file that `error` went through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 0 for frame in frames if frame.filename == path]
    return Where(path, lines[-1] if lines else 0)
