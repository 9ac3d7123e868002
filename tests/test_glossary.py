"""Module and class names use the words of the field: none that the glossary replaces.

The glossary is in the contract of the project; the words here are those of its left column, and
those that meant several things at once.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import app

ROOT = Path(app.__file__).parent

INSIDE_A_NAME = {
    "room": "node usage, free or idle",
    "rooms": "node usage",
    "promise": "reservation",
    "promises": "reservations",
    "roster": "placed pods",
    "resident": "placed pod",
    "residents": "placed pods",
    "choosy": "pods with rules",
    "stranger": "foreign member",
    "strangers": "foreign members",
    "awaited": "owners to ask",
    "giving": "victims of shortage",
    "showing": "queue-allocation gate",
    "lending": "borrowing",
    "relief": "give-back over limit",
    "allowance": "equal pods",
    "approval": "allowed victims",
    "approvals": "allowed victims",
    "standing": "binding check, or queue share",
    "basis": "snapshot token",
    "utils": "what it is about",
    "manager": "what it does",
}
"""Word -> what to say."""
WHOLE_NAME = {
    "kind": "whose kind",
    "change": "a change of what",
    "place": "reservation, or a place of what",
    "hold": "cool-down, barrier, or block",
    "following": "affinity followers",
    "company": "affinity followers",
    "hints": "placement hints",
    "tries": "candidate order",
}
"""Names that say nothing by themselves."""
THE_FIELDS = frozenset({"NominatedRoom", "nominated_room"})
"""The glossary's own: room that a nomination keeps."""


def names() -> Iterator[tuple[str, str]]:
    """Every module, package and class of ``app``, and where it is."""
    for path in sorted(ROOT.rglob("*.py")):
        where = str(path.relative_to(ROOT.parent))
        yield where, path.parent.name if path.name == "__init__.py" else path.stem
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield f"{where}:{node.lineno}", node.name


def words(name: str) -> list[str]:
    """``_NodeUsage`` and ``node_usage`` are both node, usage."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip("_"))
    return [word for word in apart.lower().split("_") if word]


def test_no_module_or_class_has_a_word_that_the_glossary_replaces() -> None:
    found = [
        f"{where}: {name}: say {INSIDE_A_NAME[word]}"
        for where, name in names()
        if name not in THE_FIELDS
        for word in words(name)
        if word in INSIDE_A_NAME
    ]
    assert not found


def test_no_module_or_class_has_a_name_that_says_nothing() -> None:
    found = [
        f"{where}: {name}: say {WHOLE_NAME[alone]}"
        for where, name in names()
        if (alone := name.strip("_").lower()) in WHOLE_NAME
    ]
    assert not found


@pytest.mark.parametrize(
    ("name", "apart"),
    [("_NodeUsage", ["node", "usage"]), ("node_usage", ["node", "usage"]), ("PDB2", ["pdb2"])],
)
def test_names_are_taken_apart(name: str, apart: list[str]) -> None:
    assert words(name) == apart
