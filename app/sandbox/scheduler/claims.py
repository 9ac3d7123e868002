"""PersistentVolumeClaims that a pod names, as the plugins VolumeRestrictions and VolumeBinding see.

Claims of a class with ``volumeBindingMode: WaitForFirstConsumer`` wait for a pod. On the node that
the pod gets a free volume of the class is kept for the claim, or else the claim is told the node,
for a provisioner to make a volume there. Both are chosen when the node is, and written before the
pod is bound, which then waits until its claims are bound.

There is no provisioner: a user or a test makes the volume of such a claim. A claim that is
bound to a volume that does not exist is good enough on every node, as claims of other classes are
bound at once, and their volumes are not played. Nor are CSIStorageCapacities, what nodes attach,
labels of zones, and claims that are made for single pods.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from app.core.placement.selectors import NodeSelectors
from app.core.placement.volumes import serves
from app.model.ids import NodeName
from app.model.node import Node
from app.model.shape import NodeTerm
from app.model.volumes import NO_PROVISIONER, PersistentVolume, StorageClass, VolumeClaim
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import Clock
from app.wire.documents import Document, ObjectName, items, name_of, section, uid_of
from app.wire.objects.nodes import decode_node
from app.wire.objects.volumes import decode_claim, decode_storage_class, decode_volume

RESTRICTIONS: Final = "VolumeRestrictions"
"""Of the stock plugins that look for claims, the first: the one whose events wake the pod."""

BINDING: Final = "VolumeBinding"
"""The plugin that asks whether they are bound, and binds them."""

STORAGE: Final = "/persistentvolumeclaims"
VOLUMES: Final = "/persistentvolumes"
CLASSES: Final = "storage.k8s.io/storageclasses"
_SELECTED: Final = "volume.kubernetes.io/selected-node"
_BY_CONTROLLER: Final = {"pv.kubernetes.io/bound-by-controller": "yes"}
_NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
_OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
_POLL_S: Final = 1.0
_PATIENCE_S: Final = 600.0


class Unusable(NamedTuple):
    """The plugin that refuses the pod everywhere, and why, in the stock scheduler's words."""

    plugin: str
    why: str


class UnboundError(Exception):
    """The claims of a pod did not get their volumes; the text says why."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What claims get on a node: volumes by the claim's key, and claims that are told the node."""

    node: str
    kept: Mapping[str, str]
    told: tuple[str, ...]


class Claims:
    """Claims and volumes, as one scheduler sees them."""

    def __init__(self, server: ApiServer, *, clock: Clock) -> None:
        self._server = server
        self._store = server.store
        self._clock = clock
        self._chosen: dict[str, _Chosen] = {}
        """By pod: what its claims are about to get."""

    def unusable(self, pod: Document) -> Unusable | None:
        """What is wrong with the pod's claims, before any node is looked at; None: nothing."""
        unbound = False
        for name in _names(pod):
            claim = self._store.get(STORAGE, name)
            if claim is None:
                return Unusable(RESTRICTIONS, f'persistentvolumeclaim "{name.name}" not found')
            read = _read_claim(claim)
            if read.deleting:
                why = f'persistentvolumeclaim "{name.name}" is being deleted'
                return Unusable(RESTRICTIONS, why)
            unbound = unbound or not (read.bound or self._waits(read))
        if unbound:
            return Unusable(BINDING, "pod has unbound immediate PersistentVolumeClaims")
        return None

    def look(self, pod: Document) -> Look | None:
        """The pod's claims and all volumes, to ask about nodes; None: it has no claims."""
        found = filter(None, (self._store.get(STORAGE, name) for name in _names(pod)))
        claims = [self._with_chosen(_read_claim(each)) for each in found]
        if not claims:
            return None
        kept = {volume: key for each in self._chosen.values() for key, volume in each.kept.items()}
        volumes = [_read_volume(each) for each in self._store.ordered(VOLUMES)]
        volumes = [
            replace(each, claim=kept.get(each.name, each.claim)) if each.name in kept else each
            for each in volumes
        ]
        return Look(claims, volumes, self._class_of)

    def reserve(self, pod: Document, node: Document) -> bool:
        """Keep in mind what the claims of the pod get on its node; whether that is anything."""
        look = self.look(pod)
        chosen = look.chosen(node) if look is not None else None
        if chosen is None or not (chosen.kept or chosen.told):
            return False
        self._chosen[uid_of(pod)] = chosen
        return True

    def unreserve(self, pod: Document) -> None:
        """The pod is bound, or is not to be; what was written stays."""
        self._chosen.pop(uid_of(pod), None)

    async def bind(self, pod: Document) -> None:
        """Write what was chosen, and return when all is bound; raises `UnboundError`."""
        chosen = self._chosen.get(uid_of(pod))
        if chosen is None:
            return
        for key, volume in chosen.kept.items():
            self._keep(volume, _object_name(key))
        for key in chosen.told:
            told = {"metadata": {"annotations": {_SELECTED: chosen.node}}}
            self._server.patch(STORAGE, _object_name(key), told)
        due = self._clock.now() + _PATIENCE_S
        while not self._is_bound(pod, chosen):
            if self._clock.now() >= due:
                raise _unbound("context deadline exceeded")
            await self._clock.sleep(_POLL_S)

    def _keep(self, volume: str, claim: ObjectName) -> None:
        """Keep a volume for a claim; the controller of volumes then binds the two."""
        found = self._store.get(STORAGE, claim)
        uid = uid_of(found) if found is not None else ""
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": uid,
        }
        change = {"metadata": {"annotations": _BY_CONTROLLER}, "spec": {"claimRef": reference}}
        self._server.patch(VOLUMES, ObjectName("", volume), change)

    def _is_bound(self, pod: Document, chosen: _Chosen) -> bool:
        current = self._store.get("/pods", name_of(pod))
        if current is None or uid_of(current) != uid_of(pod):
            raise _unbound("pod does not exist any more")
        claims = {key: self._claim(key) for key in (*chosen.kept, *chosen.told)}
        for key, volume in chosen.kept.items():
            found = self._store.get(VOLUMES, ObjectName("", volume))
            if found is None or not section(found, "spec", "claimRef").get("uid"):
                raise _unbound(f'ClaimRef got reset for pv "{volume}"')
            if claims[key].bound and claims[key].volume != volume:
                raise _unbound(f'claim "{key}" is bound to another volume than "{volume}"')
        for key in chosen.told:
            if claims[key].selected != chosen.node:
                name = _object_name(key).name
                raise _unbound(f'provisioning failed for PVC "{name}"')
        return all(claim.bound for claim in claims.values())

    def _claim(self, key: str) -> VolumeClaim:
        found = self._store.get(STORAGE, _object_name(key))
        if found is None:
            raise _unbound(f'persistentvolumeclaim "{_object_name(key).name}" not found')
        return _read_claim(found)

    def _class_of(self, claim: VolumeClaim) -> StorageClass | None:
        found = self._store.get(CLASSES, ObjectName("", claim.spec.storage_class or ""))
        return decode_storage_class(_text(found)) if found is not None else None

    def _waits(self, claim: VolumeClaim) -> bool:
        """Whether it gets its volume once a pod has a node; one that names a volume does not."""
        of_class = self._class_of(claim)
        return of_class is not None and of_class.waits and not claim.volume

    def _with_chosen(self, claim: VolumeClaim) -> VolumeClaim:
        """The claim with the node that it is about to be told."""
        told = (each.node for each in self._chosen.values() if claim.key in each.told)
        node = next(told, "")
        return replace(claim, selected=NodeName(node)) if node else claim


