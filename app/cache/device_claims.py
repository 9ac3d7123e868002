"""The devices that pods of ours claim, and which pod its queue is charged for them.

A claim that is made of a template is one pod's, and counts as the template says until it is there.
A claim that pods name is charged to some of them (:mod:`app.cache.shared_claims`). Where that is
the first member of a group, its other members get places after that member only, so no queue gets
devices uncharged.

What pods ask for is thus not in their manifests alone: it changes with claims and templates, and
pods change with it as if they had been seen anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from app.cache.gangs.members import Member
from app.cache.gangs.registry import Registry
from app.cache.nodes.device_pools import DevicePools
from app.cache.shared_claims import SharedClaims
from app.model.amounts import Amounts, amounts
from app.model.device_claims import (
    ClaimTemplate,
    CountedClaims,
    DeviceClaim,
    amounts_of,
    expressions_of,
)
from app.model.device_slices import ClaimedDevices, DeviceSlice, PodWithClaims
from app.model.ids import NO_NODE, NO_POD, NodeName, PodUid
from app.model.job import JobTemplate, Template
from app.model.node import DeviceClass
from app.model.pod import TERMINAL, Pod
from app.model.shape import PodClaim, PodClaims, PodShape


class DeviceClaims:
    """Classes, claims and templates, and the pods that have them.

    ``see`` takes over a pod that asks for something else, ``classes_changed`` that some class does.
    """

    def __init__(
        self,
        registry: Registry,
        members: Mapping[PodUid, Member],
        *,
        see: Callable[[Pod], None],
        classes_changed: Callable[[], None],
    ) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self.pools = DevicePools()
        self.claims: dict[str, DeviceClaim] = {}
        self.templates: dict[str, ClaimTemplate] = {}
        self._registry = registry
        self._members = members
        self._see = see
        self._classes_changed = classes_changed
        self._pods: dict[PodUid, Pod] = {}
        """Pods of ours with claims, as their manifests have them."""
        self._of_template: dict[str, dict[PodUid, None]] = {}
        self._shared = SharedClaims(registry, members)
        self._made: dict[tuple[PodUid, str], str] = {}
        """Pod and entry -> the claim that was made for it."""
        self._jobs: dict[str, JobTemplate] = {}
        self._shapes: dict[tuple[PodShape, Amounts], PodShape] = {}
        self._expressions: set[str] = set()
        self._offered: dict[str, int] = {}
        """What there is of each class; empty: no ResourceSlices are known."""
        self._is_offer_old = False
        self._counted = CountedClaims()
        self._users: dict[str, frozenset[PodUid]] | None = None
        """By claim: the pods that its status names; None: what is known has changed since."""
        self._having: frozenset[PodUid] = frozenset()
        self._told: tuple[object, ClaimedDevices] | None = None

    # --- events ----------------------------------------------------------------------------------

    def set_class(self, device_class: DeviceClass) -> None:
        """Add or replace a DeviceClass."""
        self.classes[device_class.name] = device_class
        self._expressions.update(device_class.selectors)
        self._classes_changed()
        self._devices_changed()

    def drop_class(self, name: str) -> None:
        """Forget a DeviceClass. Reservations stay: kube-scheduler refuses what it has not."""
        self.classes.pop(name, None)
        self._classes_changed()
        self._devices_changed()

    def set_slice(self, slice_: DeviceSlice) -> None:
        """Add or replace a ResourceSlice."""
        if self.pools.set_slice(slice_):
            self._devices_changed()

    def drop_slice(self, name: str) -> None:
        """Forget a ResourceSlice. Reservations stay: kube-scheduler refuses what it has not."""
        if self.pools.drop_slice(name):
            self._devices_changed()

    def set_counted(self, counted: CountedClaims) -> bool:
        """Count of claims what ``counted`` says; returns whether that is another part of them."""
        if counted == self._counted:
            return False
        self._counted = counted
        self._count_anew()
        return True

    def _devices_changed(self) -> None:
        """Let gangs be planned anew: there may be devices that there were not."""
        self._is_offer_old = True
        self._users = None
        self._registry.signals.note_dirty()
        self._registry.look_again()

    def set_claim(self, claim: DeviceClaim) -> None:
        """Add or replace a ResourceClaim."""
        before = self.claims.get(claim.key)
        if before == claim:
            return
        self.claims[claim.key] = claim
        self._users = None
        self._expressions.update(expressions_of(claim.spec))
        if before is None or claim.allocation is None:
            self._devices_changed()
        if claim.pod and claim.entry:
            self._made[claim.pod, claim.entry] = claim.key
        self._claim_changed(claim)

    def drop_claim(self, key: str) -> None:
        """Forget a ResourceClaim."""
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        if self._made.get((claim.pod, claim.entry)) == key:
            del self._made[claim.pod, claim.entry]
        self._devices_changed()
        self._claim_changed(claim)

    def set_template(self, template: ClaimTemplate) -> None:
        """Add or replace a ResourceClaimTemplate."""
        if self.templates.get(template.key) != template:
            self.templates[template.key] = template
            self._expressions.update(expressions_of(template.spec))
            self._devices_changed()
            self._template_changed(template.key)

    def drop_template(self, key: str) -> None:
        """Forget a ResourceClaimTemplate."""
        if self.templates.pop(key, None) is not None:
            self._users = None
            self._template_changed(key)

    def set_job(self, job: JobTemplate) -> None:
        """Add or replace a vcjob, whose pods to come may claim devices."""
        if any(each.shape.claims for each in job.roles.values()):
            self._jobs[job.uid] = job
        else:
            self._jobs.pop(job.uid, None)
        self._registry.set_template(job.uid, self._roles(job))

    def drop_job(self, uid: str) -> None:
        """Forget a vcjob."""
        self._jobs.pop(uid, None)
        self._registry.set_template(uid, {})

    def asking(self, pod: Pod) -> Pod:
        """``pod`` with what it claims among its requests; one of ours."""
        claims = pod.shape.claims
        if claims is None:
            return pod
        if pod.status in TERMINAL:
            self.drop_pod(pod.uid)
            return pod
        self._pods[pod.uid] = pod
        for each in claims.each:
            if each.template:
                self._of_template.setdefault(_key(claims, each.template), {})[pod.uid] = None
        self._shared.join(pod, claims.shared)
        return self._asking(pod, claims)

    def drop_pod(self, uid: PodUid) -> None:
        """A pod is gone or over: it has no claims any more."""
        pod = self._pods.pop(uid, None)
        claims = pod.shape.claims if pod is not None else None
        if claims is None:
            return
        for key in {_key(claims, each.template) for each in claims.each if each.template}:
            del self._of_template[key][uid]
            if not self._of_template[key]:
                del self._of_template[key]
        self._shared.leave(uid)

    def facts(self, foreign: Mapping[PodUid, Pod]) -> ClaimedDevices | None:
        """What is known of devices and claims; None: no pod claims any, or no claims are served.

        An API server may serve an older version of claims only: then kube-scheduler alone knows.
        The same object is told until something of it changes.
        """
        served = self.classes or self.pools.slices or self.claims or self.templates
        if not served or not (self._pods or self._jobs):
            return None
        if self._users is None:
            self._users = {each.key: each.users for each in self.claims.values() if each.users}
            self._having = frozenset[PodUid]().union(*self._users.values())
            self._told = None
        placed = {uid: node for uid in self._pods if (node := self._node_of(uid))}
        slots = [
            PodWithClaims(NO_POD, slot.node, slot.shape.claims)
            for group in self._registry.groups.values()
            for slot in group.slots.values()
            if slot.shape.claims is not None
        ]
        pods = ((uid, self._pods.get(uid) or foreign.get(uid)) for uid in self._having | {*placed})
        leaving = frozenset(uid for uid, pod in pods if pod is not None and pod.deleting)
        moment = placed, slots, leaving
        if self._told is not None and self._told[0] == moment:
            return self._told[1]
        users = dict(self._users)
        for uid in placed:
            for key in self._claims_of(uid):
                users[key] = users.get(key, frozenset()) | {uid}
        self._forget_expressions()
        told = ClaimedDevices(
            devices=self.pools.devices(),
            incomplete=self.pools.incomplete,
            satisfying=self.pools.satisfying(self._expressions),
            classes={name: each.selectors for name, each in self.classes.items()},
            claims=dict(self.claims),
            templates=dict(self.templates),
            made=dict(self._made),
            users=users,
            reserved=(*self._reserved(placed), *slots),
            leaving=leaving,
        )
        self._told = moment, told
        return told

    def _reserved(self, placed: Mapping[PodUid, NodeName]) -> Iterator[PodWithClaims]:
        """Pods with a place whose claims lack devices."""
        for uid, node in placed.items():
            claims = self._pods[uid].shape.claims
            mine = (self.claims.get(key) for key in self._claims_of(uid))
            if claims is not None and not all(each and each.allocation for each in mine):
                yield PodWithClaims(uid, node, claims)

    def _node_of(self, uid: PodUid) -> NodeName:
        member = self._members.get(uid)
        return NO_NODE if member is None else member.charged_node

    def _claims_of(self, uid: PodUid) -> list[str]:
        """The keys of a pod's claims, as :class:`ClaimBooks` has them."""
        claims = self._pods[uid].shape.claims
        if claims is None:
            return []
        made = (self._made.get((uid, each.entry), f"{uid}/{each.entry}") for each in claims.each)
        return [
            _key(claims, each.claim) if each.claim else key
            for each, key in zip(claims.each, made, strict=True)
        ]

    def _forget_expressions(self) -> None:
        """Drop expressions that no class or claim has any more, once there are many."""
        if len(self._expressions) <= _EXPRESSIONS_KEPT:
            return
        specs = [each.spec for each in self.claims.values()]
        specs += [each.spec for each in self.templates.values()]
        of_classes = (text for each in self.classes.values() for text in each.selectors)
        of_specs = (text for spec in specs for text in expressions_of(spec))
        self._expressions = {*of_classes, *of_specs}

    # --- what pods ask for -----------------------------------------------------------------------

    def settle(self) -> Mapping[str, int]:
        """Choose the pods that are charged for shared claims, as places were given and lost.

        Returns how much there is of each class of devices; nothing where that is not known.
        """
        if self._is_offer_old:
            self._count_offer()
        self._look_again(self._shared.settle())
        return self._offered

    def _count_offer(self) -> None:
        """Count the devices of classes: no claim is charged more of a class than there is."""
        self._is_offer_old = False
        classes = {name: each.selectors for name, each in self.classes.items()}
        offered = self.pools.offered(classes) if self.pools.slices else {}
        if offered != self._offered:
            self._offered = offered
            self._count_anew()

    def _count_anew(self) -> None:
        self._look_again(self._pods)
        for job in self._jobs.values():
            self._registry.set_template(job.uid, self._roles(job))

    def _asking(self, pod: Pod, claims: PodClaims) -> Pod:
        found: dict[str, int] = {}
        after: list[PodUid] = []
        for each in claims.each:
            shared = self._shared.each.get(_key(claims, each.claim)) if each.claim else None
            if shared is None or pod.uid in shared.charged:
                for name, amount in self._amounts(claims, each, pod.uid):
                    found[name] = found.get(name, 0) + amount
            else:
                first = shared.before.get(pod.group)
                after += [first] if first is not None else []
        return replace(pod, shape=self._with(pod.shape, found), after=tuple(after))

    def _amounts(self, claims: PodClaims, each: PodClaim, uid: PodUid) -> Amounts:
        made = self._made.get((uid, each.entry)) if each.template else _key(claims, each.claim)
        claim = self.claims.get(made) if made is not None else None
        if claim is not None and claim.allocation is not None:
            return self._counted.of(amounts_of(claim.spec, claim.allocation))
        asking = claim or self.templates.get(_key(claims, each.template))
        most = amounts_of(asking.spec, None) if asking is not None else ()
        counted = self._counted.of(most)
        return tuple(
            (name, min(amount, self._offered.get(name, amount))) for name, amount in counted
        )

    def _with(self, shape: PodShape, more: Mapping[str, int]) -> PodShape:
        """Equal pods have one shape: it is looked up, not made for each of them."""
        if not more:
            return shape
        total = dict(shape.requests)
        for name, amount in more.items():
            total[name] = total.get(name, 0) + amount
        requests = amounts(total)
        known = self._shapes.get((shape, requests))
        if known is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            known = self._shapes[shape, requests] = replace(shape, requests=requests)
        return known

    def _roles(self, job: JobTemplate) -> dict[str, Template]:
        """Its templates with what each pod claims for itself."""
        roles = dict(job.roles)
        for role, template in roles.items():
            claims = template.shape.claims
            own = [each for each in claims.each if each.template] if claims is not None else []
            if claims is not None and own:
                found: dict[str, int] = {}
                for each in own:
                    for name, amount in self._amounts(claims, each, PodUid("")):
                        found[name] = found.get(name, 0) + amount
                roles[role] = replace(template, shape=self._with(template.shape, found))
        return roles

    def _claim_changed(self, claim: DeviceClaim) -> None:
        users = self._shared.users(claim.key)
        self._look_again([*users, claim.pod] if claim.pod else users)

    def _template_changed(self, key: str) -> None:
        self._look_again(self._of_template.get(key, ()))
        for job in self._jobs.values():
            self._registry.set_template(job.uid, self._roles(job))

    def _look_again(self, uids: Iterable[PodUid]) -> None:
        for uid in list(uids):
            pod = self._pods.get(uid)
            if pod is not None:
                self._see(pod)


_SHAPES_KEPT = 4_096
_EXPRESSIONS_KEPT = 4_096


def _key(claims: PodClaims, name: str) -> str:
    return f"{claims.namespace}/{name}"
