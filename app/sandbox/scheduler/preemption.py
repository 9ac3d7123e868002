"""Default preemption: which pods would have to go so that this one fits, and asking the extender.

Simple on purpose. Per node that could be helped: take all pods of lower priority away, see whether
the pod fits beside those nominated there, then give back the most important ones while it still
does; the rest are victims.
Filter of the extender is not called in this dry run, as in the stock scheduler; the extender's
preempt verb may drop nodes or veto all. Of the nodes left the cheapest wins: fewest budget
violations, then the lowest top priority, then the fewest victims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from app.sandbox.apiserver.disruption import Disruption
from app.sandbox.scheduler import messages
from app.sandbox.scheduler.cluster import Cluster, NodeState, PlacedPod
from app.sandbox.scheduler.extender import Extender, ExtenderError, Victims
from app.sandbox.scheduler.filters import Candidate, Failure
from app.sandbox.scheduler.nominations import Nominations
from app.wire.documents import Document, section

_EXPECTED = "expected at least one victim pod on node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A node to nominate with its victims, or the words that say why there is none.

    An empty ``node`` takes a nomination back; None leaves it as it is.
    """

    node: str | None = None
    victims: tuple[Document, ...] = ()
    message: str = ""


class Preemption:
    """Finds room by eviction; does not evict."""

    def __init__(
        self, cluster: Cluster, nominations: Nominations, disruption: Disruption, *, random: Random
    ) -> None:
        self._cluster = cluster
        self._nominations = nominations
        self._disruption = disruption
        self._random = random

    async def find(
        self, candidate: Candidate, failures: Mapping[str, Failure], *, extender: Extender | None
    ) -> Outcome:
        """``failures`` says for each node why the pod did not fit."""
        total = len(self._cluster.nodes)
        ineligible = self._ineligible(candidate)
        if ineligible:
            return Outcome(message=ineligible)
        reasons: dict[str, str] = {}
        found: dict[str, Victims] = {}
        for name, failure in sorted(failures.items()):
            if not failure.can_be_helped:
                reasons[name] = messages.NOT_HELPFUL
                continue
            victims = self._victims(candidate, self._cluster.nodes[name])
            if victims is None:
                reasons[name] = messages.NO_VICTIMS
            elif not victims.uids:
                reasons[name] = f'{_EXPECTED} "{name}"'
            else:
                found[name] = victims
        if not found:
            return self._no_candidates(total, failures, reasons)
        if extender is not None:
            try:
                found = await extender.preempt(candidate.pod, found)
            except ExtenderError as error:
                return Outcome(message=str(error))
        return self._choose(found)

    def _ineligible(self, candidate: Candidate) -> str:
        """Why the pod may not evict: by its own policy, or because its last victims still go."""
        if section(candidate.pod, "spec").get("preemptionPolicy") == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = section(candidate.pod, "status").get("nominatedNodeName")
        node = self._cluster.nodes.get(nominated or "")
        going = node is not None and any(
            placed.document["metadata"].get("deletionTimestamp")
            and placed.asks.priority < candidate.asks.priority
            for placed in node.pods.values()
        )
        return "not eligible due to a terminating pod on the nominated node." if going else ""

    def _no_candidates(
        self, total: int, failures: Mapping[str, Failure], reasons: Mapping[str, str]
    ) -> Outcome:
        """Nodes that have no failure of their own were never looked at: no help there either.

        Errors of several nodes come in no particular order, as the nodes were tried side by side:
        the text changes from attempt to attempt, and each new text wakes the pod again.
        """
        told = [reasons.get(name, messages.NOT_HELPFUL) for name in failures]
        expected = [text for text in told if text.startswith(_EXPECTED)]
        if not expected:
            return Outcome(node="", message=messages.histogram(total, told))
        self._random.shuffle(expected)
        text = f"[{', '.join(expected)}]" if len(expected) > 1 else expected[0]
        return Outcome(message=text)

    def _victims(self, candidate: Candidate, node: NodeState) -> Victims | None:
        lower = sorted(
            (one for one in node.pods.values() if one.asks.priority < candidate.asks.priority),
            key=lambda one: (-one.asks.priority, one.asks.uid),
        )
        if not lower:
            return None
        trial = node.trial(without=[one.asks.uid for one in lower])
        if not self._fits(candidate, trial):
            return None
        kept, victims = trial, list[PlacedPod]()
        guarded = [one for one in lower if self._is_guarded(one)]
        for one in [*guarded, *(one for one in lower if one not in guarded)]:
            with_it = kept.trial(extra=[one])
            if self._fits(candidate, with_it):
                kept = with_it
            else:
                victims.append(one)
        victims.sort(key=lambda one: (-one.asks.priority, one.asks.uid))
        violations = sum(1 for one in victims if one in guarded)
        return Victims(tuple(one.asks.uid for one in victims), violations)

    def _fits(self, candidate: Candidate, trial: NodeState) -> bool:
        around = self._cluster.neighbourhood(trial=trial)
        return self._nominations.failure(candidate, trial, around) is None

    def _is_guarded(self, placed: PlacedPod) -> bool:
        return any(
            section(budget, "status").get("disruptionsAllowed", 0) <= 0
            for budget in self._disruption.covering(placed.document)
        )

    def _choose(self, found: Mapping[str, Victims]) -> Outcome:
        if not found:
            return Outcome(message="no candidate node for preemption")
        best: tuple[tuple[int, int, int, str], tuple[Document, ...]] | None = None
        for name, victims in found.items():
            node = self._cluster.nodes.get(name)
            if not victims.uids:
                return Outcome(message=f'{_EXPECTED} "{name}"')
            if node is None or any(uid not in node.pods for uid in victims.uids):
                text = f"extender claims to preempt pods that are not on node: {name}"
                return Outcome(message=text)
            pods = [node.pods[uid] for uid in victims.uids]
            rank = (victims.pdb_violations, pods[0].asks.priority, len(pods), name)
            if best is None or rank < best[0]:
                best = rank, tuple(placed.document for placed in pods)
        assert best is not None
        return Outcome(node=best[0][3], victims=best[1])
