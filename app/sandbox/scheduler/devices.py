"""The plugin DynamicResources: which nodes have devices for a pod's claims, and which ones it gets.

Devices are chosen when a node is, kept in mind until the claim says so, and written before the pod
is bound. A claim that has devices can be used where they are reached. No pod is evicted for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final
from uuid import uuid4

from app.cache.nodes.device_pools import DevicePools
from app.core.placement.claims import Offer, OpenClaim, Taken, Undecided, assign
from app.model.device_claims import DeviceClaim, DeviceRequest
from app.model.device_slices import DeviceId, Reach, unqualified
from app.model.node import Node
from app.sandbox.apiserver import errors
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.device_claims import CLAIMS
from app.sandbox.scheduler.claims import Unusable, is_among
from app.wire import quantity
from app.wire.documents import Document, ObjectName, items, name_of, section, uid_of
from app.wire.objects.device_claims import decode_device_claim
from app.wire.objects.device_slices import decode_device_slice
from app.wire.objects.nodes import decode_node
from app.wire.objects.policies import decode_device_class

PLUGIN: Final = "DynamicResources"
CLASSES: Final = "resource.k8s.io/deviceclasses"
SLICES: Final = "resource.k8s.io/resourceslices"
_NOT_MADE: Final = "waiting for dynamic resource controller to create the resourceclaim for pod"
_CANNOT: Final = "cannot allocate all claims"
_ELSEWHERE: Final = "resourceclaim not available on the node"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What a claim is about to get: an allocation as the claim will have it."""

    key: str
    allocation: Document


class Devices:
    """Claims and devices, as one scheduler sees them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._store = server.store
        self._chosen: dict[str, tuple[_Chosen, ...]] = {}
        """By pod: what its claims are about to get."""

    def unusable(self, pod: Document) -> Unusable | None:
        """What is wrong with the pod's claims, before any node is looked at; None: nothing."""
        for entry in items(pod, "spec", "resourceClaims"):
            name = _claim_name(pod, entry)
            if not name:
                return Unusable(PLUGIN, f'{_NOT_MADE} "{name_of(pod)}"')
            claim = self._store.get(CLAIMS, ObjectName(name_of(pod).namespace, name))
            if claim is None:
                return Unusable(PLUGIN, f'resourceclaim "{name}" not found')
            if claim["metadata"].get("deletionTimestamp"):
                return Unusable(PLUGIN, f'resourceclaim "{name}" is being deleted')
            for missing in self._missing_classes(_read_claim(claim)):
                return Unusable(PLUGIN, f"could not retrieve device class {missing}")
        return None

    def look(self, pod: Document) -> Look | None:
        """The pod's claims and all devices, to ask about nodes; None: it has no claims."""
        names = [
            ObjectName(name_of(pod).namespace, _claim_name(pod, entry))
            for entry in items(pod, "spec", "resourceClaims")
        ]
        found = filter(None, (self._store.get(CLAIMS, name) for name in names))
        claims = [self._with_chosen(_read_claim(each)) for each in found]
        if not claims:
            return None
        pools = DevicePools()
        for each in self._store.ordered(SLICES):
            pools.set_slice(decode_device_slice(_text(each)))
        classes = [decode_device_class(_text(each)) for each in self._store.ordered(CLASSES)]
        every = [self._with_chosen(_read_claim(each)) for each in self._store.ordered(CLAIMS)]
        return Look(claims, pools, {each.name: each.selectors for each in classes}, every)

    def reserve(self, pod: Document, node: Document) -> None:
        """Keep in mind what the claims of the pod get on its node."""
        look = self.look(pod)
        if look is not None:
            self._chosen[uid_of(pod)] = look.chosen(node) or ()

    def unreserve(self, pod: Document) -> None:
        """The pod is bound, or is not to be."""
        self._chosen.pop(uid_of(pod), None)

    def allocate(self, pod: Document) -> None:
        """Write what was chosen into the claims, and that the pod uses them."""
        chosen = {each.key: each.allocation for each in self._chosen.get(uid_of(pod), ())}
        for entry in items(pod, "spec", "resourceClaims"):
            name = ObjectName(name_of(pod).namespace, _claim_name(pod, entry))
            claim = self._store.get(CLAIMS, name)
            if claim is None:
                raise errors.not_found("resourceclaims", "resource.k8s.io", name.name)
            status: Document = {}
            if str(name) in chosen and not section(claim, "status", "allocation"):
                status["allocation"] = chosen[str(name)]
            users = items(claim, "status", "reservedFor")
            if uid_of(pod) not in {each.get("uid") for each in users}:
                user = {"resource": "pods", "name": name_of(pod).name, "uid": uid_of(pod)}
                status["reservedFor"] = [*users, user]
            if status:
                self._server.patch(CLAIMS, name, {"status": status}, subresource="status")

    def _missing_classes(self, claim: DeviceClaim) -> list[str]:
        options = (o for request in claim.spec.requests for o in request.options)
        named = {option.device_class: None for option in options}
        return [name for name in named if self._store.get(CLASSES, ObjectName("", name)) is None]

    def _with_chosen(self, claim: DeviceClaim) -> DeviceClaim:
        """The claim with what it is about to get."""
        if claim.allocation is not None:
            return claim
        for chosen in chain.from_iterable(self._chosen.values()):
            if chosen.key == claim.key:
                head = {"name": claim.name, "uid": claim.uid}
                body = {"metadata": head, "status": {"allocation": chosen.allocation}}
                return replace(claim, allocation=decode_device_claim(_text(body)).allocation)
        return claim


