"""From listings and watches to stores: what a complete listing lacks has gone."""

from collections.abc import Iterable
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.controllers.intake import Intake
from app.controllers.runtime import ObjectChange, Runtime
from app.controllers.store import Store
from app.kit.workqueue import Backoff
from app.wire.kinds import JOBS, PODS
from app.wire.unstructured import Key, Object, key_of, labels
from tests.controllers.play import item
from tests.scale import examples

SOURCES: Final = {"one": PODS, "two": PODS, "jobs": JOBS}


class Notes:
    """A controller that only notes."""

    name = "notes"
    kinds = (PODS, JOBS)

    def __init__(self) -> None:
        self.changes: list[ObjectChange] = []

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        self.changes.append(change)
        return ()

    async def reconcile(self, key: Key) -> None:
        raise AssertionError(key)


class Taking(RuleBasedStateMachine):
    """Sources that each hold a part of the pods, list them anew at any time, and miss changes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = Notes()
        self.stores = {PODS: Store(), JOBS: Store()}
        self.intake = Intake(Runtime(self.stores, {self.notes: 1}, backoff=Backoff()), SOURCES)
        self.real: dict[str, dict[str, int]] = {source: {} for source in SOURCES}
        self.seen: dict[str, dict[str, int]] = {source: {} for source in SOURCES}
        self.revision = 0

    def made(self, source: str, name: str) -> Object:
        self.revision += 1
        return item(
            SOURCES[source], f"{source}-{name}", metadata={"labels": {"r": str(self.revision)}}
        )

    @rule(source=st.sampled_from(list(SOURCES)), name=st.sampled_from("abc"), heard=st.booleans())
    def put(self, source: str, name: str, heard: bool) -> None:
        found = self.made(source, name)
        self.real[source][name] = self.revision
        if heard:
            self.intake.upsert(source, found)
            self.seen[source][name] = self.revision

    @rule(source=st.sampled_from(list(SOURCES)), name=st.sampled_from("abc"), heard=st.booleans())
    def take_away(self, source: str, name: str, heard: bool) -> None:
        self.real[source].pop(name, None)
        if heard:
            self.intake.remove(source, item(SOURCES[source], f"{source}-{name}"))
            self.seen[source].pop(name, None)

    @rule(source=st.sampled_from(list(SOURCES)), broken=st.booleans())
    def list_anew(self, source: str, broken: bool) -> None:
        self.intake.begin_listing(source)
        for name, revision in self.real[source].items():
            metadata = {"labels": {"r": str(revision)}}
            self.intake.upsert(source, item(SOURCES[source], f"{source}-{name}", metadata=metadata))
            self.seen[source][name] = revision
        if not broken:
            self.intake.end_listing(source)
            self.seen[source] = dict(self.real[source])

    @invariant()
    def stores_hold_what_was_seen(self) -> None:
        for resource, store in self.stores.items():
            found = {key_of(each).name: labels(each)["r"] for each in store.all()}
            assert found == {
                f"{source}-{name}": str(revision)
                for source, its in SOURCES.items()
                if its is resource
                for name, revision in self.seen[source].items()
            }

    @invariant()
    def controllers_have_heard_of_everything(self) -> None:
        heard: dict[tuple[str, str], Object] = {}
        for change in self.notes.changes:
            key = change.resource.plural, key_of(change.item).name
            assert heard.get(key) is change.old
            if change.new is None:
                del heard[key]
            else:
                heard[key] = change.new
        assert len(heard) == sum(map(len, self.stores.values()))


TestTaking = Taking.TestCase
TestTaking.settings = examples(40, stateful_step_count=25)


def test_an_end_without_a_beginning_takes_nothing_away() -> None:
    stores = {PODS: Store()}
    intake = Intake(Runtime(stores, {}, backoff=Backoff()), {"one": PODS})
    intake.upsert("one", item(PODS, "p"))

    intake.end_listing("one")
    intake.batch_done()

    assert len(stores[PODS]) == 1


def test_an_object_that_cannot_be_read_is_left_out() -> None:
    stores = {PODS: Store()}
    intake = Intake(Runtime(stores, {}, backoff=Backoff()), {"one": PODS})

    intake.reject("one", "ns/p", "metadata.name: is missing")

    assert len(stores[PODS]) == 0


@pytest.mark.parametrize("how", ["deleted", "not listed"])
def test_one_that_another_source_shows_by_now_stays(how: str) -> None:
    """Of two watches, that of the new source may be ahead."""
    stores = {PODS: Store()}
    intake = Intake(Runtime(stores, {}, backoff=Backoff()), {"one": PODS, "two": PODS})
    pod = item(PODS, "moving")
    intake.upsert("one", pod)
    intake.upsert("two", pod)
    if how == "deleted":
        intake.remove("one", pod)
    else:
        intake.begin_listing("one")
        intake.end_listing("one")
    assert stores[PODS].get(key_of(pod)) is not None
    intake.remove("two", pod)
    assert stores[PODS].get(key_of(pod)) is None
