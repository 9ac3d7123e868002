"""Where victims are looked for: everywhere, or inside one domain of the network.

A gang of hard topology needs places for its whole minimum inside one domain. Bounds tell of all
domains at once which of them could take it if everything had gone that may go. Of these the lowest
tier is tried first, and of one tier the domain is taken whose victims cost least. Of each tier only
so many domains are tried: those that have the most room without victims.
"""

from dataclasses import dataclass
from typing import Final

from app.core.actions.network import DomainSearch, Members
from app.core.actions.proof import Places, Proof
from app.core.actions.victim_search import VictimSearch, Work
from app.core.evicting import Judgement
from app.core.policy import Preemptor
from app.core.victims.problem import Solution
from app.core.victims.units import cost_of
from app.model.domains import Domain
from app.model.topology import NetworkTopology

MOST_DOMAINS: Final = 8
"""Domains of each tier that are tried, as in Volcano, where no plugin says how many."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The victims of ``solution``, and the places that the gang has once they are gone."""

    search: VictimSearch
    solution: Solution
    places: Places


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
        return self._inside(None) if asked is None else self._in_domains(asked)

    def _in_domains(self, asked: NetworkTopology) -> Found | str:
        cycle, why = self.proof.cycle, list[str]()
        most = cycle.opened.most_domains or MOST_DOMAINS
        free = domains_with_room(self.proof, asked)
        places = self._search(None).most_places
        emptied = DomainSearch.of(cycle, asked, _members(self.proof), places=places)
        for domains in emptied.by_tier(free):
            tried = [self._inside(domain) for domain in domains[:most]]
            found = [each for each in tried if isinstance(each, Found)]
            if found:
                return min(found, key=lambda each: cost_of(each.solution.units))
            why += [each for each in tried if not isinstance(each, Found)]
        if emptied.anywhere:
            return self._inside(None)
        if why or emptied.best is None:
            return next(iter(why), "")
        return self._inside(emptied.best)

    def _inside(self, domain: Domain | None) -> Found | str:
        search = self._search(domain)
        outcome = search.run()
        places = search.places_of(outcome) if isinstance(outcome, Solution) else None
        if isinstance(outcome, Solution) and places is not None:
            return Found(search, outcome, places)
        return search.lacking(outcome)

    def _search(self, domain: Domain | None) -> VictimSearch:
        return VictimSearch(
            self.proof, self.preemptor, self.judgement, work=self.work, domain=domain
        )


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
