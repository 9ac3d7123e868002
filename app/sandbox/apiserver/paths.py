"""Object paths: ``/apis/<group>/<version>/namespaces/<ns>/<plural>/<name>/<subresource>``."""

from __future__ import annotations

from urllib.parse import unquote

from app.sandbox.apiserver.registry import Registry
from app.sandbox.apiserver.target import Target

_NAMESPACE_SUBRESOURCES = frozenset({"status"})


def parse_target(registry: Registry, path: str) -> Target | None:
    """What a path is about; None when no such kind is served or the path is no object's."""
    steps = [unquote(step) for step in path.strip("/").split("/")]
    match steps:
        case ["api", version, *rest] if rest:
            return _target(registry, "", version, rest=rest)
        case ["apis", group, version, *rest] if rest:
            return _target(registry, group, version, rest=rest)
        case _:
            return None


def _target(registry: Registry, group: str, version: str, *, rest: list[str]) -> Target | None:
    namespace = ""
    inside = len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES
    if rest[0] == "namespaces" and inside:
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        return None
    if kind.namespaced and name and not namespace:
        return None
    return Target(kind=kind, namespace=namespace, name=name, subresource=subresource)
