"""``topologyAffinity`` against brute force, on random trees.

What a term forbids is worked out here from the names of nodes, domain by domain. Required terms
hold for every place that is given, and a gang waits only where no places hold them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.model.domains import CLUSTER
from app.model.gang import Gang
from app.model.ids import NodeName, group_key
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.snapshot import MemberPlace
from app.model.topology import GroupTerm, Tier, TopologyAffinity
from app.model.workload import GroupPhase
from tests.builders import make_gang
from tests.core.actions.rigs import Outcome, cycle, members, vector
from tests.core.test_domain_oracle import Network, networks
from tests.scale import examples
from tests.topology import hard

APPS = ("web", "db")


@dataclass(frozen=True)
class Others:
    """One group per app, with the nodes of its members."""

    nodes: dict[str, frozenset[str]]

    @property
    def gangs(self) -> tuple[Gang, ...]:
        return tuple(
            make_gang(app, labels={"app": app}, phase=GroupPhase.RUNNING) for app in self.nodes
        )

    @property
    def places(self) -> Any:
        return {
            group_key("default", app): tuple(
                MemberPlace(NodeName(node), "", vector()) for node in sorted(nodes)
            )
            for app, nodes in self.nodes.items()
        }


def domains_of(network: Network, tier: int) -> list[frozenset[str]]:
    return [
        names
        for name, names in network.inside.items()
        if name != CLUSTER and network.tier_of[name] == tier
    ]


def joined(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def left_by(network: Network, others: Others, affinity: TopologyAffinity) -> frozenset[str]:
    """The nodes that required terms about groups leave."""
    left = frozenset(network.inside[CLUSTER])
    for near, terms in ((True, affinity.groups_near), (False, affinity.groups_apart)):
        for term in terms:
            [app] = term.groups.requirements[0].values
            domains = domains_of(network, term.tier.number or 0)
            occupied = joined(each for each in domains if each & others.nodes[app])
            left &= occupied if near else joined(domains) - occupied
    return left


@st.composite
def others(draw: st.DrawFn, network: Network) -> Others:
    names = sorted(network.inside[CLUSTER])
    return Others({app: draw(st.frozensets(st.sampled_from(names), max_size=3)) for app in APPS})


def of_groups(weights: Sequence[int] = (0,)) -> st.SearchStrategy[TopologyAffinity]:
    terms = st.lists(
        st.builds(
            GroupTerm,
            st.sampled_from(APPS).map(
                lambda app: LabelSelector((Requirement("app", Operator.IN, (app,)),))
            ),
            st.integers(1, 3).map(Tier),
            st.none(),
            st.sampled_from(weights),
        ),
        max_size=1,
    ).map(tuple)
    return st.builds(TopologyAffinity, terms, terms)


def plan(network: Network, there: Others, gang: Gang) -> Outcome:
    return cycle(
        gang,
        *there.gangs,
        pending=(gang,),
        places=there.places,
        nodes=network.nodes,
        domains=network.domains,
        by=network.by,
    )


@examples(100)
@given(
    st.data(),
    networks(most=24, tiers=3),
    of_groups(),
    st.tuples(st.integers(1, 12), st.integers(1, 3)),
)
def test_a_gang_is_beside_other_groups_as_terms_say_whenever_that_can_be(
    data: st.DataObject, network: Network, affinity: TopologyAffinity, asked: tuple[int, int]
) -> None:
    count, cpu = asked
    there = data.draw(others(network))
    tier = data.draw(st.one_of(st.none(), st.integers(1, 3)))
    gang = make_gang(
        "g",
        waiting=members("g", count, cpu=cpu),
        affinity=affinity,
        topology=None if tier is None else hard(tier),
    )
    left = left_by(network, there, affinity)
    areas = [
        names & left
        for name, names in network.inside.items()
        if tier is None or network.tier_of[name] <= tier
    ]
    possible = any(sum(size // cpu for size in network.room(area)) >= count for area in areas)
    used = frozenset(plan(network, there, gang).nodes("g").values())
    assert used <= left
    assert bool(used) is possible


@examples(40)
@given(st.data(), networks(most=12, tiers=3), of_groups((1, 50, 100)), st.integers(1, 3))
def test_a_preferred_term_never_keeps_a_gang_waiting(
    data: st.DataObject, network: Network, affinity: TopologyAffinity, count: int
) -> None:
    there = data.draw(others(network))
    gang = make_gang("g", waiting=members("g", count), affinity=affinity)
    outcome = plan(network, there, gang)
    assert bool(outcome.nodes("g")) is (sum(network.sizes) >= count)
