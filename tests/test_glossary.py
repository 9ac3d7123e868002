"""Names and docstrings use the words of the field: none that the glossary replaces.

The glossary is in the contract of the project; the words here are those of its left column, and
those that meant several things at once. A docstring names its subject, too: it begins with no
pronoun, and calls no pod, group or queue nobody, somebody or whoever.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
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
    "standings": "queue shares",
    "hold": "cool-down, barrier, or block",
    "following": "affinity followers",
    "company": "affinity followers",
    "hints": "placement hints",
    "tries": "candidate order",
}
"""Names that say nothing by themselves."""
STANDS_FOR_NONE = re.compile(
    r"\b(nobody|somebody|whoever|anybody|everybody|anyone|someone|everyone|no one|who|whom)\b", re.I
)
"""Pronouns for a pod, a group or a queue: say which."""
NAMES_NO_SUBJECT = re.compile(
    r"""
    (It|Its|They|Their|Them|He|She|The\ same|That|This|These|Those|Who|Whom|Whose|Nor|Also
    |(Whether|Where|When|What|If|How|As|Until|Since|Why|Which)\ (it|its|they|their|them)
    |(By|For|From|In|On|Of|To|With)\ (it|its|they|their|them|that|these|those)
    |(All|Any|Both|Each|Just|None|One|Only|Some)(\ of)?\ (it|that|them|these|those)
    |So\ (long|many))\b
    """,
    re.X,
)
"""Beginnings of docstrings that make a riddle of what they are about."""
REPLACED = re.compile(
    r"""\b(
    rooms|promises?|promised|roster|residents?|choosy|strangers?|allowances?|approvals?|basis
    |g[ia]v(e|es|ing)\ way|gave\ way|lends?|lending|lent|standings?(?!\ still)
    |pods?\ alone|(pods?|gates?|groups?|schedulers?)\ of\ others|somebody\ else's
    |lets?\ ((it|them|others|groups?)\ )?in
    )\b""",
    re.I | re.X,
)
"""Words of the glossary's left column that have no other use in a docstring."""
THE_FIELDS = frozenset({"NominatedRoom", "nominated_room"})
"""The glossary's own: room that a nomination keeps."""


def names() -> Iterator[tuple[str, str]]:
    """Every module, package, class and type of ``app``, and where it is."""
    for path in sorted(ROOT.rglob("*.py")):
        where = str(path.relative_to(ROOT.parent))
        yield where, path.parent.name if path.name == "__init__.py" else path.stem
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield f"{where}:{node.lineno}", node.name
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) if re.match("_?[A-Z][a-z]", name):
                    yield f"{where}:{node.lineno}", name


Documented = tuple[str, str, ast.AST]


def _documented(node: ast.AST, name: str) -> Iterator[Documented]:
    """Public modules, classes, functions and values below ``node``: name, docstring and node."""
    body: list[ast.stmt] = getattr(node, "body", [])
    before: ast.stmt | None = None
    for each in body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(each, f"{name}.{each.name}".lstrip("."))
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            text = each.value.value
            if isinstance(text, str) and _is_public(_named(name, before)):
                yield _named(name, before), text, each
        before = each


def _named(owner: str, before: ast.stmt | None) -> str:
    """The name that a docstring is of: its owner, or the value assigned in front of it."""
    match before:
        case None:
            return owner
        case ast.Assign(targets=[ast.Name(id=value)]) | ast.AnnAssign(target=ast.Name(id=value)):
            return f"{owner}.{value}".lstrip(".")
    return "_"


def _is_public(name: str) -> bool:
    return all(part.startswith("__") or not part.startswith("_") for part in name.split("."))


@cache
def docstrings() -> tuple[tuple[str, str], ...]:
    """The public docstrings of ``app``, but for the packages still to do, and where they are."""
    return tuple(_docstrings())


def _docstrings() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        where = str(path.relative_to(ROOT.parent))
        for name, text, node in _documented(ast.parse(path.read_text()), ""):
            yield f"{where}:{getattr(node, 'lineno', 0)} {name}", _told(text)


def _told(text: str) -> str:
    """``text`` without names of the code."""
    return re.sub(r"``.*?``|`.*?`", "`", text.strip())


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


def test_docstrings_say_which_pod_group_or_queue_they_mean() -> None:
    assert not [
        f"{where}: {found[0]}"
        for where, text in docstrings()
        if (found := STANDS_FOR_NONE.search(text))
    ]


def test_docstrings_begin_with_their_subject() -> None:
    assert not [
        f"{where}: {found[0]}"
        for where, text in docstrings()
        if (found := NAMES_NO_SUBJECT.match(text))
    ]


def test_docstrings_have_no_word_that_the_glossary_replaces() -> None:
    assert not [
        f"{where}: {found[0]}" for where, text in docstrings() if (found := REPLACED.search(text))
    ]


@pytest.mark.parametrize(
    "riddle",
    ["It is gone.", "Whether it is", "The same of", "Those that", "One of them", "All of it"],
)
def test_a_riddle_is_seen(riddle: str) -> None:
    assert NAMES_NO_SUBJECT.match(riddle)


@pytest.mark.parametrize("replaced", ["a promise", "gives way", "Let in", "let it in", "rooms"])
def test_a_replaced_word_is_seen(replaced: str) -> None:
    assert REPLACED.search(replaced)


def test_docstrings_are_told_by_their_names_and_private_ones_left_out() -> None:
    text = (
        '"""M."""\nA = 1\n"""V."""\n_B = 2\n"""P."""\nclass C:\n'
        ' """C."""\n def f(self):\n  """F."""\ndef _g():\n """G."""\n'
    )
    found = [(name, text) for name, text, _ in _documented(ast.parse(text), "")]
    assert found == [("", "M."), ("A", "V."), ("C", "C."), ("C.f", "F.")]


@pytest.mark.parametrize(
    ("name", "apart"),
    [("_NodeUsage", ["node", "usage"]), ("node_usage", ["node", "usage"]), ("PDB2", ["pdb2"])],
)
def test_names_are_taken_apart(name: str, apart: list[str]) -> None:
    assert words(name) == apart
