"""Who needs whom: generations of a graph, or the circle in it. Knows names only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["CycleError", "generations"]


class CycleError(Exception):
    """Some need one another in a circle. `names` are its members; the last needs the first."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("a circle: " + " needs ".join((*names, names[0])))
        self.names = names


def generations(needs: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the names in generations, each needing only names of earlier ones.

    Within a generation they stand in the order of `needs`. Every needed name is a key of it.
    Raises CycleError.
    """
    # Not at the top: it takes 400 ms, and most commands draw no graph.
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(needs)
    graph.add_edges_from(
        (name, before) for name, all_before in needs.items() for before in all_before
    )
    position = {name: number for number, name in enumerate(needs)}
    cycle = next(nx.simple_cycles(graph), None)
    if cycle is not None:
        first = min(range(len(cycle)), key=lambda at: position[cycle[at]])
        raise CycleError((*cycle[first:], *cycle[:first]))
    return tuple(
        tuple(sorted(layer, key=position.__getitem__))
        for layer in nx.topological_generations(graph.reverse(copy=False))
    )
