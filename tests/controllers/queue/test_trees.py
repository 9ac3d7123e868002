"""Trees of queues under whatever people do to them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.controllers.ports import Failure
from app.controllers.queue.controller import INDEXES, QueueController
from app.controllers.runtime import Controller
from app.wire.kinds import COMMANDS, POD_GROUPS, QUEUES
from app.wire.unstructured import Key, Object, annotations, name, spec
from tests.controllers import play
from tests.controllers.play import Play, item
from tests.scale import examples

SHUT = {"Closed", "Closing"}
_NAMES = st.sampled_from("abcd")
_ACTS = st.one_of(
    st.tuples(st.just("move"), _NAMES, st.sampled_from(["a", "b", "c", "d", "root"])),
    st.tuples(st.just("OpenQueue"), _NAMES, st.none()),
    st.tuples(st.just("CloseQueue"), _NAMES, st.none()),
    st.tuples(st.just("fill"), _NAMES, st.none()),
    st.tuples(st.just("empty"), _NAMES, st.none()),
    st.tuples(st.just("fail"), _NAMES, st.booleans()),
    st.tuples(st.just("settle"), _NAMES, st.none()),
)


def build(stage: Play) -> list[Controller]:
    return [QueueController(stage.stores, api=stage.api, events=stage.events)]


def is_below(stage: Play, queue: str, top: str) -> bool:
    while queue != "root":
        if queue == top:
            return True
        queue = spec(stage.stored(QUEUES, Key("", queue))).get("parent") or "root"
    return False


def act(stage: Play, what: str, queue: str, how: Any) -> None:
    group = Key("ns", f"g-{queue}")
    if what == "move" and not is_below(stage, how, queue):
        stage.fake.edit(QUEUES, Key("", queue), {"spec": {"parent": how}})
    elif what == "fill":
        stage.fake.put(POD_GROUPS, item(POD_GROUPS, group.name, spec={"queue": queue}))
    elif what == "empty" and stage.fake.find(POD_GROUPS, group):
        stage.fake.remove(POD_GROUPS, group)
    elif what == "fail":
        stage.fake.fail(Failure.PASSING, lambda _: True, after=how)
    elif what in ("OpenQueue", "CloseQueue"):
        target = {"kind": "Queue", "name": queue}
        command = f"command-{len(stage.names(COMMANDS))}"
        stage.fake.put(COMMANDS, item(COMMANDS, command, action=what, target=target))


def state(queue: Object) -> str:
    return str((queue.get("status") or {}).get("state"))


@examples(50)
@given(st.lists(_ACTS, max_size=25))
def test_in_the_end_every_queue_is_as_its_groups_and_its_parent_say(acts: list[Any]) -> None:
    async def scenario(stage: Play) -> None:
        for each in ("root", "a", "b", "c", "d"):
            stage.fake.put(QUEUES, item(QUEUES, each, spec={}))
        await stage.start()
        for what, queue, how in acts:
            act(stage, what, queue, how)
            if what == "settle":
                await stage.later(1)
        await stage.later(60)
        requests = len(stage.fake.requests)
        await stage.later(60)

        assert len(stage.fake.requests) == requests
        assert stage.names(COMMANDS) == []
        queues = {name(each): each for each in stage.fake.all(QUEUES)}
        full = {spec(each)["queue"] for each in stage.fake.all(POD_GROUPS)}
        for each, queue in queues.items():
            parent = queues.get(spec(queue).get("parent", ""))
            if state(queue) == "Closing":
                assert each in full
            if parent is not None and state(parent) in SHUT:
                assert state(queue) in SHUT
            elif annotations(queue).get("volcano.sh/closed-by-parent") == "true":
                assert state(queue) not in SHUT
        assert state(queues["root"]) == "Open"

    play.run(scenario, follows=INDEXES, build=build)
