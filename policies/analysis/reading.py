"""What rules look at: every test and fact of theirs, by what it is about. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from policies.evaluation import tests_of
from policies.model import (
    After,
    AnyArgument,
    Argument,
    Before,
    Check,
    DigestIs,
    Elements,
    Fact,
    Hint,
    HintName,
    Left,
    Metered,
    Never,
    OnlyArguments,
    Rule,
    Test,
    TimeOfDay,
    UriPart,
    Weekday,
    Who,
)

__all__ = ["Looked", "looked_at"]


@dataclass(slots=True)
class Looked:
    """What some rules look at besides the name of what is asked for."""

    who: list[Who] = field(default_factory=list[Who])
    arguments: dict[tuple[str, ...], list[Check]] = field(
        default_factory=dict[tuple[str, ...], list[Check]]
    )
    elements: dict[tuple[str, ...], list[Check]] = field(
        default_factory=dict[tuple[str, ...], list[Check]]
    )
    anywhere: list[Check] = field(default_factory=list[Check])
    left: dict[Metered, list[Check]] = field(default_factory=dict[Metered, list[Check]])
    labels: list[After] = field(default_factory=list[After])
    hints: set[HintName] = field(default_factory=set[HintName])
    digests: list[DigestIs] = field(default_factory=list[DigestIs])
    moments: list[TimeOfDay | Weekday | Before] = field(
        default_factory=list[TimeOfDay | Weekday | Before]
    )
    others: bool = False
    """True if it matters whether there is an argument that no rule names."""
    beside: bool = False
    """True if it matters whether there is one beside an inner one that a rule names."""
    parts: bool = False
    """True if parts of a URI are looked at."""

    def note(self, leaf: Test | Fact) -> None:
        """Sort one test or fact in."""
        match leaf:
            case Test():
                self._note_test(leaf)
            case After():
                self.labels.append(leaf)
            case Hint():
                self.hints.add(leaf.name)
            case DigestIs():
                self.digests.append(leaf)
            case OnlyArguments():
                self.others = True
                for pointer in leaf.pointers:
                    self.arguments.setdefault(pointer.keys, [])
                    self.beside = self.beside or len(pointer.keys) > 1
            case TimeOfDay() | Weekday() | Before():
                self.moments.append(leaf)

    def _note_test(self, test: Test) -> None:
        match test.operand:
            case Argument():
                self.arguments.setdefault(test.operand.pointer.keys, []).append(test.check)
            case Elements():
                self.elements.setdefault(test.operand.pointer.keys, []).append(test.check)
            case AnyArgument():
                self.anywhere.append(test.check)
                self.others = True
            case Left():
                self.left.setdefault(test.operand.metered, []).append(test.check)
            case UriPart():
                self.parts = True


def looked_at(rules: Iterable[Rule | Never]) -> Looked:
    """Return what these rules look at, together."""
    looked = Looked()
    for rule in rules:
        looked.who.append(rule.who)
        if rule.condition is not None:
            for leaf in tests_of(rule.condition):
                looked.note(leaf)
    return looked