class Look:
    """The volumes at one moment, for the claims of one pod."""

    def __init__(
        self,
        claims: Sequence[VolumeClaim],
        volumes: Sequence[PersistentVolume],
        class_of: Callable[[VolumeClaim], StorageClass | None],
    ) -> None:
        self._late = sorted((c for c in claims if not c.bound), key=lambda claim: claim.spec.size)
        self._volumes = volumes
        bound = {claim.volume for claim in claims if claim.bound}
        self._bound = [volume for volume in volumes if volume.name in bound]
        self._class_of = class_of

    def failures(self, node: Document) -> tuple[str, ...]:
        """Why the node does not do; empty: it does."""
        here = decode_node(_text(node))
        reached = all(is_among(volume.terms, here) for volume in self._bound)
        found = () if reached else (_OUT_OF_REACH,)
        return found if self.chosen(node) is not None else (*found, _NO_VOLUME)

    def chosen(self, node: Document) -> _Chosen | None:
        """What unbound claims get on the node; None: they cannot all have something."""
        here = decode_node(_text(node))
        kept: dict[str, str] = {}
        told: list[str] = []
        for claim in self._late:
            volume = None if claim.selected else self._volume_for(claim, here, kept.values())
            if volume is not None:
                kept[claim.key] = volume.name
            elif self._can_be_made(claim, here):
                told.append(claim.key)
            else:
                return None
        return _Chosen(here.name, kept, tuple(told))

    def _volume_for(
        self, claim: VolumeClaim, node: Node, besides: Collection[str]
    ) -> PersistentVolume | None:
        """The one that is kept for the claim already, else the smallest that is free."""
        of_class = [
            volume
            for volume in self._volumes
            if volume.storage_class == (claim.spec.storage_class or "")
        ]
        own = [volume for volume in of_class if volume.claim == claim.key]
        free = [
            volume
            for volume in own or of_class
            if volume.name not in besides
            and serves(volume, claim, claim.spec)
            and is_among(volume.terms, node)
        ]
        return min(free, key=lambda volume: (volume.size, volume.name), default=None)

    def _can_be_made(self, claim: VolumeClaim, node: Node) -> bool:
        """Whether a provisioner may be asked to make it there."""
        of_class = self._class_of(claim)
        if of_class is None or of_class.provisioner in {"", NO_PROVISIONER}:
            return False
        if claim.selected and claim.selected != node.name:
            return False
        terms = tuple(NodeTerm(each) for each in of_class.topologies)
        return not terms or is_among(terms, node)


def is_among(terms: tuple[NodeTerm, ...] | None, node: Node) -> bool:
    """Whether the node is one that the terms select; None selects all."""
    return terms is None or bool(NodeSelectors([node]).any_of(terms)[0])


def _names(pod: Document) -> list[ObjectName]:
    """The claims that the pod names, each once."""
    sources = (section(each, "persistentVolumeClaim") for each in items(pod, "spec", "volumes"))
    names = dict.fromkeys(source.get("claimName") for source in sources)
    return [ObjectName(name_of(pod).namespace, name) for name in names if name]


def _object_name(key: str) -> ObjectName:
    namespace, _, name = key.partition("/")
    return ObjectName(namespace, name)


def _unbound(why: str) -> UnboundError:
    return UnboundError(f'running PreBind plugin "{BINDING}": binding volumes: {why}')


def _read_claim(document: Document) -> VolumeClaim:
    return decode_claim(_text(document))


def _read_volume(document: Document) -> PersistentVolume:
    return decode_volume(_text(document))


def _text(document: Document) -> bytes:
    return json.dumps(document).encode()
