"""Which devices the claims of a pod get on a node, or what lacks there.

As kube-scheduler does, devices are tried in their order, for all requests of all claims of the pod
together; of alternatives the first that can be had counts. A search that comes to no end within
:data:`MOST_TRIES` leaves the node to kube-scheduler.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from app.model.amounts import Amounts
from app.model.device_claims import MOST_DEVICES, ClaimSpec, DeviceRequest, Request
from app.model.device_slices import Attribute, PoolDevice, by_name, unqualified

MOST_TRIES = 2_000
"""Devices that are tried for the claims of one pod on one node."""


class OpenClaim(NamedTuple):
    """A claim that has no devices; ``key`` tells it from others."""

    key: str
    spec: ClaimSpec


class Taken(NamedTuple):
    """What a claim takes of the device at a position; ``parts`` None: all of it.

    ``request`` is the request that it is for, or ``request/option`` of alternatives.
    """

    claim: str
    at: int
    parts: Amounts | None
    request: str = ""


class Lacking(NamedTuple):
    """A node has ``free`` devices of a class that would do, and ``asked`` are needed."""

    device_class: str
    asked: int
    free: int
    parts: Amounts = ()
    """What is asked of capacities of each device."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """The devices that a node reaches.

    ``at`` are their positions, in the order in which they are tried; ``matching`` tells the devices
    that satisfy a request, None: its class is missing. ``used`` tells what of a device is taken:
    None for all of it. ``whole`` is whether all pools are known completely.
    """

    devices: Sequence[PoolDevice]
    at: Sequence[int]
    matching: Callable[[DeviceRequest], frozenset[int] | None]
    used: Callable[[int], Mapping[str, int] | None]
    whole: bool

    def suitable(self, option: DeviceRequest) -> list[int]:
        """The devices that satisfy ``option``, free or not."""
        matching = self.matching(option)
        return [] if matching is None else [at for at in self.at if at in matching]


class Undecided(Exception):
    """The search was given up."""


def assign(offer: Offer, claims: Sequence[OpenClaim]) -> tuple[Taken, ...] | None:
    """What the claims take, all of them; None: there is no way. Raises :class:`Undecided`."""
    search = _Search(offer, claims)
    return tuple(search.taken) if search.succeeds() else None


def lacking(offer: Offer, claims: Sequence[OpenClaim]) -> Lacking | None:
    """What most lacks for ``claims``; None: only their combination does."""
    asked: dict[tuple[str, Amounts], int] = {}
    free: dict[tuple[str, Amounts], set[int]] = {}
    for claim in claims:
        for request in claim.spec.requests:
            option = request.options[0] if request.options else None
            if option is None or option.admin:
                continue
            kind = option.device_class, option.capacity
            suitable = offer.suitable(option)
            asked[kind] = asked.get(kind, 0) + (len(suitable) if option.every else option.count)
            search = _Search(offer, claims)
            able = {at for at in suitable if search.part_of(at, option) is not _NO_PART}
            free.setdefault(kind, set()).update(able)
    found = [Lacking(kind[0], asked[kind], len(free[kind]), kind[1]) for kind in asked]
    short = [each for each in found if each.asked > each.free or not each.asked]
    return max(short, key=lambda each: each.asked - each.free, default=None)


class _NoPart:
    """A device gives nothing."""


_NO_PART = _NoPart()


class _Want(NamedTuple):
    """A request by the numbers of its claim and its own, and the option that is tried."""

    claim: int
    request: int
    option: DeviceRequest


_Ways: TypeAlias = "Iterator[_Ways | None]"
"""What may be chosen next, made as it is tried; None: nothing is left to be chosen."""


class _Search:
    """The choice of devices, request after request.

    The choices that are made by now are a list of ways, not calls inside calls: pods may have more
    claims and requests than calls may be deep.
    """

    def __init__(self, offer: Offer, claims: Sequence[OpenClaim]) -> None:
        self.taken: list[Taken] = []
        self._offer = offer
        self._claims = claims
        self._tries = 0
        self._same: dict[tuple[int, int], list[Attribute]] = {}
        """By claim and constraint: the values of the devices chosen so far."""

    def succeeds(self) -> bool:
        """Give devices to all requests; False: there is no way."""
        ways = [self._request(0, 0)]
        while ways:
            try:
                further = next(ways[-1])
            except StopIteration:
                ways.pop()
                continue
            if further is None:
                return True
            ways.append(further)
        return False

    def _request(self, claim: int, request: int) -> _Ways:
        """Give devices to the requests from that one on."""
        while claim < len(self._claims) and request == len(self._claims[claim].spec.requests):
            claim, request = claim + 1, 0
        if claim == len(self._claims):
            yield None
            return
        for option in self._claims[claim].spec.requests[request].options:
            yield self._give(claim, request, option)

    def _give(self, claim: int, request: int, option: DeviceRequest) -> _Ways:
        suitable = self._offer.suitable(option)
        count = len(suitable) if option.every else option.count
        has = sum(each.claim == self._claims[claim].key for each in self.taken)
        if option.every and not (self._offer.whole and suitable):
            return
        if count > len(suitable) or has + count > MOST_DEVICES:
            return
        yield self._choose(_Want(claim, request, option), suitable, count)

    def _choose(self, want: _Want, candidates: Sequence[int], count: int) -> _Ways:
        """Give ``count`` of ``candidates``; those before the chosen one are not tried again."""
        if not count:
            yield self._request(want.claim, want.request + 1)
            return
        for number in range(len(candidates) - count + 1):
            self._tries += 1
            if self._tries > MOST_TRIES:
                raise Undecided
            at = candidates[number]
            parts = self.part_of(at, want.option)
            if isinstance(parts, _NoPart):
                continue
            bound = self._bind(want, at)
            if bound is None:
                continue
            self.taken.append(Taken(self._claims[want.claim].key, at, parts, self._path(want)))
            yield self._choose(want, candidates[number + 1 :], count - 1)
            self.taken.pop()
            for chosen in bound:
                chosen.pop()
            if want.option.every:
                return

    def _path(self, want: _Want) -> str:
        request = self._claims[want.claim].spec.requests[want.request]
        return f"{request.name}/{want.option.name}" if request.prioritized else request.name

    # --- one device ------------------------------------------------------------------------------

    def part_of(self, at: int, option: DeviceRequest) -> Amounts | _NoPart | None:
        """What a request takes of a device: parts of its capacities, or None for all of it."""
        device = self._offer.devices[at]
        asked = by_name(option.capacity, device.id.driver)
        if not asked.keys() <= dict(device.capacity).keys():
            return _NO_PART
        parts: list[tuple[str, int]] = []
        for name, capacity in device.capacity:
            part = capacity.taken(asked.get(name))
            if part is None or part > capacity.amount:
                return _NO_PART
            parts.append((name, part))
        if option.admin:
            return ()
        used = self._used(at)
        if not device.shared:
            return None if used == {} else _NO_PART
        if used is None:
            return _NO_PART
        has = dict(device.capacity)
        enough = all(used.get(name, 0) + part <= has[name].amount for name, part in parts)
        return tuple(parts) if enough else _NO_PART

    def _used(self, at: int) -> Mapping[str, int] | None:
        """What is taken of a device, by the claims at hand too; None: all of it."""
        before = self._offer.used(at)
        mine = [each.parts for each in self.taken if each.at == at]
        if before is None or None in mine:
            return None
        used = dict(before)
        for parts in mine:
            for name, amount in parts or ():
                used[name] = used.get(name, 0) + amount
        return used

    # --- constraints -----------------------------------------------------------------------------

    def _bind(self, want: _Want, at: int) -> list[list[Attribute]] | None:
        """The lists to which attributes of the device were added; None: it differs from others.

        Each is what the devices that are chosen by now have in common.
        """
        device = self._offer.devices[at]
        found: list[tuple[list[Attribute], Attribute]] = []
        spec = self._claims[want.claim].spec
        for number, constraint in enumerate(spec.constraints):
            if not _is_meant(constraint.requests, spec.requests[want.request], want.option):
                continue
            value = dict(device.attributes).get(unqualified(constraint.attribute, device.id.driver))
            chosen = self._same.setdefault((want.claim, number), [])
            if value is not None and (not chosen or _is_same(chosen[0], value)):
                found.append((chosen, value))
            elif not device.opaque:
                return None
        for chosen, value in found:
            chosen.append(value)
        return [chosen for chosen, _ in found]


def _is_same(one: Attribute, other: Attribute) -> bool:
    """Whether two values are equal and of one kind: 1 is not true."""
    return type(one) is type(other) and one == other


def _is_meant(names: Sequence[str], request: Request, option: DeviceRequest) -> bool:
    return not names or request.name in names or f"{request.name}/{option.name}" in names
