"""Queues on the API server: commands, parents, groups, and deletions by clients."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.controllers.ports import Failure
from app.controllers.queue.controller import INDEXES, QueueController
from app.controllers.runtime import Controller
from app.wire.kinds import COMMANDS, POD_GROUPS, QUEUES
from app.wire.unstructured import Key, Object, annotations, spec, uid
from tests.controllers import play
from tests.controllers.fake_api import Trap
from tests.controllers.play import Play, item

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


def build(stage: Play) -> list[Controller]:
    return [QueueController(stage.stores, api=stage.api, events=stage.events)]


def run(scenario: Callable[[Play], Awaitable[None]]) -> Play:
    async def whole(stage: Play) -> None:
        queue(stage, "root")
        await stage.start()
        await scenario(stage)

    return play.run(whole, follows=INDEXES, build=build)


def queue(stage: Play, name: str, parent: str = "", state: str = "", **metadata: Any) -> None:
    parts: Object = {"spec": {"parent": parent} if parent else {}}
    if state:
        parts["status"] = {"state": state}
    stage.fake.put(QUEUES, item(QUEUES, name, metadata=metadata, **parts))


def group(stage: Play, name: str, queue_name: str) -> None:
    stage.fake.put(POD_GROUPS, item(POD_GROUPS, name, spec={"queue": queue_name}))


def command(
    stage: Play,
    action: str,
    queue_name: str,
    *,
    kind: str = "Queue",
    called: str = "",
    uid: str = "",
    **metadata: Any,
) -> None:
    stage.fake.put(
        COMMANDS,
        item(
            COMMANDS,
            called or f"{action}-{queue_name}".lower(),
            namespace="default",
            metadata=metadata,
            action=action,
            target={"kind": kind, "name": queue_name, "uid": uid},
        ),
    )


async def send(stage: Play, action: str, queue_name: str) -> None:
    command(stage, action, queue_name)
    await stage.settle()


def state(stage: Play, name: str) -> str:
    found = stage.stored(QUEUES, Key("", name)).get("status") or {}
    return str(found.get("state", ""))


def states(stage: Play, *names: str) -> list[str]:
    return [state(stage, name) for name in names]


def test_a_new_queue_is_open_and_the_roots() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        assert states(stage, "root", "q") == ["Open", "Open"]
        assert spec(stage.stored(QUEUES, Key("", "q"))) == {"parent": "root"}
        assert spec(stage.stored(QUEUES, Key("", "root"))) == {}

    assert run(scenario).reasons() == []


CLOSED = ("Normal", "CloseQueue", "Close queue succeed")
OPENED = ("Normal", "OpenQueue", "Open queue succeed")


@pytest.mark.parametrize("has_groups", [False, True], ids=["no groups", "groups"])
@pytest.mark.parametrize(
    ("before", "action", "empty", "full"),
    [
        ("", "", "Open", "Open"),
        ("", "OpenQueue", "Open", "Open"),
        ("", "CloseQueue", "Closed", "Closing"),
        ("Open", "", "Open", "Open"),
        ("Open", "OpenQueue", "Open", "Open"),
        ("Open", "CloseQueue", "Closed", "Closing"),
        ("Closed", "", "Closed", "Closed"),
        ("Closed", "OpenQueue", "Open", "Open"),
        ("Closed", "CloseQueue", "Closed", "Closed"),
        ("Closing", "", "Closed", "Closing"),
        ("Closing", "OpenQueue", "Open", "Open"),
        ("Closing", "CloseQueue", "Closed", "Closing"),
        ("Unknown", "", "Unknown", "Unknown"),
        ("Unknown", "OpenQueue", "Open", "Open"),
        ("Unknown", "CloseQueue", "Closed", "Closing"),
    ],
)
def test_each_cell_of_the_table_of_states(
    *, before: str, action: str, empty: str, full: str, has_groups: bool
) -> None:
    wanted = full if has_groups else empty

    async def scenario(stage: Play) -> None:
        if has_groups:
            group(stage, "g", "q")
        if action:
            command(stage, action, "q")
        queue(stage, "q", "root", before)
        await stage.settle()
        assert state(stage, "q") == wanted
        assert stage.names(COMMANDS) == []

    told = run(scenario).told.told
    if wanted == before or not (before or action):
        assert told == []
    else:
        assert told == [OPENED if wanted == "Open" else CLOSED]


def test_a_queue_with_groups_closes_when_the_last_is_gone() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        group(stage, "g1", "q")
        group(stage, "g2", "q")
        await send(stage, "CloseQueue", "q")
        assert state(stage, "q") == "Closing"
        stage.fake.remove(POD_GROUPS, Key("ns", "g1"))
        await stage.settle()
        assert state(stage, "q") == "Closing"
        stage.fake.edit(POD_GROUPS, Key("ns", "g2"), {"spec": {"queue": "other"}})
        await stage.settle()
        assert state(stage, "q") == "Closed"
        await send(stage, "OpenQueue", "q")
        assert state(stage, "q") == "Open"

    assert run(scenario).told.told == [CLOSED, CLOSED, OPENED]


def test_a_group_that_names_no_queue_is_in_the_default_one() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "default")
        stage.fake.put(POD_GROUPS, item(POD_GROUPS, "g", spec={}))
        await send(stage, "CloseQueue", "default")
        assert state(stage, "default") == "Closing"

    run(scenario)


def test_a_command_is_carried_out_once_and_gone() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await send(stage, "CloseQueue", "q")
        assert stage.names(COMMANDS) == []
        stage.fake.edit(QUEUES, Key("", "q"), {"status": {"state": "Open"}})
        await stage.settle()
        assert state(stage, "q") == "Open"

    run(scenario)


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [(["CloseQueue", "OpenQueue"], "Open"), (["OpenQueue", "CloseQueue"], "Closed")],
)
@pytest.mark.parametrize("good", [None, 0, 1, 2, 3, 4, 5])
def test_commands_are_carried_out_in_the_order_in_which_they_were_given(
    actions: list[str], wanted: str, good: int | None
) -> None:
    """Both are of one second, and the first has the later name; requests may fail in between."""

    async def scenario(stage: Play) -> None:
        queue(stage, "q", "root")
        await stage.settle()
        if good is not None:
            done = len(stage.fake.requests) + good
            stage.fake.fail(Failure.PASSING, lambda _: len(stage.fake.requests) > done)
        for action, called in zip(actions, ["b", "a"], strict=True):
            command(stage, action, "q", called=called)
        await stage.later(5)
        assert state(stage, "q") == wanted
        assert stage.names(COMMANDS) == []

    told = run(scenario).told.told
    assert told == ([CLOSED, OPENED] if wanted == "Open" else [CLOSED])


@pytest.mark.parametrize("after", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("number", range(1, 5))
def test_a_command_outlives_a_controller_that_dies_over_it(number: int, *, after: bool) -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q", "root")
        await stage.settle()
        trap = stage.fake.trap = Trap(len(stage.fake.requests) + number, after)
        command(stage, "CloseQueue", "q")
        stage.fake.deliver()
        for _ in range(50):
            await asyncio.sleep(0)
        stage.fake.trap = None
        assert trap.sprung.is_set() or number > 3
        await stage.kill()
        await stage.start()
        assert state(stage, "q") == "Closed"
        assert stage.names(COMMANDS) == []

    assert len(run(scenario).told.told) <= 1


def test_a_command_that_somebody_else_took_is_not_carried_out() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        stage.fake.fail(Failure.NOT_FOUND, lambda request: request.resource is COMMANDS)
        await send(stage, "CloseQueue", "q")
        assert state(stage, "q") == "Open"

    run(scenario)


def test_a_command_whose_deletion_failed_is_tried_again() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        stage.fake.fail(Failure.PASSING, lambda request: request.verb == "delete")
        command(stage, "CloseQueue", "q")
        await stage.later(1)
        assert state(stage, "q") == "Closed"
        assert stage.names(COMMANDS) == []

    run(scenario)


def test_a_command_that_is_seen_before_its_queue_waits_for_it() -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.lagging = {QUEUES}
        queue(stage, "q")
        await send(stage, "CloseQueue", "q")
        stage.fake.lagging.clear()
        await stage.later(1)
        assert state(stage, "q") == "Closed"
        assert stage.names(COMMANDS) == []

    run(scenario)


def test_a_command_for_another_queue_of_the_name_is_not_carried_out() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        command(stage, "CloseQueue", "q", called="c", uid="made-up")
        await stage.settle()
        assert state(stage, "q") == "Open"
        assert stage.names(COMMANDS) == []
        command(stage, "CloseQueue", "q", uid=uid(stage.stored(QUEUES, Key("", "q"))))
        await stage.settle()
        assert state(stage, "q") == "Closed"

    assert run(scenario).told.told == [
        (
            "Warning",
            "CommandIgnored",
            "CloseQueue of command c is not executed: it is for another queue of this name, with "
            "the UID made-up",
        ),
        CLOSED,
    ]


def test_a_command_for_a_queue_made_anew_waits_until_the_watch_shows_that_queue() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        stage.fake.lagging = {QUEUES}
        stage.fake.remove(QUEUES, Key("", "q"))
        queue(stage, "q")
        command(stage, "CloseQueue", "q", uid=uid(stage.stored(QUEUES, Key("", "q"))))
        await stage.settle()
        assert stage.names(COMMANDS) == ["closequeue-q"]
        stage.fake.lagging.clear()
        await stage.later(1)
        assert state(stage, "q") == "Closed"
        assert stage.names(COMMANDS) == []

    assert run(scenario).told.told == [CLOSED]


def test_a_command_that_a_finalizer_keeps_is_carried_out_once() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        command(stage, "CloseQueue", "q", called="kept", finalizers=["tenant/keep"])
        await stage.settle()
        await send(stage, "OpenQueue", "q")
        stage.fake.edit(COMMANDS, Key("default", "kept"), {"reason": "again"})
        await stage.settle()
        assert state(stage, "q") == "Open"
        await stage.kill()
        await stage.start()
        assert state(stage, "q") == "Open"
        assert stage.names(COMMANDS) == ["kept"]

    assert run(scenario).told.told == [CLOSED, OPENED]


def test_a_command_that_a_finalizer_keeps_holds_no_queue_below_back() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "top")
        queue(stage, "leaf", "top", "Closed")
        command(stage, "OpenQueue", "top", finalizers=["tenant/keep"])
        await stage.settle()
        await send(stage, "OpenQueue", "leaf")
        assert state(stage, "leaf") == "Open"

    run(scenario)


def test_commands_for_others_stay() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        command(stage, "AbortJob", "q", kind="Job")
        await stage.settle()
        assert stage.names(COMMANDS) == ["abortjob-q"]
        assert state(stage, "q") == "Open"

    run(scenario)


def test_an_action_that_there_is_not_is_dropped() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await send(stage, "SyncQueue", "q")
        await send(stage, "PaintQueue", "q")
        assert stage.names(COMMANDS) == []
        assert state(stage, "q") == "Open"

    run(scenario)


def test_the_root_is_not_closed() -> None:
    async def scenario(stage: Play) -> None:
        await send(stage, "CloseQueue", "root")
        assert state(stage, "root") == "Open"

    assert run(scenario).told.told == [("Warning", "CloseQueue", "the root queue cannot be closed")]


def test_what_lies_below_closes_and_opens_with_a_queue() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "top")
        queue(stage, "middle", "top")
        queue(stage, "leaf", "middle")
        queue(stage, "own", "top")
        group(stage, "g", "leaf")
        await stage.settle()
        await send(stage, "CloseQueue", "own")
        await send(stage, "CloseQueue", "top")
        names = ("top", "middle", "leaf", "own")
        assert states(stage, *names) == ["Closed", "Closed", "Closing", "Closed"]
        marks = [annotations(stage.stored(QUEUES, Key("", n))).get(CLOSED_BY_PARENT) for n in names]
        assert marks == [None, "true", "true", None]
        await send(stage, "OpenQueue", "top")
        assert states(stage, *names) == ["Open", "Open", "Open", "Closed"]
        assert annotations(stage.stored(QUEUES, Key("", "leaf"))) == {CLOSED_BY_PARENT: "false"}

    run(scenario)


@pytest.mark.parametrize("parent", ["Closed", "Closing"])
def test_nothing_opens_below_a_queue_that_is_shut(parent: str) -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "top", "root", parent)
        queue(stage, "leaf", "top", "Closed")
        group(stage, "g", "top")
        await send(stage, "OpenQueue", "leaf")
        assert state(stage, "leaf") == "Closed"

    assert run(scenario).told.messages("OpenQueue") == [
        "Failed to open queue leaf because its parent queue top is closing or closed. Open the "
        "parent queue first."
    ]


@pytest.mark.parametrize("called", ["ab", "ba"])
def test_queues_that_are_opened_from_the_top_down_all_open(called: str) -> None:
    """Also where the commands of both come at once, as after the controllers were away."""

    async def scenario(stage: Play) -> None:
        await stage.kill()
        queue(stage, "top", "root", "Closed")
        queue(stage, "leaf", "top", "Closed")
        for name, of_command in zip(["top", "leaf"], called, strict=True):
            command(stage, "OpenQueue", name, called=of_command)
        await stage.start()
        await stage.later(1)
        assert states(stage, "top", "leaf") == ["Open", "Open"]
        assert stage.names(COMMANDS) == []

    assert run(scenario).told.told == [OPENED, OPENED]


def test_a_queue_that_is_moved_follows_its_new_parent() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "shut", "root", "Closed")
        queue(stage, "free", "root", "Open")
        queue(stage, "leaf", "free")
        await stage.settle()
        stage.fake.edit(QUEUES, Key("", "leaf"), {"spec": {"parent": "shut"}})
        await stage.settle()
        assert state(stage, "leaf") == "Closed"
        stage.fake.edit(QUEUES, Key("", "leaf"), {"spec": {"parent": "free"}})
        await stage.settle()
        assert state(stage, "leaf") == "Open"

    run(scenario)


def test_a_queue_made_below_one_that_is_shut_is_shut() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "shut", "root", "Closed")
        await stage.settle()
        queue(stage, "leaf", "shut")
        await stage.settle()
        assert state(stage, "leaf") == "Closed"

    run(scenario)


def test_a_queue_that_a_client_closes_to_delete_it_is_not_opened_in_between() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        seen: list[str] = []

        class Watcher:
            def put(self, resource: object, found: Object) -> None:
                if resource is QUEUES:
                    seen.append((found.get("status") or {}).get("state", ""))

            def drop(self, resource: object, key: Key) -> None:
                seen.append("gone")

        stage.fake.watch(Watcher())
        seen.clear()
        stage.fake.edit(QUEUES, Key("", "q"), {"status": {"state": "Closed"}})
        await stage.settle()
        stage.fake.remove(QUEUES, Key("", "q"))
        await stage.settle()
        assert seen == ["Closed", "gone"]

    run(scenario)


def test_a_queue_that_is_being_deleted_is_left_alone() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q", deletionTimestamp="2026-01-01T00:00:00Z")
        await send(stage, "CloseQueue", "q")
        assert state(stage, "q") == ""
        assert spec(stage.stored(QUEUES, Key("", "q"))) == {}
        assert stage.names(COMMANDS) == []

    run(scenario)


def test_a_refused_command_is_told_of_once() -> None:
    async def scenario(stage: Play) -> None:
        queue(stage, "q")
        await stage.settle()
        stage.fake.fail(
            Failure.REFUSED,
            lambda request: request.subresource == "status",
            message="forbidden",
            times=100,
        )
        command(stage, "CloseQueue", "q")
        await stage.later(60)
        assert stage.names(COMMANDS) == []

    assert run(scenario).told.told == [("Warning", "CloseQueue", "forbidden")]


def test_nobody_is_told_of_a_refusal_that_nobody_asked_for() -> None:
    async def scenario(stage: Play) -> None:
        stage.fake.fail(Failure.REFUSED, lambda request: request.subresource == "status")
        queue(stage, "q")
        await stage.later(1)
        assert state(stage, "q") == "Open"

    assert run(scenario).told.told == []


@pytest.mark.parametrize("after", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("good", range(12))
def test_a_controller_killed_in_the_middle_of_closing_a_tree_goes_on(
    good: int, after: bool
) -> None:
    names = [f"q{number}" for number in range(4)]

    async def scenario(stage: Play) -> None:
        for number, name in enumerate(names):
            queue(stage, name, names[number - 1] if number else "root")
        await stage.settle()
        done = len(stage.fake.requests) + good
        stage.fake.fail(
            Failure.PASSING, lambda _: len(stage.fake.requests) > done, times=100, after=after
        )
        await send(stage, "CloseQueue", "q0")
        await stage.kill()
        stage.fake.faults.clear()
        await stage.start()
        assert states(stage, *names) == ["Closed"] * 4
        await send(stage, "OpenQueue", "q0")
        assert states(stage, *names) == ["Open"] * 4

    run(scenario)
