"""Filter: the published plan, read; the same answer however often; one constant text per cause."""

from dataclasses import replace

import pytest

from app.cache.gangs.members import Stage
from app.core.texts import filter_text
from app.model.ids import NodeName, PodUid, QueueName
from app.model.pod import EXCHANGE, GATE, GROUP_ANNOTATION, TASK_SPEC
from app.model.reason import Cause
from app.model.shape import LabelSelector, Spread
from app.model.snapshot import Veto
from app.model.workload import GroupPhase, QueueState
from app.service.calls.filtering import Chosen, Everything, Protect, Question, Some, Wait
from app.service.limits import Limits, PlacementHint
from tests.builders import make_node, make_pod, make_queue, make_shape, make_spread_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance

PROMISED = "room is reserved for a gang"


def wait(cause: Cause) -> Wait:
    return Wait(filter_text(cause))


# --- pods of ours ---------------------------------------------------------------------------------


async def test_a_planned_pod_gets_its_one_node_however_often_it_asks() -> None:
    rig = Rig()
    rig.node("n1", "n2", "n3")
    names = rig.gang("g", size=3)
    await rig.cycle()
    before = rig.has_reservations()
    answers = [[rig.filter(name) for name in names] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0] == [Chosen(NodeName(rig.place(name))) for name in names]
    assert rig.has_reservations() == before


async def test_a_pod_that_nobody_planned_yet_is_planned_on_demand() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    assert [rig.filter(name) for name in names] == [Chosen(NodeName("n1"))] * 2
    assert rig.planning.log.on_demand == 1


async def test_a_gang_without_room_waits_whole_and_is_asked_about_once() -> None:
    rig = Rig()
    rig.node("n1", "n2", "n3", cpu=1500)
    names = rig.gang("g", size=2, shape=make_shape(cpu=2000))
    answers = {rig.filter(name) for name in names}
    assert answers == {wait(Cause.NOT_ENOUGH_RESOURCES)}
    assert rig.has_reservations() == 0
    assert rig.planning.log.on_demand == 1, "a refusal stands until something was given back"


async def test_members_wait_for_the_others_and_the_last_one_brings_the_plan() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=3)
    await rig.cycle()
    for i in range(2):
        rig.pod(f"g-{i}", group="g")
        assert isinstance(rig.filter(f"g-{i}"), Wait)
        assert isinstance(rig.filter(f"g-{i}"), Wait)
    assert rig.planning.log.on_demand == 0
    rig.pod("g-2", group="g")
    assert rig.filter("g-2") == Chosen(NodeName("n1")), "at once, without waiting for a cycle"
    assert rig.planning.log.on_demand == 1


async def test_so_does_the_one_of_the_role_that_is_needed() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2, role_minimum={"leader": 1})
    await rig.cycle()
    for i in range(3):
        rig.pod(f"w-{i}", group="g", annotations={TASK_SPEC: "worker"})
        assert isinstance(rig.filter(f"w-{i}"), Wait)
    assert rig.planning.log.on_demand == 0
    rig.pod("leader", group="g", annotations={TASK_SPEC: "leader"})
    assert rig.filter("leader") == Chosen(NodeName("n1"))


async def test_a_group_that_is_not_admitted_waits() -> None:
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue("closed", state=QueueState.CLOSED))
    for name, queue, cause in (
        ("c", "closed", Cause.QUEUE_CLOSED),
        ("m", "missing", Cause.QUEUE_MISSING),
    ):
        rig.group(name, minimum=1, queue=QueueName(queue), phase=GroupPhase.PENDING)
        rig.pod(f"{name}-0", group=name)
        assert rig.filter(f"{name}-0") == wait(cause)


async def test_a_pod_whose_group_does_not_exist_waits_for_it() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", group="none")
    assert rig.filter("p") == wait(Cause.GROUP_MISSING)
    await rig.cycle()
    assert rig.filter("p") == wait(Cause.GROUP_MISSING)
    rig.group("none", minimum=1)
    await rig.cycle()
    assert rig.filter("p") == Chosen(NodeName("n1"))


async def test_a_pod_that_the_watch_has_not_shown_is_taken_from_the_call() -> None:
    rig = Rig()
    rig.node("n1")
    rig.api.pods["default/new"] = make_pod("new")
    assert rig.filter("new") == Chosen(NodeName("n1"))
    assert rig.member("new").observed
    await advance(60)
    await rig.cycle()
    assert PodUid("uid-new") not in rig.cache.members, "the watch never showed it"
    assert rig.has_reservations() == 0


