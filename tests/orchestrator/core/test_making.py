"""What makes values of a dataclass makes what the class would, and refuses what it could not make whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from orchestrator.core.making import maker


@dataclass(slots=True, kw_only=True)
class Parcel:
    name: str
    weight: int = 1
    labels: list[str] = field(default_factory=list[str])
    opened: bool = field(default=False, init=False)
    notes: list[str] = field(default_factory=list[str], init=False)


@dataclass(slots=True, kw_only=True)
class Crate(Parcel):
    inside: Parcel | None = None


@dataclass(frozen=True)
class Sealed:
    name: str


@dataclass
class Weighed:
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.strip()


class Plain:
    pass


def test_it_makes_what_the_class_makes() -> None:
    make = maker(Parcel)

    assert make(name="a") == Parcel(name="a")
    assert make(name="a", weight=2, labels=["x"]) == Parcel(name="a", weight=2, labels=["x"])
    assert type(make(name="a")) is Parcel


def test_what_a_class_has_from_another_is_set_too() -> None:
    inside = Parcel(name="b")

    assert maker(Crate)(name="a", inside=inside) == Crate(name="a", inside=inside)


def test_each_value_has_defaults_of_its_own() -> None:
    make = maker(Parcel)
    one, other = make(name="a"), make(name="b")

    one.labels.append("x")
    one.notes.append("y")

    assert (other.labels, other.notes) == ([], [])


def test_what_is_missing_or_unknown_is_refused_as_by_the_class() -> None:
    make = maker(Parcel)

    with pytest.raises(TypeError, match="name"):
        make()  # pyright: ignore[reportCallIssue]  # what is refused
    with pytest.raises(TypeError, match="opened"):
        make(name="a", opened=True)  # pyright: ignore[reportCallIssue]  # what is refused


@pytest.mark.parametrize("kind", [Sealed, Weighed, Plain])
def test_a_class_that_is_not_made_by_setting_its_fields_is_refused(kind: type[object]) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        maker(kind)