class Look:
    """The devices at one moment, for the claims of one pod."""

    def __init__(
        self,
        claims: Sequence[DeviceClaim],
        pools: DevicePools,
        classes: Mapping[str, tuple[str, ...]],
        every: Sequence[DeviceClaim],
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._classes = classes
        self._devices = pools.devices()
        self._used = self._taken(every)

    def failure(self, node: Document) -> str:
        """Why the node does not do; empty: it does."""
        here = decode_node(_text(node))
        terms = (each.allocation.node_terms for each in self._claims if each.allocation)
        if not all(is_among(each, here) for each in terms):
            return _ELSEWHERE
        return _CANNOT if self.chosen(node) is None else ""

    def chosen(self, node: Document) -> tuple[_Chosen, ...] | None:
        """What claims without devices get on the node; None: they cannot all have some."""
        here = decode_node(_text(node))
        at = [n for n, each in enumerate(self._devices) if _reaches(each.reach, here)]
        pools = {self._devices[number].id[:2] for number in at}
        offer = Offer(
            self._devices,
            at,
            self._matching,
            lambda one: self._used.get(one, {}),
            self._pools.incomplete.isdisjoint(pools),
        )
        open_ = [OpenClaim(each.key, each.spec) for each in self._claims if not each.allocation]
        try:
            taken = assign(offer, open_)
        except Undecided:
            return None
        if taken is None:
            return None
        return tuple(
            _Chosen(claim.key, self._allocation(claim, taken, here.name)) for claim in open_
        )

    def _allocation(self, claim: OpenClaim, taken: Sequence[Taken], node: str) -> Document:
        mine = [each for each in taken if each.claim == claim.key]
        found: Document = {"devices": {"results": [self._result(claim, each) for each in mine]}}
        if not all(self._devices[each.at].reach.everywhere for each in mine):
            here = {"key": "metadata.name", "operator": "In", "values": [node]}
            found["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        return found

    def _result(self, claim: OpenClaim, taken: Taken) -> Document:
        id_ = self._devices[taken.at].id
        found: Document = {"request": taken.request, **id_._asdict()}
        options = filter(None, (request.option(taken.request) for request in claim.spec.requests))
        if next(options).admin:
            found["adminAccess"] = True
        elif taken.parts is not None:
            found["shareID"] = str(uuid4())
            found["consumedCapacity"] = {
                name: quantity.text(name, amount) for name, amount in taken.parts
            }
        return found

    def _matching(self, option: DeviceRequest) -> frozenset[int] | None:
        of_class = self._classes.get(option.device_class)
        if of_class is None:
            return None
        known = self._pools.satisfying((*of_class, *option.selectors))
        return frozenset(range(len(self._devices))).intersection(*known.values())

    def _taken(self, claims: Sequence[DeviceClaim]) -> dict[int, dict[str, int] | None]:
        index = {device.id: at for at, device in enumerate(self._devices)}
        used: dict[int, dict[str, int] | None] = {}
        for each in chain.from_iterable(c.allocation.devices for c in claims if c.allocation):
            at = index.get(DeviceId(each.driver, each.pool, each.device))
            if at is None or each.admin:
                continue
            parts = used.setdefault(at, {})
            if not each.shared or parts is None:
                used[at] = None
                continue
            for name, amount in each.consumed:
                short = unqualified(name, each.driver)
                parts[short] = parts.get(short, 0) + amount
        return used


def _claim_name(pod: Document, entry: Document) -> str:
    """The name of the claim that an entry stands for; empty while it is not made."""
    if entry.get("resourceClaimName"):
        return str(entry["resourceClaimName"])
    made = items(pod, "status", "resourceClaimStatuses")
    names = (each.get("resourceClaimName") for each in made if each.get("name") == entry["name"])
    return next(names, None) or ""


def _read_claim(document: Document) -> DeviceClaim:
    return decode_device_claim(_text(document))


def _text(document: Document) -> bytes:
    return json.dumps(document).encode()


def _reaches(reach: Reach, node: Node) -> bool:
    if reach.node:
        return reach.node == node.name
    return reach.everywhere or (reach.terms is not None and is_among(reach.terms, node))
