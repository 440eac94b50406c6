"""Which rules are about something: found by operation, server and name, not by asking all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies.evaluation.ready import Entry, Made, Maybe, kind_fits
from policies.model import Operation, Principal, Resource, Rule

__all__ = ["Index", "index_of"]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Rules for one operation and server: by exact name, by how a name begins, and the rest."""

    exact: Mapping[str, tuple[Entry, ...]]
    beginning: tuple[tuple[int, Mapping[str, tuple[Entry, ...]]], ...]
    tried: tuple[Entry, ...]

    def candidates(self, name: str) -> Sequence[Entry]:
        """Return the rules whose names may match."""
        found = self.exact.get(name, ())
        for length, prefixes in self.beginning:
            entries = prefixes.get(name[:length])
            if entries is not None:
                found += entries
        return found + self.tried if self.tried else found


@dataclass(frozen=True, slots=True)
class Index:
    """All rules of a set."""

    named: Mapping[tuple[Operation, str], _Shelf]
    anywhere: Mapping[Operation, _Shelf]

    def speaking(
        self, principal: Principal, action: Operation, resource: Resource
    ) -> tuple[Maybe, ...]:
        """Return the rules about this, whatever their conditions say."""
        name, role = resource.name, principal.role
        found: list[Maybe] = []
        several = False
        for shelf in (self.named.get((action, resource.server)), self.anywhere.get(action)):
            if shelf is None:
                continue
            # the hot loop: the cheapest question first
            for entry in shelf.candidates(name):
                if entry.roles is not None and role not in entry.roles:
                    continue
                match = entry.matches(name)
                if (
                    match is False
                    or (entry.fits is not None and not entry.fits(principal))
                    or not kind_fits(entry.kind, resource.kind)
                ):
                    continue
                maybe = entry.known if match is True else entry.unknown
                found.append(maybe)
                several = several or len(maybe.ready.rule.targets) > 1
        return _once_each(found) if several else tuple(found)

    def about(self, action: Operation, resource: Resource) -> tuple[Rule, ...]:
        """Return the rules about this, whoever asks; each once."""
        found: dict[str, Rule] = {}
        for shelf in (self.named.get((action, resource.server)), self.anywhere.get(action)):
            for entry in shelf.candidates(resource.name) if shelf is not None else ():
                if entry.matches(resource.name) is True and kind_fits(entry.kind, resource.kind):
                    rule = entry.known.ready.rule
                    found[rule.id] = rule
        return tuple(found.values())


def index_of(made: Iterable[Made]) -> Index:
    """Sort rules by what they are about."""
    named: dict[tuple[Operation, str], list[Made]] = {}
    anywhere: dict[Operation, list[Made]] = {}
    for target, entry in made:
        for operation in entry.known.ready.rule.operations:
            if target.servers is None:
                anywhere.setdefault(operation, []).append((target, entry))
                continue
            for server in target.servers:
                named.setdefault((operation, server), []).append((target, entry))
    return Index(
        {key: _shelf(found) for key, found in named.items()},
        {key: _shelf(found) for key, found in anywhere.items()},
    )


def _shelf(made: Iterable[Made]) -> _Shelf:
    exact: dict[str, list[Entry]] = {}
    beginning: dict[int, dict[str, list[Entry]]] = {}
    tried: list[Entry] = []
    for target, entry in made:
        names = target.names
        if names.by_segment:
            tried.append(entry)
            continue
        prefixes = {name.partition("*")[0] for name in names.alternatives if "*" in name}
        for name in names.alternatives:
            if "*" not in name and not any(name.startswith(prefix) for prefix in prefixes):
                exact.setdefault(name, []).append(entry)
        if "" in prefixes:
            tried.append(entry)
            continue
        # an alternative that begins as another does would find the entry twice
        for prefix in prefixes:
            if not any(prefix != other and prefix.startswith(other) for other in prefixes):
                beginning.setdefault(len(prefix), {}).setdefault(prefix, []).append(entry)
    return _Shelf(
        {name: tuple(found) for name, found in exact.items()},
        tuple(
            (length, {prefix: tuple(found) for prefix, found in prefixes.items()})
            for length, prefixes in sorted(beginning.items())
        ),
        tuple(tried),
    )


def _once_each(found: Iterable[Maybe]) -> tuple[Maybe, ...]:
    """Return each rule once: several of its targets may be about the same, and one may know the name."""
    kept: dict[int, Maybe] = {}
    for maybe in found:
        key = id(maybe.ready)
        if key not in kept or (maybe.name_known and not kept[key].name_known):
            kept[key] = maybe
    return tuple(kept.values())
