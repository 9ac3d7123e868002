"""Members and signals change by one door: no other module assigns what they are made of."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import app
from app.cache.gangs.members import Member
from app.cache.gangs.signals import Signals

ROOT = Path(app.__file__).parent
PACKAGES = ("api", "cache", "main", "service")
OF_A_MEMBER = {each.name for each in fields(Member)}
OF_SIGNALS = {each.name for each in fields(Signals)}
DOORS = {
    "cache/decisions.py": OF_A_MEMBER,
    "cache/gangs/groups.py": {"part"},  # what a group counts a member for
    "cache/gangs/registry.py": {"task"},  # as long as the axis is, which just grew
    "service/calls/front_reservations.py": {"lost"},  # of a change for the front
}
CHANGES = {"add", "update", "discard", "remove", "clear", "pop", "difference_update"}


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes that are assigned or deleted, but those of ``self``."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store | ast.Del)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        ):
            yield node


def is_signals(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "signals") or (
        isinstance(node, ast.Attribute) and node.attr.lstrip("_") == "signals"
    )


def changes_of_sets(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Calls such as ``signals.groups.add``."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of = node.func.value
        if node.func.attr in CHANGES and isinstance(of, ast.Attribute) and is_signals(of.value):
            yield of


def trespasses(source: str, *, may: set[str]) -> list[str]:
    """What the module changes of members and signals, and may not."""
    tree = ast.parse(source)
    members = (each for each in assigned(tree) if each.attr in OF_A_MEMBER - may)
    signals = (each for each in assigned(tree) if is_signals(each.value))
    found = {*members, *signals, *changes_of_sets(tree)}
    return sorted(f"line {each.lineno}: {ast.unparse(each)}" for each in found)


MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
)


@pytest.mark.parametrize("package", PACKAGES)
def test_members_and_signals_change_by_one_door(package: str) -> None:
    found = {
        module: wrong
        for module in MODULES
        if module.startswith(f"{package}/")
        and (wrong := trespasses((ROOT / module).read_text(), may=DOORS.get(module, set())))
    }
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "member.since = now",
        "member.stage, member.node = stage, node",
        "members[uid].missed += 1",
        "self._cache.signals.dirty = True",
        "signals.overfull |= True",
        "cache.signals.groups |= more",
        "self._signals.groups.add(key)",
        "del member.story",
    ],
)
def test_a_change_elsewhere_is_found(source: str) -> None:
    assert trespasses(source, may=set())


def test_what_is_of_something_else_is_not() -> None:
    assert not trespasses("self.since = now\ngroup.version += 1\nseen.groups.add(key)", may=set())
