"""The documents are in short sentences and in the words of the glossary."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.clusters.installation import ROOT
from tests.documents.blocks import TEXTS
from tests.documents.language import sentences
from tests.test_glossary import REPLACED

LONGEST: Final = 40
"""The most words of a sentence; code is one word."""
README_LINES: Final = 200
PEOPLE: Final = re.compile(r"\b(nobody|somebody|whoever|anybody|everybody|someone|no one)\b", re.I)
"""Words for persons where a pod, a group or a queue is meant."""
OTHER_USE: Final = re.compile(r"\bresident memory\b", re.I)
PAGES: Final = pytest.mark.parametrize(
    "page",
    [*TEXTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)


@PAGES
def test_no_sentence_is_long(page: Path) -> None:
    assert [each.text for each in sentences(page) if each.words > LONGEST] == []


@PAGES
def test_no_word_is_one_that_the_glossary_replaces(page: Path) -> None:
    told = [OTHER_USE.sub("memory", each.text) for each in sentences(page)]
    found = [(word[0], text) for text in told for word in REPLACED.finditer(text)]
    assert found == []


@PAGES
def test_a_pod_a_group_or_a_queue_is_named(page: Path) -> None:
    found = [(word[0], s.text) for s in sentences(page) for word in PEOPLE.finditer(s.text)]
    assert found == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_sentences_are_told_apart_and_code_is_one_word(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n\nOne `long piece of code` here. Two\nlines (see [this](address)).\n\n"
        "* an item\n  of two lines\n\n| a | cell of a table |\n|---|---|\n\n"
        "```sh\nno sentence at all\n```\n"
    )
    assert [(each.text, each.words) for each in sentences(page)] == [
        ("A title", 2),
        ("One CODE here.", 3),
        ("Two lines (see [this]).", 4),
        ("an item of two lines", 5),
        ("a", 1),
        ("cell of a table", 4),
    ]
