"""Functions that make the values of a dataclass: for what is made at each call, turn or agent. Know no class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final, ParamSpec, TypeVar, cast

__all__ = ["maker"]

P = ParamSpec("P")
T = TypeVar("T")

_UNSET: Final = object()


def maker(kind: Callable[P, T]) -> Callable[P, T]:
    """Return a function that does what calling a dataclass by keywords does.

    The keywords of a call to a class go through two dictionaries before they are there, those of a call
    to a function through none: with ten of them the function takes a third of the time.

    Raises TypeError for what is no dataclass, is frozen at run time, or does more than set its fields.
    """
    made = cast("Any", kind)
    if not is_dataclass(made) or hasattr(made, "__post_init__") or _is_frozen(made):
        message = f"{kind!r} is not made by setting its fields"
        raise TypeError(message)
    known: dict[str, object] = {"_new": object.__new__, "_kind": made, "_unset": _UNSET}
    parameters: list[str] = []
    steps = ["made = _new(_kind)"]
    for field in fields(made):
        default = _default(field, known)
        value = default
        if field.init:
            parameters.append(field.name if default is None else f"{field.name}=_unset")
            value = field.name
            if default is not None:
                value = f"{default} if {field.name} is _unset else {field.name}"
        steps.append(f"made.{field.name} = {value}")
    body = "\n    ".join([*steps, "return made"])
    # names of fields and nothing else, as in the module `dataclasses` itself
    exec(f"def make(*, {', '.join(parameters)}):\n    {body}", known)  # noqa: S102
    return cast("Callable[P, T]", known["make"])


def _default(field: Field[Any], known: dict[str, object]) -> str | None:
    """Return what stands for a field that is not given; None where it has to be."""
    name = f"_{field.name}_unless_given"
    if field.default is not MISSING:
        known[name] = field.default
        return name
    if field.default_factory is not MISSING:
        known[name] = field.default_factory
        return f"{name}()"
    return None


def _is_frozen(made: Any) -> bool:  # noqa: ANN401 - any dataclass
    return bool(made.__dataclass_params__.frozen)