@pytest.mark.parametrize("watched", [True, False], ids=["as the watch says", "as the call says"])
async def test_a_pod_that_is_over_goes_nowhere(watched: bool) -> None:
    rig = Rig()
    rig.node("n1")
    over = make_pod("over", annotations={GROUP_ANNOTATION: "gone"}, phase="Failed")
    if watched:
        rig.store(over)
        over = replace(over, phase="Pending")
    await rig.cycle()
    rig.api.pods[over.key] = over
    assert rig.filter("over") == wait(Cause.GROUP_MISSING)
    assert not rig.cache.members


async def test_a_known_pod_is_not_decoded() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")

    def decode() -> None:
        raise AssertionError("decoded")

    question = Question(PodUid("uid-p"), decode, [NodeName("n1")])  # type: ignore[arg-type]
    assert rig.parts.filtering.answer(question) == Chosen(NodeName("n1"))


async def test_a_pinned_pod_gets_its_node_or_waits() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p", pinned=NodeName("n2"))
    await rig.cycle()
    assert rig.filter("p", ["n2"]) == Chosen(NodeName("n2"))
    rig.pod("q", pinned=NodeName("n2"), shape=make_shape(cpu=8000))
    await rig.cycle()
    assert isinstance(rig.filter("q", ["n2"]), Wait)
    assert rig.place("q") == ""


async def test_a_nominated_node_that_is_not_the_planned_one_is_only_refused() -> None:
    """One name is a guess of the scheduler, not everything there is: no veto."""

    rig = Rig()
    rig.node("n1", "n2", "n3")
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    other = next(name for name in ("n1", "n2", "n3") if name != planned)
    assert isinstance(rig.filter("p", [other]), Wait)
    assert rig.filter("p") == Chosen(NodeName(planned))
    assert len(rig.planning.vetoes) == 0


async def test_a_planned_node_that_was_not_offered_is_a_veto_and_another_is_found() -> None:
    rig = Rig(Limits(veto_s=60.0))
    rig.node("n1", "n2", "n3")
    rig.pod("p")
    await rig.cycle()
    vetoed = rig.place("p")
    offered = [name for name in ("n1", "n2", "n3") if name != vetoed]
    answer = rig.filter("p", offered)
    assert isinstance(answer, Chosen)
    assert answer.node in offered
    shape = rig.member("p").pod.shape
    now = rig.clock()
    assert rig.planning.vetoes.active(now=now) == {Veto(shape, NodeName(vetoed))}
    rig.pod("like-it")
    await rig.cycle()
    assert rig.place("like-it") != vetoed
    assert rig.planning.vetoes.active(now=now + 60) == frozenset()


async def test_vetoes_everywhere_make_the_gang_wait_and_give_its_room_back() -> None:
    rig = Rig(Limits(stuck_s=3.0))
    rig.node("n1", "n2", "n3", cpu=1000)
    names = rig.gang("g", size=3)
    await rig.cycle()
    first = rig.place(names[0])
    others = [name for name in ("n1", "n2", "n3") if name != first]
    held_s = 0.0
    while rig.has_reservations():
        if rig.place(names[0]):
            assert isinstance(rig.filter(names[0], others), Wait)
            assert rig.place(names[0]) == ""
        await advance(0.25)
        held_s += 0.25
        assert held_s < 5, "the rest of the gang does not keep what it cannot use"
        rig.cache.signals.dirty = True
        await rig.cycle()


async def test_a_sample_that_lacks_the_planned_node_is_no_veto() -> None:
    rig = Rig()
    rig.node(*(f"n{i:03}" for i in range(300)))
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    sample = [name for name in (f"n{i:03}" for i in range(300)) if name != planned][:100]
    answer = rig.filter("p", sample)
    assert isinstance(answer, Chosen)
    assert answer.node in sample
    assert rig.place("p") == answer.node
    assert len(rig.planning.vetoes) == 0
    assert rig.has_reservations() == 1


async def test_samples_before_its_nomination_do_not_move_a_pod_that_keeps_its_place() -> None:
    """Three pods that take turns begin at the same nodes each time: two samples say nothing."""
    rig = Rig()
    rig.node(*(f"n{number:03}" for number in range(150)), cpu=2000)
    rig.node("best", cpu=8000)
    pod = rig.pod("p", annotations={EXCHANGE: "false"})
    await rig.cycle()
    sample = [f"n{number:03}" for number in range(100)]
    for _ in range(3):
        assert isinstance(rig.filter("p", sample), Wait)
    assert rig.place("p") == "best"
    rig.store(replace(pod, nominated=NodeName("best")))
    assert isinstance(rig.filter("p", sample), Chosen), "its node was looked at first, in vain"


async def test_without_a_nomination_samples_are_a_veto_in_the_end() -> None:
    rig = Rig()
    rig.node(*(f"n{number:03}" for number in range(150)), cpu=2000)
    rig.node("best", cpu=8000)
    rig.pod("p", annotations={EXCHANGE: "false"})
    await rig.cycle()
    sample = [f"n{number:03}" for number in range(100)]
    answers = [rig.filter("p", sample) for _ in range(5)]
    assert [isinstance(answer, Wait) for answer in answers] == [True] * 4 + [False]


