"""Stores: by key and by index, whatever came before."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.store import Store, by_controller
from app.wire.kinds import PODS
from app.wire.unstructured import Key, Object, key_of, labels
from tests.controllers.play import item


def by_label(found: Object) -> str:
    return labels(found).get("l", "")


def made(name: str, label: str = "") -> Object:
    return item(PODS, name, metadata={"labels": {"l": label}} if label else {})


def test_an_object_is_found_until_it_is_dropped() -> None:
    store = Store()
    first, second = made("a", "x"), made("a", "y")

    assert store.put(first) is None
    assert store.put(second) is first
    assert store.get(Key("ns", "a")) is second
    assert store.drop(Key("ns", "a")) is second
    assert store.drop(Key("ns", "a")) is None
    assert store.get(Key("ns", "a")) is None


def versioned(number: int, *, uid: str = "u") -> Object:
    return item(PODS, "a", metadata={"uid": uid, "resourceVersion": str(number)})


@pytest.mark.parametrize(
    ("shown", "written", "stays"),
    [
        (versioned(9), versioned(10), "written"),
        (versioned(10), versioned(10), "shown"),
        (versioned(11), versioned(10), "shown"),
        (versioned(9), versioned(10, uid="before"), "shown"),
        (None, versioned(10), None),
    ],
    ids=["older", "the same", "newer", "made anew", "gone"],
)
def test_what_was_written_takes_the_place_of_older_only(
    shown: Object | None, written: Object, stays: str | None
) -> None:
    store = Store()
    if shown is not None:
        store.put(shown)
    store.renew(written)
    found = store.get(Key("ns", "a"))
    assert found is {"written": written, "shown": shown, None: None}[stays]


@pytest.mark.parametrize(
    ("late", "stays"),
    [
        (versioned(9), "written"),
        (versioned(10), "late"),
        (versioned(11), "late"),
        (versioned(9, uid="before"), "late"),
    ],
    ids=["older", "the same", "newer", "made anew"],
)
def test_what_was_written_stays_until_it_is_shown(late: Object, stays: str) -> None:
    store, written = Store({"label": by_label}), versioned(10)
    store.put(versioned(8))
    store.renew(written)
    before = store.put(late)
    assert before is written
    assert store.get(Key("ns", "a")) is {"written": written, "late": late}[stays]


def test_older_is_taken_once_what_was_written_has_been_shown_or_is_gone() -> None:
    """A cluster that was restored counts its versions from an earlier one."""
    store, restored = Store(), versioned(3)
    store.put(versioned(8))
    store.renew(versioned(10))
    store.put(versioned(10))
    store.put(restored)
    assert store.get(Key("ns", "a")) is restored

    store.renew(versioned(10))
    store.drop(Key("ns", "a"))
    store.put(restored)
    assert store.get(Key("ns", "a")) is restored


def test_all_may_change_while_it_is_walked() -> None:
    store = Store()
    for name in "abc":
        store.put(made(name))
    walked: Iterator[Object] = store.all()
    for each in walked:
        store.drop(key_of(each))

    assert len(store) == 0


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ([], ""),
        ([{"uid": "a"}], ""),
        ([{"uid": "a"}, {"uid": "b", "controller": True}], "b"),
    ],
)
def test_the_controller_is_the_owner_that_controls(references: list[Object], expected: str) -> None:
    assert by_controller(item(PODS, "p", metadata={"ownerReferences": references})) == expected


_steps = st.lists(
    st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from(["", "x", "y", "z"])),
    max_size=40,
)


@given(_steps)
def test_an_index_is_the_same_as_a_search(steps: list[tuple[str, str | None]]) -> None:
    store, model = Store({"label": by_label}), dict[str, str]()
    for name, label in steps:
        if label is None:
            store.drop(Key("ns", name))
            model.pop(name, None)
        else:
            store.put(made(name, label))
            model[name] = label
        assert len(store) == len(model)
        for value in ("x", "y", "z"):
            found = sorted(key_of(each).name for each in store.by("label", value))
            assert found == sorted(n for n, has in model.items() if has == value)
        assert store.by("label", "") == []
