"""What is generated in the documents is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.core.plugins.catalogue import PLUGINS
from app.core.tiers import build
from app.wire.scheduler_conf import parse_scheduler_conf
from tests.clusters.installation import ROOT
from tests.documents import pages
from tests.documents.arguments import EXAMPLES, PAGE_OF, arguments_of

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


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_meaning_of_every_argument_is_told(plugin: str) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    [row] = [row for row in rows if f"`{plugin}`" in row.split(" | ")[0]]
    told = row + "".join((ROOT / "docs" / page).read_text() for page in _named(plugin))
    keys = [each.key for each in arguments_of(plugin) if _last(each.key) not in told]
    assert [key for key in keys if f"`{key}`" not in text] == []


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_plugin_has_an_example_that_is_there_and_in_the_guide(plugin: str) -> None:
    guide = (ROOT / "examples" / "README.md").read_text()
    for name in EXAMPLES[plugin]:
        path = ROOT / "examples" / name
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        assert [each.name for each in files if _in_guide(each) not in guide] == []
        assert files


@pytest.mark.parametrize(
    "conf", sorted((ROOT / "examples").rglob("*.conf")), ids=lambda conf: str(conf.parent.name)
)
def test_the_configuration_of_an_example_has_its_plugin_and_nothing_without_effect(
    conf: Path,
) -> None:
    read = build(parse_scheduler_conf(conf.read_text())).conf
    assert conf.parent.name in {plugin.name for tier in read.tiers for plugin in tier}
    assert read.warnings == ()


def _in_guide(file: Path) -> str:
    return f"| `{file.relative_to(ROOT / 'examples')}` |"


def _named(plugin: str) -> list[str]:
    return re.findall(r"\((.*?)\)", PAGE_OF.get(plugin, ""))


def _last(key: str) -> str:
    """The last part of its name, of a verb only the verb."""
    return key.rpartition(".")[2].removesuffix("Verb")


@PAGES
def test_the_readme_leads_to_every_page(page: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    assert page.name == "index.md" or f"(docs/{page.name})" in readme


@PAGES
def test_the_front_page_leads_to_every_page(page: Path) -> None:
    front = (ROOT / "docs/index.md").read_text()
    assert page.name == "index.md" or f"({page.name})" in front