EVENLY = Spread(1, "kubernetes.io/hostname", hard=True, selector=LabelSelector())


async def test_members_that_must_be_spread_take_one_another_s_places() -> None:
    """kube-scheduler offers only the emptier node: the other one may be had a moment later."""

    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    names = rig.gang("g", size=4, shape=make_spread_shape(EVENLY))
    await rig.cycle()
    here = rig.place(names[0])
    there = "n1" if here == "n2" else "n2"
    at_home = [name for name in names if rig.place(name) == here]
    assert rig.filter(at_home[0]) == Chosen(NodeName(here))
    assert rig.filter(at_home[1], [there]) == Chosen(NodeName(there))
    assert len(rig.planning.vetoes) == 0
    assert sorted(map(rig.place, names)) == ["n1", "n1", "n2", "n2"]


async def test_a_pod_that_must_be_spread_waits_where_nobody_can_change_with_it() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=1000)
    names = rig.gang("g", size=2, shape=make_spread_shape(EVENLY))
    await rig.cycle()
    place, other = map(rig.place, names)
    assert rig.filter(names[1]) == Chosen(NodeName(other))
    assert isinstance(rig.filter(names[0], [other]), Wait)
    assert rig.place(names[0]) == place, "its node may be offered next time"
    assert isinstance(rig.filter(names[0], [other]), Wait)
    assert len(rig.planning.vetoes) == 1, "it was not, of as many names as there are nodes"


async def test_a_pod_at_bind_keeps_its_node_whatever_is_offered() -> None:
    rig = Rig()
    rig.node("n1", "n2", "n3")
    rig.gang("g", size=2)
    await rig.cycle()
    call = rig.bind("g-0")
    await advance(0)
    place = rig.place("g-0")
    others = [name for name in ("n1", "n2", "n3") if name != place]
    assert isinstance(rig.filter("g-0", others), Wait)
    assert rig.member("g-0").stage is Stage.ASSUMED
    assert rig.filter("g-0") == Chosen(NodeName(place))
    call.hang_up()


async def test_asking_puts_off_the_time_out_of_a_planned_pod() -> None:
    rig = Rig(Limits(planned_s=30.0))
    rig.node("n1")
    rig.pod("p")
    await rig.cycle()
    for _ in range(4):
        await advance(20)
        assert rig.filter("p") == Chosen(NodeName("n1"))
        await rig.cycle()
    assert rig.planning.log.on_demand == 0


# --- many that wait -------------------------------------------------------------------------------


async def test_a_crowd_of_waiting_pods_is_answered_with_an_error() -> None:
    rig = Rig(Limits(protect_above=3))
    rig.node("n1", cpu=1000)
    names = rig.gang("big", size=5)
    await rig.cycle()
    text = filter_text(rig.refusals[rig.key("big")].cause)
    answers = [rig.filter(name) for name in names]
    assert answers == [Wait(text)] * 3 + [Protect(text)] * 2
    assert rig.filter(names[0]) == Protect(text)
    assert rig.parts.filtering.waiting() == 5


async def test_pods_that_went_away_or_got_their_place_are_no_crowd() -> None:
    rig = Rig(Limits(protect_above=3))
    rig.node("n1", cpu=1000)
    names = rig.gang("big", size=5)
    await rig.cycle()
    for name in names:
        rig.filter(name)
    rig.delete(*names[1:])
    rig.pod("alone", shape=make_shape(cpu=5000), created=-1.0)
    await advance(2)
    await rig.cycle()
    assert isinstance(rig.filter("alone"), Wait)
    assert rig.parts.filtering.waiting() == 2
    rig.node("n2")
    await rig.cycle()
    assert rig.filter("alone") == Chosen(NodeName("n2"))
    assert rig.parts.filtering.waiting() == 1


@pytest.mark.parametrize("cause", Cause)
def test_no_text_has_a_number_in_it(cause: Cause) -> None:
    text = filter_text(cause)
    assert text
    assert not any(character.isdigit() for character in text)


# --- guided placement -----------------------------------------------------------------------------


async def test_guided_pods_may_go_to_every_offered_node_with_room() -> None:
    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    rig.node("n1", "n2")
    rig.node("tiny", cpu=100)
    rig.pod("p")
    await rig.cycle()
    answer = rig.filter("p")
    assert isinstance(answer, Some)
    assert set(answer.nodes) == {"n1", "n2"}
    scores = dict(rig.parts.filtering.scores(_question(rig, "p", ["n1", "n2"])))
    assert set(scores) == {"n1", "n2"}
    assert all(0 <= score <= 10 for score in scores.values())


