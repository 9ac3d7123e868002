"""Envelopes of lists and watches, with good and bad objects inside."""

import json

import msgspec
import pytest

from app.kube.decode import decoder
from app.kube.errors import Status
from app.kube.stream import Change, Malformed
from tests.kube.server import bookmark, item, line, status_body


def named(raw: msgspec.Raw) -> str:
    obj = json.loads(bytes(raw))
    if "broken" in obj:
        raise ValueError("spec.broken: must not be there")
    return str(obj["metadata"]["name"])


DECODER = decoder(named)


def test_a_page_separates_good_objects_from_bad_ones() -> None:
    raw = json.dumps(
        {
            "metadata": {"resourceVersion": "5", "continue": "next"},
            "items": [item("a", 1), item("b", 2, broken=1), item("c", 3)],
        }
    )
    page = DECODER.page(raw.encode())
    assert list(page.objects) == ["a", "c"]
    assert list(page.malformed) == [
        Malformed(key="ns/b", message="spec.broken: must not be there", uid="uid-b")
    ]
    assert (page.version, page.token) == ("5", "next")


@pytest.mark.parametrize("items", ["null", "[]"])
def test_an_empty_page_may_say_null(items: str) -> None:
    raw = f'{{"metadata": {{"resourceVersion": "5"}}, "items": {items}}}'
    assert list(DECODER.page(raw.encode()).objects) == []


@pytest.mark.parametrize("change", [Change.ADDED, Change.MODIFIED, Change.DELETED])
def test_a_line_has_its_change_object_and_version(change: Change) -> None:
    got = DECODER.line(line(change.value, item("a", 7)))
    assert (got.change, got.item, got.version) == (change, "a", "7")


def test_a_bookmark_has_only_a_version() -> None:
    got = DECODER.line(bookmark(9))
    assert (got.change, got.item, got.version) == (Change.BOOKMARK, None, "9")


def test_an_error_line_has_its_status() -> None:
    got = DECODER.line(line("ERROR", json.loads(status_body(410, "Expired", "too old"))))
    assert got.status is not None
    assert (got.status.code, got.status.message) == (410, "too old")


@pytest.mark.parametrize("said", [None, "too old", [], {"code": "gone"}])
def test_an_error_line_that_cannot_be_read_is_an_error_all_the_same(said: object) -> None:
    got = DECODER.line(line("ERROR", said))
    assert got.change is Change.ERROR
    assert got.status == Status(message=json.dumps(said))


def test_an_error_line_may_have_its_code_as_text() -> None:
    got = DECODER.line(line("ERROR", {"code": "410", "message": "too old"}))
    assert got.status == Status(message="too old", code=410)


def test_a_bad_object_in_a_line_keeps_its_key_and_version() -> None:
    got = DECODER.line(line("DELETED", item("a", 7, broken=1)))
    assert got.version == "7"
    assert got.item == Malformed(
        key="ns/a", message="spec.broken: must not be there", uid="uid-a", deleted=True
    )


def test_an_object_whose_very_name_is_unreadable_is_malformed_too() -> None:
    got = DECODER.line(b'{"type": "ADDED", "object": {"metadata": {"name": [1]}, "broken": 1}}')
    assert isinstance(got.item, Malformed)
    assert got.item.key == ""


def test_an_object_without_namespace_has_its_name_as_key() -> None:
    got = DECODER.line(line("ADDED", {"metadata": {"name": "node-1"}, "broken": 1}))
    assert isinstance(got.item, Malformed)
    assert got.item.key == "node-1"


def test_an_exception_without_words_is_named() -> None:
    def fail(raw: msgspec.Raw) -> str:
        raise KeyError

    got = decoder(fail).line(line("ADDED", item("a", 1)))
    assert isinstance(got.item, Malformed)
    assert got.item.message == "KeyError"
