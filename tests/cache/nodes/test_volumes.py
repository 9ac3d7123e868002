"""Volumes: what there is of them, and what pods with a place use."""

from __future__ import annotations

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import NodeName
from app.model.shape import ClaimSpec
from app.model.volumes import CsiDriver, NodeVolumes, StorageCapacity, Users, VolumeAttachment
from tests.builders import GIB, make_shape
from tests.cache.rig import OTHER
from tests.cache.rig import Rig as Small
from tests.volumes import DRIVER, FAST, claim, limit, using, volume

N = NodeName("n")


class Rig(Small):
    """The claim ``data`` has the volume ``pv``, ``later`` waits for one."""

    def __init__(self) -> None:
        super().__init__()
        self.cache.volumes.set_known(known=True)
        self.cache.volumes.set_class(FAST)
        self.cache.volumes.set_volume(volume("pv", claim="default/data"))
        self.cache.volumes.set_claim(claim("data", volume="pv"))
        self.cache.volumes.set_claim(claim("later"))
        self.snapshots = Snapshotter(self.cache)

    def want(self, name: str, *claims: str, **fields: object) -> None:
        shape = make_shape(volumes=using(*claims, own=fields.pop("own", ())))  # type: ignore[arg-type]
        self.pod(name, shape=shape, **fields)

    def on(self, node: NodeName = N) -> NodeVolumes:
        return self.snapshots.snapshot().volumes.on_nodes.get(node, NodeVolumes())

    def attached(self, node: NodeName = N) -> dict[str, Users]:
        return {name: users for (_, name), users in self.on(node).attached.items()}


def test_a_place_uses_the_volumes_of_its_pod() -> None:
    rig = Rig()
    rig.want("a", "data", "later", own=(ClaimSpec("fast", GIB),))
    assert rig.on() == NodeVolumes() or not rig.attached()
    assert rig.place(a="n")
    one = Users(1, 1)
    assert rig.attached() == {"handle-pv": one, "default/later: to be made": one}
    assert rig.on().own == {DRIVER: one}
    assert rig.on().claims == {"default/later": one}
    assert rig.on().to_make == ((ClaimSpec("fast", GIB), one),)


def test_what_a_pod_has_made_is_not_to_be_made_once_it_is_bound() -> None:
    rig = Rig()
    rig.want("a", own=(ClaimSpec("fast", GIB),), node=N, phase="Running")
    assert rig.on().own == {DRIVER: Users(1, 1)}
    assert rig.on().to_make == ()


def test_pods_of_other_schedulers_count() -> None:
    rig = Rig()
    for name in ("a", "b"):
        rig.want(name, "data", node=N, phase="Running", scheduler=OTHER)
    assert rig.attached() == {"handle-pv": Users(2, 2)}


def test_a_slot_counts() -> None:
    rig = Rig()
    assert rig.slot("n", shape=make_shape(volumes=using("data")))
    assert rig.attached() == {"handle-pv": Users(1, 1)}


def test_a_pod_that_terminates_uses_its_volumes_until_it_is_gone() -> None:
    rig = Rig()
    rig.want("a", "data", node=N, phase="Running")
    rig.want("a", "data", node=N, phase="Running", deleting=True)
    assert rig.attached() == {"handle-pv": Users(1, 0)}
    rig.cache.drop_pod(rig.uid("a"))
    assert rig.attached() == {}


def test_what_is_news_of_a_claim_is_counted_anew() -> None:
    rig = Rig()
    rig.want("a", "later", node=N, phase="Running")
    assert rig.attached() == {"default/later: to be made": Users(1, 1)}
    rig.cache.volumes.set_volume(volume("made", claim="default/later"))
    rig.cache.volumes.set_claim(claim("later", volume="made"))
    assert rig.attached() == {"handle-made": Users(1, 1)}
    assert rig.on().claims == {}


def test_what_is_known_is_told() -> None:
    rig = Rig()
    volumes = rig.cache.volumes
    volumes.set_driver(CsiDriver(DRIVER, True))
    volumes.set_csi_node(limit("n", 3))
    volumes.set_capacity(StorageCapacity("k/s", "fast", None, GIB))
    storage = rig.snapshots.snapshot().volumes.storage
    assert storage.known
    assert set(storage.claims) == {"default/data", "default/later"}
    assert set(storage.volumes) == {"pv"}
    assert set(storage.classes) == {"fast"}
    assert set(storage.drivers) == {DRIVER}
    assert set(storage.nodes) == {"n"}
    assert set(storage.capacities) == {"k/s"}
    volumes.drop_claim("default/data")
    volumes.drop_claim("default/later")
    volumes.drop_volume("pv")
    volumes.drop_class("fast")
    volumes.drop_driver(DRIVER)
    volumes.drop_csi_node("n")
    volumes.drop_capacity("k/s")
    left = rig.snapshots.snapshot().volumes.storage
    for each in (left.claims, left.volumes, left.classes, left.drivers, left.nodes):
        assert not each
    assert not left.capacities
    assert storage.claims, "a snapshot does not change"


def test_what_is_attached_is_told_and_makes_room_when_it_is_gone() -> None:
    rig = Rig()

    def there() -> set[str]:
        return set(rig.snapshots.snapshot().volumes.storage.attachments)

    for node in ("n", "m"):
        rig.cache.volumes.set_attachment(VolumeAttachment(f"on-{node}", NodeName(node), "pv"))
    assert there() == {"on-n", "on-m"}
    outlook = rig.cache.registry.outlook
    rig.cache.volumes.drop_attachment("on-n")
    assert rig.cache.registry.outlook > outlook
    assert there() == {"on-m"}


def test_groups_are_looked_at_again_when_a_claim_gets_its_volume() -> None:
    rig = Rig()
    rig.snapshots.snapshot()
    before = rig.cache.registry.outlook
    rig.cache.volumes.set_claim(claim("later"))
    assert rig.cache.registry.outlook == before, "it is as it was"
    rig.cache.volumes.set_claim(claim("later", volume="made"))
    assert rig.cache.registry.outlook != before


def test_nothing_is_known_while_claims_cannot_be_read() -> None:
    rig = Rig()
    rig.cache.volumes.set_known(known=False)
    assert not rig.snapshots.snapshot().volumes.storage.known
