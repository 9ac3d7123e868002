"""What becomes of the claims of a pod, whatever node it gets, and what pods use on a node.

A claim is *settled* when it has its volume for good. One that *waits* gets a volume once a pod that
uses it has a node: one that exists and can be reached from there, or a new one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.kit.quantities import amount_text
from app.model.ids import NO_NODE
from app.model.shape import ClaimSpec, VolumeAsk
from app.model.volumes import (
    NO_PROVISIONER,
    NodeVolumes,
    PersistentVolume,
    PodVolumes,
    Storage,
    StorageClass,
    Users,
    VolumeClaim,
    VolumeId,
)

_STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a pod by what becomes of them; ``trouble`` is why no node will do, or empty.

    ``bound`` are the volumes that it uses, ``waiting`` the claims that wait, ``one_pod`` the keys
    of those that one pod may use at a time. ``ids`` are volumes to attach, and ``own`` the drivers
    of those that are made for no other pod.
    """

    trouble: str = ""
    bound: tuple[PersistentVolume, ...] = ()
    waiting: tuple[VolumeClaim, ...] = ()
    one_pod: tuple[str, ...] = ()
    ids: tuple[VolumeId, ...] = ()
    own: tuple[str, ...] = ()


def claims_of(ask: VolumeAsk, storage: Storage) -> Claims:
    """What becomes of the claims that a pod uses; of its own volumes only the drivers are told."""
    bound, waiting, one_pod = [], [], []
    for key in ask.claims:
        claim = storage.claims.get(key)
        why = f"claim {key} does not exist" if claim is None else trouble_of(claim, storage)
        if claim is None or why:
            return Claims(trouble=why)
        if claim.is_for_one_pod:
            one_pod.append(key)
        if not claim.bound:
            waiting.append(claim)
        elif claim.volume in storage.volumes:
            bound.append(storage.volumes[claim.volume])
    for spec in ask.own:
        if class_name(spec, storage) and class_of(spec, storage) is None:
            return Claims(trouble=f"StorageClass {spec.storage_class} does not exist")
    ids, own = _attached(ask, storage)
    return Claims(
        bound=tuple(bound),
        waiting=tuple(sorted(waiting, key=lambda claim: (claim.spec.size, claim.key))),
        one_pod=tuple(one_pod),
        ids=tuple(dict.fromkeys(ids)),
        own=tuple(own),
    )


def trouble_of(claim: VolumeClaim, storage: Storage) -> str:
    """Why no node will do for a pod with that claim; empty: there may be one."""
    if claim.deleting:
        return f"claim {claim.key} is being deleted"
    if claim.lost:
        return f"volume {claim.volume} of claim {claim.key} does not exist any more"
    if claim.bound:
        return ""
    if claim.volume:
        return f"claim {claim.key} is not bound to volume {claim.volume} yet"
    name, found = class_name(claim.spec, storage), class_of(claim.spec, storage)
    if name and found is None:
        return f"StorageClass {name} of claim {claim.key} does not exist"
    if found is None or not found.waits:
        return f"claim {claim.key} has no volume yet"
    return ""


def class_name(spec: ClaimSpec, storage: Storage) -> str:
    """The name of the class of a claim, the default one where it names none; empty: it has none."""
    if spec.storage_class is not None:
        return spec.storage_class
    defaults = (name for name, each in sorted(storage.classes.items()) if each.is_default)
    return next(defaults, "")


def class_of(spec: ClaimSpec, storage: Storage) -> StorageClass | None:
    """The class of a claim; None: it has none, or it does not exist."""
    return storage.classes.get(class_name(spec, storage))


def provisioner_of(spec: ClaimSpec, storage: Storage) -> str:
    """The driver that makes volumes for a claim; empty: there is none."""
    found = class_of(spec, storage)
    return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner


def serves(volume: PersistentVolume, claim: VolumeClaim | None, spec: ClaimSpec) -> bool:
    """Whether the volume may become that of the claim, be it of the class of it or not.

    ``claim`` None: it is one that is made for a pod.
    """
    if volume.deleting or volume.size < spec.size or volume.block is not spec.block:
        return False
    if claim is not None and volume.claim == claim.key:
        return True
    if volume.claim or not volume.available or not set(spec.modes) <= set(volume.modes):
        return False
    return spec.selector is None or spec.selector.matches(volume.labels)


def node_volumes(pods: Iterable[PodVolumes], storage: Storage) -> NodeVolumes:
    """What these pods use on their node."""
    attached: dict[VolumeId, Users] = {}
    own: dict[str, Users] = {}
    claims: dict[str, Users] = {}
    to_make: list[tuple[ClaimSpec, Users]] = []
    for pod in pods:
        one = Users(1, 0 if pod.going else 1)
        ids, drivers = _attached(pod.ask, storage)
        for id_ in ids:
            attached[id_] = attached.get(id_, Users()).plus(one)
        for driver in drivers:
            own[driver] = own.get(driver, Users()).plus(one)
        for key in pod.ask.claims:
            claim = storage.claims.get(key)
            if claim is not None and (claim.is_for_one_pod or not claim.bound):
                claims[key] = claims.get(key, Users()).plus(one)
        if not pod.bound:
            to_make += [(spec, one) for spec in pod.ask.own]
    return NodeVolumes(attached, own, claims, tuple(to_make))


def _attached(ask: VolumeAsk, storage: Storage) -> tuple[list[VolumeId], list[str]]:
    """The volumes that a pod attaches, as far as CSI drivers count them; and drivers of its own."""
    known = (storage.claims.get(key) for key in ask.claims)
    ids = (_id(claim, storage) for claim in known if claim is not None)
    drivers = (provisioner_of(spec, storage) for spec in ask.own)
    return [id_ for id_ in ids if id_ is not None], [each for each in drivers if each]


def _id(claim: VolumeClaim, storage: Storage) -> VolumeId | None:
    """The volume of a claim; that it will have where it waits, which no other has."""
    volume = storage.volumes.get(claim.volume) if claim.volume else None
    if volume is not None:
        return volume.id
    driver = provisioner_of(claim.spec, storage)
    return (driver, f"{claim.key}: to be made") if driver else None


def place_text(volume: PersistentVolume) -> str:
    """Where the volume is, in words: ``volume pv-a is in zone b``."""
    places = [(key, values) for key, values in volume.zones]
    for term in volume.terms or ():
        places += [(each.key, each.values) for each in (*term.expressions, *term.fields)]
    for word, ending in (("node", "hostname"), ("zone", "/zone"), ("region", "/region")):
        found = sorted({v for key, values in places if key.endswith(ending) for v in values})
        if found:
            of = "in" if word != "node" else "on"
            return f"volume {volume.name} is {of} {word} {' or '.join(found)}"
    return f"volume {volume.name} cannot be reached from there"


def size_text(size: int) -> str:
    """``10 GiB``, as refusals have it."""
    return amount_text(_STORAGE, size)


def may_be_made_on(claim: VolumeClaim, node: str) -> bool:
    """Whether no volume is being made for the claim on behalf of another node."""
    return claim.selected in (NO_NODE, node)
