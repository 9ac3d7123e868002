"""The page is served from the package, to everyone, and may load nothing from elsewhere."""

from importlib.resources import files

import pytest

from app.api.page import FIRST, FOLDER, HEADERS, TYPES, assets
from tests.api.stand import stand
from tests.api.test_access import asked_by

MOST = 150_000
"""Bytes of the whole page."""


def test_the_page_has_at_most_150_kb_in_all() -> None:
    sizes = {name: len(asset.content) for name, asset in assets().items()}
    assert sum(sizes.values()) <= MOST, sizes


def test_every_file_of_the_page_has_a_type_and_a_plain_name() -> None:
    for file in (files("app") / FOLDER).iterdir():
        assert file.is_file(), f"{file.name}: files lie in one folder"
        assert file.name.rpartition(".")[2] in TYPES, file.name
        assert file.name == file.name.lower(), file.name


def test_the_page_has_no_script_or_style_that_its_policy_forbids() -> None:
    page = assets()[FIRST].content.decode()
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count("<script src=") + page.count(
        '<script type="module" src='
    )


@pytest.mark.parametrize("reading", [True, False], ids=["second port", "first port"])
async def test_the_page_is_served_on_both_ports_without_a_token(reading: bool) -> None:
    async with asked_by("", reading=reading) as at:
        answer = await at.get("/ui")
        assert answer.status_code == 200
        assert answer.content == assets()[FIRST].content
        assert answer.headers["content-type"] == TYPES["html"]
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


async def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    async with stand() as at:
        tag = (await at.get("/ui")).headers["etag"]
        for shown in (tag, f"W/{tag}", f'"other", {tag}'):
            again = await at.client.get("/ui", headers={"if-none-match": shown})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["content-security-policy"]
        other = await at.client.get("/ui", headers={"if-none-match": '"other"'})
        assert other.status_code == 200


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fcli%2Fmain.py", "%2e%2e", "__init__.py"])
async def test_nothing_but_the_files_of_the_page_is_served(name: str) -> None:
    async with stand() as at:
        assert (await at.get(f"/ui/{name}")).status_code == 404
