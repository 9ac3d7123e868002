"""Where victims are looked for: everywhere, or inside one domain of the network.

A gang of hard topology needs places for its whole minimum inside one domain. Bounds tell of all
domains at once which of them could take it if everything had gone that may go. Of these the lowest
tier is tried first, and of one tier the domain is taken whose victims cost least. Of each tier only
so many domains are tried, or of all tiers together where ``maxDomains`` of the action says so:
those that have the most room without victims. A domain whose victims
cannot cost less than those found already is left out.
"""

from dataclasses import dataclass
from typing import Final

from app.core.actions.network import DomainSearch, Members
from app.core.actions.proof import Places, Proof
from app.core.actions.victim_search import VictimSearch, Work
from app.core.evicting import Judgement
from app.core.victim_rules import Preemptor
from app.core.victims.problem import Solution
from app.core.victims.units import SetCost, cost_of
from app.model.topology import NetworkTopology

MOST_DOMAINS: Final = 8
"""Domains of each tier that are tried, as in Volcano, where no plugin says how many."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The victims of ``solution``, and the places that the gang has once they are gone."""

    search: VictimSearch
    solution: Solution
    places: Places

    @property
    def cost(self) -> SetCost:
        """What the victims cost."""
        return cost_of(self.solution.units)


@dataclass(frozen=True, slots=True, eq=False)
class Hunt:
    """The hunt for victims that ``judgement`` lets go for the gang of ``proof``."""

    proof: Proof
    preemptor: Preemptor
    judgement: Judgement
    work: Work

    def run(self) -> Found | str:
        """The victims that cost least, or what is lacking even without all that may go."""
        asked = domain_asked(self.proof)
        return self._found(self._anywhere()) if asked is None else self._in_domains(asked)

    def _in_domains(self, asked: NetworkTopology) -> Found | str:
        cycle, why = self.proof.cycle, list[str]()
        most = cycle.opened.most_domains or MOST_DOMAINS
        left = cycle.opened.gang_eviction(self.preemptor.action).most_domains
        free = domains_with_room(self.proof, asked)
        anywhere = self._anywhere()
        places = anywhere.most_places
        emptied = DomainSearch.of(cycle, asked, _members(self.proof), places=places)
        for domains in emptied.by_tier(free):
            best: Found | None = None
            tried = domains[: most if left is None else left]
            left = None if left is None else left - len(tried)
            for domain in tried:
                search = anywhere.inside(domain)
                if best is not None and search.least_cost() >= best.cost:
                    continue
                found = self._found(search)
                if isinstance(found, str):
                    why.append(found)
                elif best is None or found.cost < best.cost:
                    best = found
            if best is not None:
                return best
        if emptied.anywhere:
            return self._found(anywhere)
        if why or emptied.best is None:
            return next(iter(why), "")
        return self._found(anywhere.inside(emptied.best))

    def _found(self, search: VictimSearch) -> Found | str:
        outcome = search.run()
        places = search.places_of(outcome) if isinstance(outcome, Solution) else None
        if isinstance(outcome, Solution) and places is not None:
            return Found(search, outcome, places)
        return search.lacking(outcome)

    def _anywhere(self) -> VictimSearch:
        return VictimSearch(self.proof, self.preemptor, self.judgement, work=self.work)


def without_victims(proof: Proof) -> Places | None:
    """Places for the minimum on room that is about to be free anyway; None: there are none."""
    asked = domain_asked(proof)
    if asked is None:
        return proof.places(())
    search = domains_with_room(proof, asked)
    for domain in search.domains():
        places = proof.places((), domain=domain)
        if places is not None:
            return places
    return proof.places(()) if search.anywhere else None


def domain_asked(proof: Proof) -> NetworkTopology | None:
    """What the gang asks of the network if all of it has to be in one domain."""
    topology = proof.gang.topology
    return topology if topology is not None and topology.is_hard else None


def domains_with_room(proof: Proof, asked: NetworkTopology) -> DomainSearch:
    """The domains by the room that is about to be free."""
    with proof.cycle.ahead():
        return DomainSearch.of(proof.cycle, asked, _members(proof))


def _members(proof: Proof) -> Members:
    return Members(proof.gang, proof.tasks, len(proof.tasks))
