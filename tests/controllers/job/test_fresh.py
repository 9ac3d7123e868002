"""Our own writes, laid over what the watch has shown."""

from collections.abc import Callable

from app.controllers.job.fresh import CONTROLLER, Fresh
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store, by_controller
from app.wire.kinds import PODS
from app.wire.unstructured import Key, Object

_KEY = Key("ns", "p")


def _pod(version: int, *, uid: str = "u", deleting: bool = False) -> Object:
    owner = {"kind": "Job", "uid": "j", "controller": True}
    metadata = {
        "name": "p",
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "ownerReferences": [owner],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


class _Watched:
    """A store that is fed as by a runtime."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = Store({CONTROLLER: by_controller})
        self.fresh = Fresh(self.store, clock=lambda: self.now)

    def show(self, pod: Object) -> None:
        old = self.store.put(pod)
        self.fresh.saw(ObjectChange(PODS, old, pod))

    def lose(self) -> None:
        old = self.store.drop(_KEY)
        self.fresh.saw(ObjectChange(PODS, old, None))

    @property
    def version(self) -> str | None:
        found = self.fresh.get(_KEY)
        assert self.fresh.owned_by("j") == ([] if found is None else [found])
        return None if found is None else found["metadata"]["resourceVersion"]

    @property
    def is_going(self) -> bool:
        found = self.fresh.get(_KEY)
        return found is not None and "deletionTimestamp" in found["metadata"]


def test_what_we_created_is_there_at_once() -> None:
    watched = _Watched()
    watched.fresh.created(_pod(1))
    assert watched.version == "1"
    assert watched.fresh.unseen("j") == [_pod(1)]


def test_what_the_watch_shows_later_takes_its_place() -> None:
    watched = _Watched()
    watched.fresh.created(_pod(1))
    watched.show(_pod(1))
    assert watched.fresh.unseen("j") == []
    watched.show(_pod(2))
    assert watched.version == "2"


def test_what_we_changed_is_newer_than_what_is_shown() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.fresh.changed(_pod(3))
    watched.show(_pod(2))
    assert watched.version == "3"
    watched.show(_pod(4))
    assert watched.version == "4"


def test_what_we_deleted_is_going_until_it_is_gone() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.fresh.deleted(_pod(1))
    assert watched.is_going
    watched.show(_pod(2))
    assert watched.is_going
    watched.show(_pod(3, deleting=True))
    assert watched.is_going
    watched.lose()
    assert watched.version is None


def test_what_we_changed_and_then_deleted_is_both() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.fresh.changed(_pod(2))
    watched.fresh.deleted(_pod(1))
    assert watched.is_going
    assert watched.version == "2"


def test_a_deletion_that_the_watch_showed_first_is_over() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.lose()
    watched.fresh.deleted(_pod(1))
    watched.fresh.changed(_pod(2))
    assert watched.version is None


def test_the_next_one_of_that_name_is_not_going() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.fresh.deleted(_pod(1))
    watched.show(_pod(5, uid="v"))
    assert watched.version == "5"
    assert not watched.is_going
    watched.fresh.deleted(_pod(1))
    assert not watched.is_going


def test_what_the_api_server_has_no_more_is_going_whatever_is_shown_late() -> None:
    watched = _Watched()
    watched.show(_pod(1, deleting=True))
    watched.fresh.ended(_pod(1), annotations={"too": "late"})
    watched.show(_pod(2, deleting=True))
    found = watched.fresh.get(_KEY)
    assert found is not None
    assert found["metadata"]["annotations"] == {"too": "late"}
    assert watched.is_going
    watched.lose()
    assert watched.version is None


def test_a_change_that_was_its_end_is_never_shown() -> None:
    watched = _Watched()
    watched.show(_pod(1, deleting=True))
    change = _pod(2, deleting=True)
    change["metadata"] |= {"deletionGracePeriodSeconds": 0, "annotations": {"too": "late"}}
    watched.fresh.changed(change)
    watched.show(_pod(2, deleting=True))
    assert watched.fresh.get(_KEY) == change
    watched.lose()
    assert watched.version is None


def test_a_change_of_what_a_finalizer_holds_is_shown() -> None:
    watched = _Watched()
    watched.show(_pod(1, deleting=True))
    change = _pod(2, deleting=True)
    change["metadata"] |= {"deletionGracePeriodSeconds": 0, "finalizers": ["hold"]}
    watched.fresh.changed(change)
    watched.show(_pod(3, deleting=True))
    assert watched.version == "3"


def test_the_next_one_of_that_name_has_not_ended() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.fresh.ended(_pod(1))
    watched.show(_pod(3, uid="next"))
    assert watched.version == "3"
    watched.fresh.ended(_pod(1))
    assert watched.version == "3"
    assert not watched.is_going


def test_what_is_gone_and_was_shown_to_be_stays_gone() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.lose()
    watched.fresh.ended(_pod(1))
    assert watched.version is None


def test_what_the_watch_has_shown_come_and_go_before_the_answer_is_gone() -> None:
    watched = _Watched()
    watched.show(_pod(1))
    watched.lose()
    watched.fresh.created(_pod(1))
    assert watched.version is None
    assert watched.fresh.unseen("j") == []
    watched.fresh.created(_pod(3, uid="next"))
    assert watched.version == "3"


def test_what_was_created_and_deleted_unseen_is_going() -> None:
    watched = _Watched()
    watched.fresh.created(_pod(1))
    watched.fresh.deleted(_pod(1))
    assert watched.is_going


def test_what_the_watch_does_not_show_for_long_is_to_be_asked_for() -> None:
    watched = _Watched()
    watched.fresh.created(_pod(1))
    watched.now = 59.0
    assert not watched.fresh.overdue("j")
    watched.now = 60.0
    assert watched.fresh.overdue("j") == [_pod(1)]
    watched.fresh.created(_pod(2))
    assert not watched.fresh.overdue("j")
    assert watched.version == "2"
    watched.fresh.gone(_KEY)
    assert watched.version is None


def test_every_change_is_told_by_another_number() -> None:
    watched = _Watched()
    seen = [watched.fresh.changes("j")]
    steps: list[Callable[[], None]] = [
        lambda: watched.fresh.created(_pod(1)),
        lambda: watched.show(_pod(1)),
        lambda: watched.fresh.changed(_pod(2)),
        lambda: watched.fresh.deleted(_pod(2)),
        lambda: watched.show(_pod(3, deleting=True)),
    ]
    for happens in steps:
        happens()
        seen.append(watched.fresh.changes("j"))
    assert len(set(seen)) == len(seen)
    watched.lose()
    assert watched.fresh.changes("j") == 0
