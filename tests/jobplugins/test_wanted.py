"""What is done about an object that a job wants."""

from base64 import b64encode

import pytest

from app.jobplugins.wanted import (
    Create,
    Leave,
    Once,
    Remove,
    Step,
    Wait,
    Wanted,
    Writing,
)
from app.wire.kinds import CONFIG_MAPS, SECRETS, SERVICES
from app.wire.unstructured import Key, Object
from tests.controllers.jobplugins.jobs import OWNER

ITEM = {"metadata": {"name": "x", "namespace": "ns", "ownerReferences": [OWNER]}}
FIXED = Wanted(SERVICES, {**ITEM, "spec": {"a": 1}})
LISTS = Wanted(CONFIG_MAPS, ITEM, follows={"a": "1", "b": "2"})


def stored(
    data: dict[str, str] | None = None, *, owner: Object | None = OWNER, going: bool = False
) -> Object:
    """An object as the API server shows it."""
    meta: Object = {"name": "x", "namespace": "ns", "uid": "stored"}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    if going:
        meta["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return {"metadata": meta} if data is None else {"metadata": meta, "data": data}


EARLIER = {**OWNER, "uid": "u0"}
ELSE = {**OWNER, "kind": "ReplicaSet", "uid": "u0"}


@pytest.mark.parametrize(
    ("there", "step"),
    [
        (None, Create({**ITEM, "spec": {"a": 1}})),
        (stored(), None),
        (stored(owner=None), Leave()),
        (stored(owner=ELSE), Leave()),
        (stored(owner=ELSE, going=True), Wait()),
        (stored(owner=EARLIER), Remove("stored")),
        (stored(going=True), Wait()),
        (stored(owner=EARLIER, going=True), Remove("stored")),
    ],
    ids=[
        "missing",
        "there",
        "without an owner",
        "another's",
        "another's, going",
        "left over",
        "going",
        "left over, going",
    ],
)
def test_a_fixed_object_is_created_once(there: Object | None, step: Step | None) -> None:
    assert FIXED.step(there) == step


@pytest.mark.parametrize(
    ("there", "step"),
    [
        (None, Create({**ITEM, "data": {"a": "1", "b": "2"}})),
        (stored({"a": "1", "b": "2"}), None),
        (stored({"a": "1", "b": "2", "more": "3"}), None),
        (stored({"a": "1", "b": "0"}), Writing({"data": {"b": "2"}})),
        (stored({"a": "1"}), Writing({"data": {"b": "2"}})),
        (stored(), Writing({"data": {"a": "1", "b": "2"}})),
        (stored({"mine": "0"}, owner=None), Leave()),
        (stored({}, owner=EARLIER), Remove("stored")),
        (stored({}, going=True), Wait()),
    ],
)
def test_content_that_follows_the_job_is_kept_up_to_date(
    there: Object | None, step: Step | None
) -> None:
    assert LISTS.step(there) == step


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


class Making:
    """Content that differs each time it is made."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, str]:
        self.times += 1
        return {"key": f"key {self.times}"}


def test_content_made_once_stays_until_it_is_gone() -> None:
    making = Making()
    wanted = Wanted(SECRETS, ITEM, follows={"a": "1"}, once=Once(frozenset({"key"}), making))
    assert wanted.step(None) == Create(
        {**ITEM, "data": {"a": encoded("1"), "key": encoded("key 1")}}
    )
    assert wanted.step(stored({"a": encoded("1"), "key": "anything"})) is None
    assert wanted.step(stored({"a": encoded("0"), "key": "anything"})) == Writing(
        {"data": {"a": encoded("1")}}
    )
    assert making.times == 1
    assert wanted.step(stored({"a": encoded("1")})) == Writing({"data": {"key": encoded("key 2")}})


def test_what_is_created_does_not_hang_on_the_value() -> None:
    step = FIXED.step(None)
    assert isinstance(step, Create)
    step.item["more"] = 1
    assert FIXED.step(None) == Create({**ITEM, "spec": {"a": 1}})


@pytest.mark.parametrize(
    ("owner", "ours"), [(OWNER, True), (None, False), (EARLIER, False), (ELSE, False)]
)
def test_only_the_jobs_own_objects_go_with_it(owner: Object | None, ours: bool) -> None:
    assert FIXED.is_ours(stored(owner=owner)) is ours


def test_it_knows_where_it_is() -> None:
    assert FIXED.key == Key("ns", "x")
