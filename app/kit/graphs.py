"""Directed graphs of names, as dependencies form them."""

from collections.abc import Iterable, Mapping


def undefined(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Targets that are no vertices, each once."""
    return list(dict.fromkeys(t for targets in edges.values() for t in targets if t not in edges))


def on_cycles(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Vertices from which there is no way out of a cycle: empty for an acyclic graph.

    Vertices all of whose targets are taken away already are taken away, until none is left (Kahn).
    """
    left = {vertex: {t for t in targets if t in edges} for vertex, targets in edges.items()}
    sources: dict[str, list[str]] = {vertex: [] for vertex in left}
    for vertex, targets in left.items():
        for target in targets:
            sources[target].append(vertex)
    free = [vertex for vertex, targets in left.items() if not targets]
    while free:
        done = free.pop()
        del left[done]
        for vertex in sources[done]:
            left[vertex].discard(done)
            if not left[vertex]:
                free.append(vertex)
    return list(left)
