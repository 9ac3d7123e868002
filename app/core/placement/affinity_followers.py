"""Which members of a gang have to come to kube-scheduler after others of it.

kube-scheduler places one pod after the other, and of a gang's members its own affinity filter sees
those that have come to Bind. A member that must be near another (required pod affinity) is refused
before that one has come, though the plan has places for both. It need not wait for long: what it
must be near comes first, and it follows.

Only the gang's own members are looked at. One that could go by what runs elsewhere waits for a
member all the same when one is coming: this costs it the time that a pod needs to come to Bind.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, MutableMapping, Sequence
from dataclasses import dataclass

from app.core.placement.placed_pods import Identity, Namespaces, selects
from app.model.ids import NodeName
from app.model.shape import Operator, PodTerm

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
    """Holders that have to wait until others of ``companions`` have arrived.

    Never all that have not arrived: where each is near another, one of them starts, as it does in
    kube-scheduler. Cost: the number of companions, and of pairs of a rule and a companion that
    meets it.
    """
    everyone = tuple(companions)
    rules = _Rules(everyone, namespaces)
    places = _Domains(rules, label, asking=[one for one in everyone if not one.arrived])
    for one in everyone:
        if one.arrived:
            places.add(one)
    waiting = {one.holder: one for one in everyone if not one.arrived}
    first: Collection[Companion] = [one for one in waiting.values() if places.is_near(one)]
    followed = set[str]()
    while waiting:
        for one in first:
            del waiting[one.holder]
        followed |= _drawn(first, waiting, places)
        first = _first(tuple(waiting.values()), rules, label)
    return frozenset(followed)


def _drawn(
    first: Iterable[Companion], waiting: MutableMapping[str, Companion], places: "_Domains"
) -> set[str]:
    """Holders taken out of ``waiting``: those near ``first``, then those near these, and so on."""
    drawn = set[str]()
    coming = deque(first)
    while coming:
        for one in places.add(coming.popleft()):
            if one.holder in waiting and places.is_near(one):
                coming.append(waiting.pop(one.holder))
                drawn.add(one.holder)
    return drawn


def _first(waiting: Sequence[Companion], rules: "_Rules", label: Label) -> Sequence[Companion]:
    """The companions that follow none of ``waiting``, else those that may start.

    In a circle, all of them.
    """
    others = _Domains(rules, label)
    for one in waiting:
        others.add(one)
    return (
        [one for one in waiting if not others.is_near(one)]
        or [one for one in waiting if rules.of(one) in rules.met_by(one)]
        or waiting
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """What equal members must be near; one object for each, as its terms are long to compare."""

    terms: Terms


class _Rules:
    """The different rules of a gang, and the companions that meet each."""

    def __init__(self, companions: Sequence[Companion], namespaces: Namespaces) -> None:
        self._by_terms = {terms: _Rule(terms) for terms in {one.near for one in companions}}
        self._met: defaultdict[Identity, list[_Rule]] = defaultdict(list)
        identities = {one.identity for one in companions}
        labelled: defaultdict[tuple[str, str], list[Identity]] = defaultdict(list)
        for identity in identities:
            for pair in identity.labels:
                labelled[pair].append(identity)
        for terms, rule in self._by_terms.items():
            pairs = _pairs_asked(terms)
            asked = identities if pairs is None else [i for pair in pairs for i in labelled[pair]]
            for identity in asked:
                if all(selects(term, identity, namespaces) for term in terms):
                    self._met[identity].append(rule)

    def of(self, companion: Companion) -> _Rule:
        """The rule of the companion."""
        return self._by_terms[companion.near]

    def met_by(self, companion: Companion) -> Sequence[_Rule]:
        """Rules whose terms all select the companion."""
        return self._met.get(companion.identity, ())


def _pairs_asked(terms: Terms) -> list[tuple[str, str]] | None:
    """Labels of which those that ``terms`` select have one; None: nothing so simple is asked."""
    for term in terms:
        for asked in term.selector.requirements if term.selector else ():
            if asked.operator is Operator.IN:
                return [(asked.key, value) for value in dict.fromkeys(asked.values)]
    return None


class _Domains:
    """The domains that hold a companion which meets a rule, for each of the rule's terms."""

    def __init__(self, rules: _Rules, label: Label, *, asking: Iterable[Companion] = ()) -> None:
        """``asking``: companions to be returned by `add` when one that they follow comes near."""
        self._rules = rules
        self._label = label
        self._found = set[tuple[_Rule, int, str]]()
        self._asking: defaultdict[tuple[_Rule, int, str], list[Companion]] = defaultdict(list)
        for one in asking:
            rule = rules.of(one)
            for number, term in enumerate(rule.terms):
                value = label(one.node, term.topology_key)
                if value is not None:
                    self._asking[rule, number, value].append(one)

    def add(self, companion: Companion) -> list[Companion]:
        """Count the companion too.

        Returns companions that asked for the first one in one of its domains.
        """
        asked: list[Companion] = []
        for rule in self._rules.met_by(companion):
            for number, term in enumerate(rule.terms):
                value = self._label(companion.node, term.topology_key)
                if value is not None and (rule, number, value) not in self._found:
                    self._found.add((rule, number, value))
                    asked += self._asking.get((rule, number, value), ())
        return asked

    def is_near(self, companion: Companion) -> bool:
        """Whether each term of the companion finds one where it is; so does one without terms."""
        rule = self._rules.of(companion)
        return all(
            (rule, number, self._label(companion.node, term.topology_key)) in self._found
            for number, term in enumerate(rule.terms)
        )