async def test_the_planned_node_scores_highest() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    scores = dict(rig.parts.filtering.scores(_question(rig, "p", ["n1", "n2"])))
    assert scores == {name: 10 * (name == planned) for name in ("n1", "n2")}


async def test_scores_of_pods_that_are_not_ours_say_nothing() -> None:
    rig = Rig()
    rig.node("n1")
    rig.api.pods["default/x"] = make_pod("x", scheduler="default-scheduler")
    assert rig.parts.filtering.scores(_question(rig, "x", ["n1", "nowhere"])) == [
        ("n1", 0),
        ("nowhere", 0),
    ]


async def test_a_waiting_pod_is_rated_by_the_policies_and_unknown_nodes_get_nothing() -> None:
    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("used", node=NodeName("n1"), shape=make_shape(cpu=6000))
    rig.pod("p", gates=("example.com/other",))
    rated = rig.parts.filtering.scores(_question(rig, "p", ["n1", "n2", "nowhere"]))
    assert [name for name, _ in rated] == ["n1", "n2", "nowhere"]
    used, empty, unknown = (score for _, score in rated)
    assert unknown == 0
    assert used < empty == 10


def _question(rig: Rig, name: str, nodes: list[str]) -> Question:
    pod = rig.api.pods[f"default/{name}"]
    return Question(pod.uid, lambda: pod, [NodeName(node) for node in nodes])


# --- the guard (form C) ---------------------------------------------------------------------------


def guarded() -> Rig:
    """Two nodes; a gang has 6 of the 8 CPUs of n1."""
    rig = Rig()
    rig.node("n1", "n2")
    rig.group("g", minimum=6)
    for i in range(6):
        rig.pod(f"g-{i}", group="g", pinned=NodeName("n1"))
    rig.api.pods["default/x"] = make_pod(
        "x", scheduler="default-scheduler", shape=make_shape(cpu=3000)
    )
    return rig


async def test_foreign_pods_pass_untouched_while_nothing_is_reserved() -> None:
    rig = guarded()
    assert rig.filter("x") == Everything()


async def test_foreign_pods_may_not_take_reserved_room() -> None:
    rig = guarded()
    await rig.cycle()
    assert rig.has_reservations() == 6
    assert rig.filter("x") == Some((NodeName("n2"),), PROMISED)
    assert rig.filter("x", ["n1"]) == Some((), PROMISED)
    assert rig.filter("x", ["n2"]) == Everything()


async def test_foreign_pods_that_fit_beside_the_reservation_pass() -> None:
    rig = guarded()
    await rig.cycle()
    small = make_pod("x", scheduler="default-scheduler", shape=make_shape(cpu=2000))
    rig.api.pods["default/x"] = small
    assert rig.filter("x") == Everything()


async def test_foreign_pods_that_ask_for_what_is_not_reserved_pass() -> None:
    """The gang has all memory; a pod that asks for none is not kept off."""

    rig = Rig()
    rig.node("n1", memory=1 << 30)
    rig.pod("p")
    await rig.cycle()
    other = make_pod("x", scheduler="default-scheduler", shape=make_shape(memory=0))
    rig.api.pods["default/x"] = other
    assert rig.filter("x") == Everything()


async def test_nodes_the_cache_does_not_know_pass_the_guard() -> None:
    rig = guarded()
    await rig.cycle()
    assert rig.filter("x", ["n1", "brand-new"]) == Some((NodeName("brand-new"),), PROMISED)
    rig.unsee("nodes", make_node("n1"))
    assert rig.filter("x", ["n1", "n2"]) == Everything()


# --- odd pods -------------------------------------------------------------------------------------


async def test_a_pod_that_is_bound_already_is_answered_and_takes_nothing() -> None:
    """kube-scheduler's cache is behind: whatever is answered, Bind will tell it."""

    rig = Rig()
    rig.node("n1", "n2")
    rig.pod("p", node=NodeName("n1"))
    rig.filter("p")
    assert rig.has_reservations() == 0
    assert rig.place("p") == ""


async def test_a_pod_behind_our_gate_or_another_s_is_not_refused_a_later_plan() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("mine", gates=(GATE,))
    rig.pod("theirs", gates=("example.com/other",))
    await rig.cycle()
    assert rig.place("mine") == "n1"
    assert rig.place("theirs") == ""
    rig.store(replace(rig.api.pods["default/theirs"], gates=()))
    await rig.cycle()
    assert rig.place("theirs") == "n1"


async def test_a_pod_that_moves_to_another_group_is_planned_with_that_one() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("a", size=2)
    rig.group("b", minimum=1)
    await rig.cycle()
    moved = replace(rig.api.pods["default/a-0"], annotations={GROUP_ANNOTATION: "b"})
    rig.store(moved)
    assert rig.filter("a-0") == Chosen(NodeName("n1"))
    assert rig.member("a-0").group == rig.key("b")
