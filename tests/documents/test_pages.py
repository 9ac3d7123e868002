"""What is generated in the documents is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import pages

PAGES = pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)


@PAGES
def test_the_parts_of_a_page_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert text == pages.written(text), "make pages writes it anew"


def test_every_part_is_on_one_page() -> None:
    found = [name for page in pages.PAGES for name in pages.parts_of(page.read_text())]
    assert sorted(found) == sorted(pages.PARTS)


def test_a_part_is_written_between_its_comments_and_nothing_else() -> None:
    begin, end = "<!-- begin never: by hand -->\n", "<!-- end never -->"
    found = pages.written(f"before\n{begin}old\n{end}\nafter")
    table = "\n".join(pages.PARTS["never"]())
    assert found == f"before\n{begin}\n{table}\n\n{end}\nafter"
