"""Which members of a gang have to come to kube-scheduler after others of it.

kube-scheduler places one pod after the other, and of a gang's members its own affinity filter sees
those that have come to Bind. A member that must be near another (required pod affinity) is refused
before that one has come, though the plan has places for both. It need not wait for long: what it
must be near comes first, and it follows.

Only the gang's own members are looked at. One that could go by what runs elsewhere waits for a
member all the same when one is coming: this costs it the time that a pod needs to come to Bind.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.core.placement.residents import Identity, Namespaces, selects
from app.model.ids import NodeName
from app.model.shape import PodTerm

Label = Callable[[NodeName, str], str | None]
"""The value of a node's label, None when it has none."""

Terms = tuple[PodTerm, ...]


@dataclass(frozen=True, slots=True)
class Companion:
    """A member with a place, or a place that is kept for one (``holder``: whose it is).

    ``arrived``: kube-scheduler has come to Bind for it, so it counts for the others.
    """

    holder: str
    node: NodeName
    identity: Identity
    near: Terms = ()
    arrived: bool = False


def followers(
    companions: Iterable[Companion], *, label: Label, namespaces: Namespaces
) -> frozenset[str]:
    """Those that have to wait until others of ``companions`` have arrived.

    Never all of those that have not: where each is near another, one of them starts, as it does in
    kube-scheduler.
    """
    company = _Company(label, namespaces)
    arrived, waiting = list[Companion](), list[Companion]()
    for companion in companions:
        (arrived if companion.arrived else waiting).append(companion)
    company.join(arrived)
    first: Sequence[Companion] = [one for one in waiting if company.is_near(one)]
    followed = set[str]()
    while waiting:
        waiting = _without(waiting, first)
        company.join(first)
        while near := [one for one in waiting if company.is_near(one)]:
            waiting = _without(waiting, near)
            company.join(near)
            followed.update(one.holder for one in near)
        first = _first(waiting, company)
    return frozenset(followed)


def _first(waiting: Sequence[Companion], company: "_Company") -> Sequence[Companion]:
    """Those that follow none of ``waiting``, else those that may start, else (in a circle) all."""
    others = company.only(waiting)
    return (
        [one for one in waiting if not others.is_near(one)]
        or [one for one in waiting if company.may_start(one)]
        or waiting
    )


def _without(some: Sequence[Companion], gone: Sequence[Companion]) -> list[Companion]:
    holders = {one.holder for one in gone}
    return [one for one in some if one.holder not in holders]


class _Company:
    """Where those are that others may have to be near, by what these ask for."""

    def __init__(self, label: Label, namespaces: Namespaces) -> None:
        self._label = label
        self._namespaces = namespaces
        self._members: Counter[tuple[Identity, NodeName]] = Counter()
        self._places: dict[Terms, list[set[str]]] = {}
        """For what was asked: the domains that hold one which all terms select, term by term."""

    def only(self, companions: Iterable[Companion]) -> "_Company":
        """Another one, of these alone."""
        made = _Company(self._label, self._namespaces)
        made.join(companions)
        return made

    def join(self, companions: Iterable[Companion]) -> None:
        """Count these too."""
        self._members.update((one.identity, one.node) for one in companions)
        self._places.clear()

    def is_near(self, companion: Companion) -> bool:
        """Whether each of its terms finds one where it is; so does one that has no terms."""
        terms = companion.near
        places = self._places.get(terms)
        if places is None:
            places = self._places[terms] = self._of(terms)
        values = (self._label(companion.node, term.topology_key) for term in terms)
        return all(value in domains for value, domains in zip(values, places, strict=True))

    def may_start(self, companion: Companion) -> bool:
        """Whether kube-scheduler lets it be the first: its terms select itself."""
        return self._selected(companion.near, companion.identity)

    def _of(self, terms: Terms) -> list[set[str]]:
        selected: dict[Identity, bool] = {}
        domains: list[set[str]] = [set() for _ in terms]
        for identity, node in self._members:
            if identity not in selected:
                selected[identity] = self._selected(terms, identity)
            if selected[identity]:
                for term, found in zip(terms, domains, strict=True):
                    value = self._label(node, term.topology_key)
                    if value is not None:
                        found.add(value)
        return domains

    def _selected(self, terms: Terms, identity: Identity) -> bool:
        return all(selects(term, identity, self._namespaces) for term in terms)
