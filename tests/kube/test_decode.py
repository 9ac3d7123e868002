"""Envelopes of lists and watches, with good and bad objects inside."""

import json

import msgspec
import pytest

from app.kube.decode import decoder
from app.kube.errors import Status, Unreadable
from app.kube.stream import LineType, Malformed
from tests.kube.server import bookmark, item, line, raw_item, status_body, too_deep


def named(raw: msgspec.Raw) -> str:
    obj = json.loads(bytes(raw))
    if "broken" in obj:
        raise ValueError("spec.broken: must not be there")
    return str(obj["metadata"]["name"])


DECODER = decoder(named)
NOT_UTF8 = raw_item("a", 1).replace(b'"a"', b'"caf\xe9"')


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


def in_a_page(*items: bytes) -> bytes:
    head = b'{"kind": "List", "items": [' + b", ".join(items)
    return head + b'], "metadata": {"resourceVersion": "5", "continue": "next"}}'


def in_a_line(change: LineType, obj: bytes) -> bytes:
    return b'{"type": "%s", "object": %s}' % (change.value.encode(), obj)


def test_an_object_too_deep_to_be_read_costs_no_other() -> None:
    page = DECODER.page(in_a_page(raw_item("a", 1), too_deep("b", 2), raw_item("c", 3)))
    assert list(page.objects) == ["a", "c"]
    assert [(m.key, m.uid) for m in page.malformed] == [("ns/b", "uid-b")]
    assert "recursion" in page.malformed[0].message
    assert (page.version, page.token) == ("5", "next")


def test_a_page_too_deep_may_still_be_no_page() -> None:
    with pytest.raises(Unreadable):
        DECODER.page(in_a_page(too_deep("a", 1))[:-90])


@pytest.mark.parametrize("change", [LineType.ADDED, LineType.MODIFIED, LineType.DELETED])
def test_a_line_with_an_object_too_deep_is_about_that_object(change: LineType) -> None:
    got = DECODER.line(in_a_line(change, too_deep("a", 7)))
    assert (got.change, got.version) == (change, "7")
    assert isinstance(got.item, Malformed)
    assert (got.item.key, got.item.uid) == ("ns/a", "uid-a")
    assert got.item.deleted is (change is LineType.DELETED)


def test_a_name_that_is_no_text_costs_no_other_object() -> None:
    page = DECODER.page(in_a_page(NOT_UTF8, raw_item("b", 2)))
    assert list(page.objects) == ["b"]
    assert [(m.key, m.uid) for m in page.malformed] == [("ns/caf\ufffd", "uid-a")]


def test_a_line_with_a_name_that_is_no_text_has_its_version() -> None:
    got = DECODER.line(in_a_line(LineType.ADDED, NOT_UTF8))
    assert isinstance(got.item, Malformed)
    assert (got.item.key, got.version) == ("ns/caf\ufffd", "1")


@pytest.mark.parametrize("items", ["null", "[]"])
def test_an_empty_page_may_say_null(items: str) -> None:
    raw = f'{{"metadata": {{"resourceVersion": "5"}}, "items": {items}}}'
    assert list(DECODER.page(raw.encode()).objects) == []


@pytest.mark.parametrize("change", [LineType.ADDED, LineType.MODIFIED, LineType.DELETED])
def test_a_line_has_its_change_object_and_version(change: LineType) -> None:
    got = DECODER.line(line(change.value, item("a", 7)))
    assert (got.change, got.item, got.version) == (change, "a", "7")


def test_a_bookmark_has_only_a_version() -> None:
    got = DECODER.line(bookmark(9))
    assert (got.change, got.item, got.version) == (LineType.BOOKMARK, None, "9")


def test_an_error_line_has_its_status() -> None:
    got = DECODER.line(line("ERROR", json.loads(status_body(410, "Expired", "too old"))))
    assert got.status is not None
    assert (got.status.code, got.status.message) == (410, "too old")


@pytest.mark.parametrize("said", [None, "too old", [], {"code": "gone"}])
def test_an_error_line_that_cannot_be_read_is_an_error_all_the_same(said: object) -> None:
    got = DECODER.line(line("ERROR", said))
    assert got.change is LineType.ERROR
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
