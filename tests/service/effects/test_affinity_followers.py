"""Members that must be near others of their gang are told after these have come to Bind."""

from dataclasses import replace

from app.core.placement.affinity_followers import Terms
from app.model.pod import GATE, TASK_SPEC
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement
from app.service.calls.filtering import Chosen
from app.service.effects.actuator import log_failure
from app.service.effects.affinity_followers import AffinityFollowers
from app.service.telling.explanations import slots_to_pin
from tests.builders import make_shape
from tests.service.rig import GONE, Rig, running, working
from tests.service.virtual_time import advance, settle

HOST = "kubernetes.io/hostname"
SERVER = {"part": "server"}
WORKER = {"part": "worker"}


def near(labels: dict[str, str]) -> Terms:
    """It must be on a node with a pod of these labels."""
    chosen = LabelSelector(tuple(Requirement(k, Operator.IN, (v,)) for k, v in labels.items()))
    return (PodTerm(HOST, chosen, namespaces=("default",)),)


def worker_shape() -> PodShape:
    identity = ("default", tuple(WORKER.items()))
    return make_shape(pod_affinity=near(SERVER), spread_identity=identity)


def gang(rig: Rig, *, gated: bool) -> None:
    """Two workers and the server that they must be near, which is created last."""
    gates = (GATE,) if gated else ()
    rig.node("n1", "n2")
    rig.group("g", minimum=3)
    for name in ("w0", "w1"):
        rig.pod(name, group="g", gates=gates, labels=WORKER, shape=worker_shape())
    rig.pod("server", group="g", gates=gates, labels=SERVER)


def told(rig: Rig, verb: str) -> set[str]:
    return {write.target.partition("/")[2] for write in rig.api.of(verb)}


async def test_gates_of_workers_open_when_their_server_is_at_bind() -> None:
    rig = Rig()
    gang(rig, gated=True)
    with working(rig):
        await advance(3)
        assert {rig.place(name) for name in ("w0", "w1", "server")} == {rig.place("server")}
        assert told(rig, "patch") == {"server"}
        rig.store(replace(rig.api.pods["default/server"], gates=()))
        call = rig.bind("server")
        await advance(0.1)
        assert told(rig, "patch") == {"server", "w0", "w1"}
        assert not call.done


async def test_workers_without_a_gate_are_woken_by_label_when_their_server_is_at_bind() -> None:
    """kube-scheduler has refused them by its own rule: it asks nobody, and heeds no annotation."""

    rig = Rig()
    gang(rig, gated=False)
    with working(rig):
        await advance(3)
        assert not rig.api.of("wake by label")
        rig.bind("server")
        await advance(0.1)
        assert told(rig, "wake by label") == {"w0", "w1"}
        await advance(3)
        assert len(rig.api.of("wake by label")) == 2
        assert isinstance(rig.filter("w0"), Chosen)


async def test_workers_of_a_server_that_is_made_anew_wait_for_the_new_one() -> None:
    rig = Rig()
    gang(rig, gated=True)
    with working(rig):
        await advance(1)
        rig.delete("server")
        await advance(1)
        rig.pod("again", group="g", labels=SERVER)
        await advance(1)
        assert told(rig, "patch") == {"server"}
        rig.bind("again")
        await advance(0.1)
        assert told(rig, "patch") == {"server", "w0", "w1"}


async def test_a_worker_whose_gate_could_not_be_opened_is_told_again() -> None:
    rig = Rig()
    gang(rig, gated=True)
    with working(rig):
        await advance(1)
        rig.api.fails["patch"] = [GONE, GONE]
        rig.bind("server")
        await advance(20)
        assert told(rig, "patch") == {"server", "w0", "w1"}


async def test_places_kept_for_followers_are_not_pinned_to() -> None:
    """Pods that are created pinned have no gate: kube-scheduler would refuse them at once."""

    rig = Rig()
    rig.node("n1", "n2")
    rig.group("g", minimum=4, role_minimum={"server": 1, "worker": 3})
    for name, labels, shape in (("worker", WORKER, worker_shape()), ("server", SERVER, None)):
        fields = {} if shape is None else {"shape": shape}
        role = {TASK_SPEC: name}
        rig.pod(name, group="g", gates=(GATE,), labels=labels, annotations=role, **fields)
    await rig.cycle()
    await settle()
    group = rig.cache.groups[rig.key("g")]
    assert {slot.role for slot in group.slots.values()} == {"worker"}
    assert slots_to_pin(rig.cache, group) == {}
    rig.bind("server")
    await settle()
    assert slots_to_pin(rig.cache, group) == {"worker": (rig.place("server"),) * 2}


async def test_groups_that_are_gone_are_forgotten() -> None:
    rig = Rig()
    gang(rig, gated=True)
    group = rig.cache.groups[rig.key("g")].pod_group
    await rig.cycle()
    following = AffinityFollowers(rig.cache, tell=lambda _: None, failed=log_failure)
    with running(following.run()):
        following.look(rig.key("g"))
        await settle()
        assert len(following) == 1
        rig.delete("server", "w0", "w1")
        rig.unsee("podgroups", group)
        following.after_cycle([rig.key("g")])
        assert len(following) == 0
